#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of PyTorch on a GPU, for bench-gpu: reads "steps N" by lines, answers with milliseconds per step.

peer.py --mode eager|compile|graph|compile_graph --workload mnist --batch 64 --precision tf32

Channels last in all modes; bfloat16 by autocast. `graph`: the whole step, optimiser included, is one CUDA graph.
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
parser.add_argument("--precision", required=True)
options = parser.parse_args()
torch.manual_seed(1)
tf32 = options.precision != "float32"
torch.backends.cuda.matmul.allow_tf32 = tf32
torch.backends.cudnn.allow_tf32 = tf32
torch.backends.cudnn.benchmark = True


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
network = make().train().cuda().to(memory_format=torch.channels_last)
x = torch.rand(options.batch, *sample, device="cuda")
if x.dim() == 4:
    x = x.contiguous(memory_format=torch.channels_last)
labels = torch.arange(options.batch, device="cuda") % 10
graphed = options.mode.endswith("graph")
optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, fused=True)


def loss_of(batch, truth):
    with torch.autocast("cuda", torch.bfloat16, enabled=options.precision == "bfloat16"):
        return F.cross_entropy(network(batch), truth)


if options.mode.startswith("compile"):
    loss_of = torch.compile(loss_of, mode="max-autotune-no-cudagraphs")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss_of(x, labels).backward()
    optimizer.step()


side = torch.cuda.Stream()
with torch.cuda.stream(side):
    for _ in range(11):
        step()
torch.cuda.synchronize()
if graphed:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    run = graph.replay
else:
    run = step
for _ in range(3):
    run()
torch.cuda.synchronize()
print("ready", flush=True)
for line in sys.stdin:
    steps = int(line.split()[1])
    begin = time.perf_counter()
    for _ in range(steps):
        run()
    torch.cuda.synchronize()
    print(f"{(time.perf_counter() - begin) * 1e3 / steps:.6f}", flush=True)
