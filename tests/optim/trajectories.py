#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the values that sgd.cpp, adagrad.cpp and adam.cpp pin: five steps on three weights, in double, with options
rounded to float as the optimisers hold them. The gradient is w / 4 + (0.3, -0.1, 0.02) * (-1)^step * (step + 1)."""
import math
import struct


def f(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def run(name, step):
    w = [1.0, -2.0, 0.5]
    memory = [{}, {}, {}]
    for t in range(5):
        for i, a in enumerate((0.3, -0.1, 0.02)):
            g = w[i] / 4 + a * (-1) ** t * (t + 1)
            w[i] = step(w[i], g, memory[i], t + 1)
    print(name, "{" + ", ".join(repr(x) for x in w) + "}")


def sgd(rate, mu=0.0, nesterov=False, decay=0.0):
    def step(w, g, s, t):
        s["v"] = mu * s.get("v", 0.0) + g
        return w - rate * decay * w - rate * (g + mu * s["v"] if nesterov else s["v"])

    return step


def adagrad(rate, initial, eps=f(1e-7)):
    def step(w, g, s, t):
        s["a"] = s.get("a", initial) + g * g
        return w - rate * g / (math.sqrt(s["a"]) + eps)

    return step


def adam(rate, b1=f(0.9), b2=f(0.999), eps=f(1e-7), amsgrad=False, decay=0.0):
    def step(w, g, s, t):
        s["m"] = b1 * s.get("m", 0.0) + (1 - b1) * g
        s["v"] = b2 * s.get("v", 0.0) + (1 - b2) * g * g
        s["max"] = max(s.get("max", 0.0), s["v"])
        alpha = rate * math.sqrt(1 - b2**t) / (1 - b1**t)
        return w - rate * decay * w - alpha * s["m"] / (math.sqrt(s["max"] if amsgrad else s["v"]) + eps)

    return step


run("sgd", sgd(f(0.1)))
run("sgd, decay", sgd(f(0.1), decay=f(0.01)))
run("momentum", sgd(f(0.1), f(0.9)))
run("nesterov", sgd(f(0.1), f(0.9), True))
run("adagrad", adagrad(f(0.5), f(0.1)))
run("adam", adam(f(0.05)))
run("adamw", adam(f(0.05), decay=f(0.01)))
run("amsgrad", adam(f(0.05), b2=f(0.5), amsgrad=True))
