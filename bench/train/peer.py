#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of PyTorch, for bench-train: reads "steps N" or "memory" by lines, answers with one line each.

peer.py --mode eager|channels_last|compile|compile_channels_last --workload mnist --batch 64 --threads 2
"""
import argparse
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="eager")
parser.add_argument("--workload", required=True)
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--threads", type=int, required=True)
options = parser.parse_args()
torch.set_num_threads(options.threads)
torch.manual_seed(1)


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


networks = {
    "mnist": (mnist, (1, 28, 28)),
    "mlp": (mlp, (784,)),
    "cifar": (cifar, (3, 32, 32)),
    "resnet20": (lambda: resnet(16, [(16, 3, 1), (32, 3, 2), (64, 3, 2)]), (3, 32, 32)),
    "resnet18": (lambda: resnet(64, [(64, 2, 1), (128, 2, 2), (256, 2, 2), (512, 2, 2)]), (3, 32, 32)),
}
make, sample = networks[options.workload]
network = make().train()
x = torch.rand(options.batch, *sample)
labels = torch.arange(options.batch) % 10
if options.mode.endswith("channels_last"):
    network = network.to(memory_format=torch.channels_last)
    if x.dim() == 4:
        x = x.contiguous(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, fused=True)


def loss_of(batch, truth):
    return F.cross_entropy(network(batch), truth)


if options.mode.startswith("compile"):
    loss_of = torch.compile(loss_of)


def step():
    optimizer.zero_grad(set_to_none=True)
    loss_of(x, labels).backward()
    optimizer.step()


for _ in range(3):
    step()
print("ready", flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "steps":
        times = []
        for _ in range(int(words[1])):
            begin = time.perf_counter()
            step()
            times.append(f"{(time.perf_counter() - begin) * 1e3:.6f}")
        print(*times, flush=True)
    else:
        with open("/proc/self/status") as status:
            peak = next(line for line in status if line.startswith("VmHWM:"))
        print(int(peak.split()[1]) * 1024, flush=True)
