#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of PyTorch, for bench-train: reads "steps N" or "memory" by lines, answers with one line each.

peer.py --mode eager|channels_last|compile|compile_channels_last --workload mnist --batch 64 --threads 2
"""
import argparse
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from networks import networks  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="eager")
parser.add_argument("--workload", required=True)
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--threads", type=int, required=True)
options = parser.parse_args()
torch.set_num_threads(options.threads)
torch.manual_seed(1)

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
