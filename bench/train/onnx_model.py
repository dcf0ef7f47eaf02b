#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a network of bench/train/networks.hpp as an ONNX model, for onnx_peer.mjs: onnx_model.py NAME FILE.

Weights are random, as only the time counts. Needs Debian's python3-onnx.
"""
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

random = np.random.default_rng(1)


class Graph:
    """Nodes one behind the other; a function takes the name of a value and returns that of its result."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, *dims, value=None):
        name = f"w{len(self.weights)}"
        values = random.normal(0, 0.05, dims) if value is None else np.full(dims, value)
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def add(self, what, inputs, **options):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(what, inputs, [name], **options))
        return name

    def relu(self, x):
        return self.add("Relu", [x])

    def pool(self, x):
        return self.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])

    def dense(self, x, inputs, units):
        return self.add("Gemm", [x, self.weight(inputs, units), self.weight(units)])

    def conv(self, x, before, filters, kernel=3, stride=1, padding=1, bias=False):
        weights = [self.weight(filters, before, kernel, kernel)] + ([self.weight(filters)] if bias else [])
        return self.add("Conv", [x, *weights], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[padding] * 4)

    def norm(self, x, channels):
        return self.add("BatchNormalization", [x, self.weight(channels, value=1), self.weight(channels, value=0),
                                               self.weight(channels, value=0), self.weight(channels, value=1)])


def mnist(g, x):
    x = g.relu(g.conv(x, 1, 32, padding=0, bias=True))
    x = g.norm(g.relu(g.conv(x, 32, 64, padding=0, bias=True)), 64)
    return g.dense(g.add("Flatten", [g.pool(x)]), 9216, 10)


def mlp(g, x):
    return g.dense(g.relu(g.dense(g.relu(g.dense(x, 784, 512)), 512, 512)), 512, 10)


def cifar(g, x):
    before = 3
    for filters in (32, 64, 128):
        for _ in range(2):
            x = g.relu(g.norm(g.conv(x, before, filters, bias=True), filters))
            before = filters
        x = g.pool(x)
    return g.dense(g.add("Flatten", [x]), 2048, 10)


def resnet(g, x, first, stages):
    x, before = g.relu(g.norm(g.conv(x, 3, first), first)), first
    for filters, blocks, stride in stages:
        for i in range(blocks):
            step = stride if i == 0 else 1
            y = g.relu(g.norm(g.conv(x, before, filters, stride=step), filters))
            y = g.norm(g.conv(y, filters, filters), filters)
            if step != 1 or before != filters:
                x = g.norm(g.conv(x, before, filters, kernel=1, stride=step, padding=0), filters)
            x, before = g.relu(g.add("Add", [x, y])), filters
    return g.dense(g.add("Flatten", [g.add("GlobalAveragePool", [x])]), before, 10)


networks = {
    "mnist": (mnist, [1, 28, 28]),
    "mlp": (mlp, [784]),
    "cifar": (cifar, [3, 32, 32]),
    "resnet20": (lambda g, x: resnet(g, x, 16, [(16, 3, 1), (32, 3, 2), (64, 3, 2)]), [3, 32, 32]),
    "resnet18": (lambda g, x: resnet(g, x, 64, [(64, 2, 1), (128, 2, 2), (256, 2, 2), (512, 2, 2)]), [3, 32, 32]),
}
make, sample = networks[sys.argv[1]]
graph = Graph()
out = make(graph, "x")
model = helper.make_model(
    helper.make_graph(graph.nodes, sys.argv[1],
                      [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *sample])],
                      [helper.make_tensor_value_info(out, TensorProto.FLOAT, ["batch", 10])], graph.weights),
    opset_imports=[helper.make_opsetid("", 15)])
model.ir_version = 8
checker.check_model(model)
save(model, sys.argv[2])
