#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Forward passes of ONNX Runtime, for bench-train --forward: reads "steps N" or "memory" by lines, answers with one
// line each. Needs npm's onnxruntime-node, found from the folder that this is started in, and the models that
// `bench-train export` writes:
//
// onnx_peer.mjs --models DIR --workload mnist --batch 64 --threads 2 --forward
import fs from "node:fs";
import { createRequire } from "node:module";
import readline from "node:readline";
import { parseArgs } from "node:util";

const runtime = createRequire(process.cwd() + "/")("onnxruntime-node");
const text = { type: "string" };
const { values: options } = parseArgs({
  options: { models: text, workload: text, batch: text, threads: text, forward: { type: "boolean" } },
});
if (!options.forward) throw new Error("onnx_peer.mjs: there is no training; bench-train needs --forward");
const session = await runtime.InferenceSession.create(`${options.models}/${options.workload}.onnx`, {
  intraOpNumThreads: Number(options.threads),
  graphOptimizationLevel: "all",
});
const samples = { mnist: [28, 28, 1], mlp: [784], cifar: [32, 32, 3], resnet20: [32, 32, 3], resnet18: [32, 32, 3] };
const dims = [Number(options.batch), ...samples[options.workload]];
const numbers = Float32Array.from({ length: dims.reduce((a, b) => a * b) }, Math.random);
const inputs = { [session.inputNames[0]]: new runtime.Tensor("float32", numbers, dims) };

for (let i = 0; i < 3; ++i) await session.run(inputs);
console.log("ready");
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [what, count] = line.split(" ");
  if (what === "steps") {
    const times = [];
    for (let i = 0; i < Number(count); ++i) {
      const begin = performance.now();
      await session.run(inputs);
      times.push((performance.now() - begin).toFixed(6));
    }
    console.log(times.join(" "));
  } else {
    console.log(Number(/VmHWM:\s+(\d+)/.exec(fs.readFileSync("/proc/self/status", "utf8"))[1]) * 1024);
  }
}
