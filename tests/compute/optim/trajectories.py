#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the values that the tests of optimisers pin: five steps on three weights, in double, with options
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


def rmsprop(rate, rho=f(0.9), mu=0.0, eps=f(1e-7), centered=False, decay=0.0):
    def step(w, g, s, t):
        s["v"] = rho * s.get("v", 0.0) + (1 - rho) * g * g
        s["a"] = rho * s.get("a", 0.0) + (1 - rho) * g
        u = g / (math.sqrt(s["v"] - (s["a"] ** 2 if centered else 0.0)) + eps)
        s["b"] = mu * s.get("b", 0.0) + u
        return w - rate * decay * w - rate * s["b"]

    return step


def lion(rate, b1=f(0.9), b2=f(0.99), decay=0.0):
    def step(w, g, s, t):
        c = b1 * s.get("m", 0.0) + (1 - b1) * g
        s["m"] = b2 * s.get("m", 0.0) + (1 - b2) * g
        return w - rate * decay * w - rate * math.copysign(1.0, c)

    return step


run("sgd", sgd(f(0.1)))
run("sgd, decay", sgd(f(0.1), decay=f(0.01)))
run("momentum", sgd(f(0.1), f(0.9)))
run("nesterov", sgd(f(0.1), f(0.9), True))
run("adagrad", adagrad(f(0.5), f(0.1)))
run("adam", adam(f(0.05)))
run("adamw", adam(f(0.05), decay=f(0.01)))
run("amsgrad", adam(f(0.05), b2=f(0.5), amsgrad=True))
run("rmsprop", rmsprop(f(0.05)))
run("rmsprop, momentum and decay", rmsprop(f(0.05), mu=f(0.9), decay=f(0.01)))
run("rmsprop, centered", rmsprop(f(0.05), centered=True))
run("lion", lion(f(0.05)))
run("lion, decay", lion(f(0.05), f(0.5), f(0.75), decay=f(0.01)))
