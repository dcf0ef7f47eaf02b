#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of PyTorch, for bench-train: reads "steps N" or "memory" by lines, answers with one line each.

peer.py --mode eager|channels_last|compile|compile_channels_last --precision float32|bfloat16 --workload mnist
        --batch 64 --threads 2
"""
import argparse
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from networks import DeepFM, Letters, networks  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="eager")
parser.add_argument("--precision", default="float32")
parser.add_argument("--workload", required=True)
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--threads", type=int, required=True)
parser.add_argument("--forward", action="store_true", help="the forward pass of an evaluation, and nothing else")
options = parser.parse_args()
torch.set_num_threads(options.threads)
torch.manual_seed(1)

make, sample = networks[options.workload]
network = make().train()
clicks, letters = isinstance(network, DeepFM), isinstance(network, Letters)
# Batches of ids take turns, as they do on the other side: their rows are not in the nearest cache.
batches = [network.draw(options.batch) for _ in range(32)] if clicks or letters else [torch.rand(options.batch, *sample)]
x = batches[0]
labels = torch.arange(options.batch) % 10
if clicks:
    labels = torch.randint(0, 2, (options.batch,)).float()
if letters:
    labels = network.draw(options.batch)
if options.mode.endswith("channels_last"):
    network = network.to(memory_format=torch.channels_last)
    if x.dim() == 4:
        batches = [x.contiguous(memory_format=torch.channels_last)]
sparse = [m.weight for m in network.modules() if isinstance(m, torch.nn.Embedding) and m.sparse]
dense = [p for p in network.parameters() if not any(p is s for s in sparse)]
optimizers = [torch.optim.SGD(dense, lr=0.01, momentum=0 if clicks else 0.9, fused=True)]
if sparse:
    optimizers.append(torch.optim.SGD(sparse, lr=0.01))
turn = 0


def loss_of(batch, truth):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.precision == "bfloat16"):
        outputs = network(batch)
        if clicks:
            return F.binary_cross_entropy_with_logits(outputs, truth)
        return F.cross_entropy(outputs.flatten(0, -2) if letters else outputs, truth.flatten())


if options.mode.startswith("compile"):
    loss_of = torch.compile(loss_of)


if options.forward:
    network.eval()
    evaluated = torch.compile(network) if options.mode.startswith("compile") else network


def step():
    global turn
    if options.forward:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bfloat16"):
            evaluated(batches[turn % len(batches)])
        turn += 1
        return
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    loss_of(batches[turn % len(batches)], labels).backward()
    for optimizer in optimizers:
        optimizer.step()
    turn += 1


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
