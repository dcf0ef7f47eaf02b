#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Losses of PyTorch on a text, step by step, as the zoo's programs of characters print theirs.

losses.py --network transformer|lstm --text FILE --steps 100 --threads 1 [--compile]

Ends with the seconds of a step (without the first five, which compile) and the peak memory.

Initial values are drawn from the same distributions, and minibatches have the same windows in the same order as
`char_transformer train --training_data=text:256:FILE --minibatch_size=12 --log_loss_steps=10` and
`char_lstm train --training_data=text:128:FILE --minibatch_size=32 --log_loss_steps=10` give them with --shuffle=false.
"""
import argparse
import math
import pathlib
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from networks import LSTM, Letters, Transformer  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--network", choices=("transformer", "lstm"), required=True)
parser.add_argument("--text", required=True)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--compile", action="store_true")
options = parser.parse_args()
torch.set_num_threads(options.threads)
torch.manual_seed(1)


def transformer_rate(step):
    cosine = 1e-4 + 9e-4 * (1 + math.cos(math.pi * min(step, 5000) / 5000)) / 2
    return min(1, (step + 1) / 100) * cosine


Letters.letters = 256
with torch.no_grad():
    if options.network == "transformer":
        Letters.length, batch = 256, 12
        network = Transformer()
        nn.init.uniform_(network.rows.weight, -0.05, 0.05)
        nn.init.uniform_(network.positions, -0.05, 0.05)
        optimizer = torch.optim.AdamW(network.parameters(), betas=(0.9, 0.99), eps=1e-7, weight_decay=0.1)
        rate = transformer_rate
    else:
        Letters.length, batch = 128, 32
        network = LSTM(width=512)
        nn.init.normal_(network.rows.weight)
        for name, value in network.lstm.named_parameters():
            if "bias" in name:
                value.zero_()
            if "bias_ih" in name:
                value[512:1024] = 1  # of the forget gates
            if "weight" in name:
                nn.init.xavier_uniform_(value)
        optimizer = torch.optim.Adam(network.parameters(), eps=1e-7)
        rate = None
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            layer.bias.zero_()

text = torch.frombuffer(bytearray(pathlib.Path(options.text).read_bytes()), dtype=torch.uint8).long()
network.train()
run = torch.compile(network) if options.compile else network
for step in range(options.steps):
    if step == 5:
        since = time.monotonic()
    begins = [(step * batch + i) * Letters.length for i in range(batch)]
    ids = torch.stack([text[b : b + Letters.length] for b in begins])
    truth = torch.stack([text[b + 1 : b + Letters.length + 1] for b in begins])
    for group in optimizer.param_groups:
        group["lr"] = rate(step) if rate else 2e-3
    optimizer.zero_grad()
    loss = F.cross_entropy(run(ids).flatten(0, 1), truth.flatten())
    loss.backward()
    optimizer.step()
    if step == 0 or (step + 1) % 10 == 0:
        print(f"Loss = {loss.item():.4f}, steps = {step + 1}", flush=True)
seconds = (time.monotonic() - since) / (options.steps - 5)
print(f"{seconds:.3f} s a step, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000} MB")
