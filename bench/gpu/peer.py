#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of PyTorch on a GPU, for bench-gpu: reads "steps N" by lines, answers with milliseconds per step.

peer.py --mode eager|compile|graph|compile_graph --workload mnist --batch 64 --precision tf32

Channels last in all modes; bfloat16 by autocast. `graph`: the whole step, optimiser included, is one CUDA graph.
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
parser.add_argument("--precision", required=True)
options = parser.parse_args()
torch.manual_seed(1)
tf32 = options.precision != "float32"
torch.backends.cuda.matmul.allow_tf32 = tf32
torch.backends.cudnn.allow_tf32 = tf32
torch.backends.cudnn.benchmark = True

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
