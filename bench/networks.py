# SPDX-License-Identifier: Apache-2.0
"""The networks of bench/train/networks.hpp for PyTorch: name → (what makes it, a sample's extents)."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def mnist():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.BatchNorm2d(64, eps=1e-3, momentum=0.01),
        nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 10))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def cifar():
    layers, before = [], 3
    for filters, rate in ((32, 0.2), (64, 0.3), (128, 0.4)):
        for _ in range(2):
            layers += [nn.Conv2d(before, filters, 3, padding=1), nn.BatchNorm2d(filters, eps=1e-6), nn.ReLU()]
            before = filters
        layers += [nn.MaxPool2d(2), nn.Dropout(rate)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 10))


class Block(nn.Module):
    def __init__(self, before, filters, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
            nn.Conv2d(filters, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters))
        self.projection = None
        if stride != 1 or before != filters:
            self.projection = nn.Sequential(nn.Conv2d(before, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x):
        return F.relu(self.body(x) + (self.projection(x) if self.projection is not None else x))


def resnet(first, stages):
    layers, before = [nn.Conv2d(3, first, 3, 1, 1, bias=False), nn.BatchNorm2d(first), nn.ReLU()], first
    for filters, blocks, stride in stages:
        for i in range(blocks):
            layers.append(Block(before, filters, stride if i == 0 else 1))
            before = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


class DeepFM(nn.Module):
    """A sample is ids of 26 columns, each with its own part of a million rows."""

    columns, rows = 26, 1_000_000

    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding(self.rows, 16, sparse=True)
        self.weights = nn.Embedding(self.rows, 1, sparse=True)
        self.deep = nn.Sequential(
            nn.Linear(26 * 16, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 1))
        nn.init.uniform_(self.vectors.weight, -0.05, 0.05)
        nn.init.uniform_(self.weights.weight, -0.05, 0.05)

    def forward(self, ids):
        v = self.vectors(ids)
        together = v.sum(1)
        pairs = 0.5 * (together * together - (v * v).sum(1)).sum(1)
        return self.deep(v.flatten(1)).squeeze(1) + self.weights(ids).sum((1, 2)) + pairs

    @classmethod
    def draw(cls, batch):
        own = cls.rows // cls.columns
        return torch.randint(0, own, (batch, cls.columns)) + torch.arange(cls.columns) * own


class TransformerBlock(nn.Module):
    def __init__(self, width, heads, rate):
        super().__init__()
        self.heads = heads
        self.norm, self.norm_1 = nn.LayerNorm(width, eps=1e-3), nn.LayerNorm(width, eps=1e-3)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(rate))
        self.dropout = nn.Dropout(rate)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.out(y.transpose(1, 2).reshape(batch, length, width)))
        return x + self.mlp(self.norm_1(x))


class Letters(nn.Module):
    """A sample is 256 letters of 65, and the loss is of the letter that follows each."""

    length, letters = 256, 65

    @classmethod
    def draw(cls, batch):
        return torch.randint(0, cls.letters, (batch, cls.length))


class Transformer(Letters):
    """nanoGPT's for characters."""

    def __init__(self, width=384, heads=6, blocks=6, rate=0.2):
        super().__init__()
        self.rows, self.positions = nn.Embedding(self.letters, width), nn.Parameter(torch.zeros(self.length, width))
        self.blocks = nn.Sequential(nn.Dropout(rate), *(TransformerBlock(width, heads, rate) for _ in range(blocks)))
        self.head = nn.Sequential(nn.LayerNorm(width, eps=1e-3), nn.Linear(width, self.letters))

    def forward(self, ids):
        return self.head(self.blocks(self.rows(ids) + self.positions))


class LSTM(Letters):
    def __init__(self, width=640, layers=3, rate=0.2):
        super().__init__()
        self.rows, self.head = nn.Embedding(self.letters, width), nn.Linear(width, self.letters)
        self.lstm, self.dropout = nn.LSTM(width, width, layers, batch_first=True, dropout=rate), nn.Dropout(rate)

    def forward(self, ids):
        return self.head(self.dropout(self.lstm(self.rows(ids))[0]))


networks = {
    "mnist": (mnist, (1, 28, 28)),
    "mlp": (mlp, (784,)),
    "cifar": (cifar, (3, 32, 32)),
    "resnet20": (lambda: resnet(16, [(16, 3, 1), (32, 3, 2), (64, 3, 2)]), (3, 32, 32)),
    "resnet18": (lambda: resnet(64, [(64, 2, 1), (128, 2, 2), (256, 2, 2), (512, 2, 2)]), (3, 32, 32)),
    "deepfm": (DeepFM, (26,)),
    "transformer": (Transformer, (256,)),
    "lstm": (LSTM, (256,)),
}
