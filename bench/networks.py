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


networks = {
    "mnist": (mnist, (1, 28, 28)),
    "mlp": (mlp, (784,)),
    "cifar": (cifar, (3, 32, 32)),
    "resnet20": (lambda: resnet(16, [(16, 3, 1), (32, 3, 2), (64, 3, 2)]), (3, 32, 32)),
    "resnet18": (lambda: resnet(64, [(64, 2, 1), (128, 2, 2), (256, 2, 2), (512, 2, 2)]), (3, 32, 32)),
    "deepfm": (DeepFM, (26,)),
}
