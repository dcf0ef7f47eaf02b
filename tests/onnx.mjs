#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Computes models of ONNX, DIR/NAME.onnx, with the records of DIR/NAME.json, and compares what comes out with what edl
// made of them: onnx.mjs DIR. Needs npm's onnxruntime-node, found from the folder that this is started in.
import fs from "node:fs";
import { createRequire } from "node:module";

const runtime = createRequire(process.cwd() + "/")("onnxruntime-node");
const folder = process.argv[2];
let failed = 0;
for (const file of fs.readdirSync(folder).filter((f) => f.endsWith(".json")).sort()) {
  const name = file.slice(0, -5);
  const { inputs, outputs } = JSON.parse(fs.readFileSync(`${folder}/${file}`));
  const session = await runtime.InferenceSession.create(`${folder}/${name}.onnx`);
  const feeds = {};
  for (const [input, { type, dims, data }] of Object.entries(inputs))
    feeds[input] = new runtime.Tensor(
      type, type === "int64" ? BigInt64Array.from(data.map(BigInt)) : Float32Array.from(data), dims);
  const results = await session.run(feeds);
  const all = session.outputNames.map((output) => results[output]);
  const samples = all[0].dims[0];
  const rows = [];
  for (let i = 0; i < samples; ++i)
    for (const { data } of all)
      for (const y of data.slice((i * data.length) / samples, ((i + 1) * data.length) / samples)) rows.push(y);
  const size = outputs.reduce((most, y) => Math.max(most, Math.abs(y)), 1);  // a sum of large numbers may be small, and as far off as they
  let worst = rows.length === outputs.length ? 0 : Infinity;
  for (let i = 0; i < rows.length; ++i) {
    const off = Math.abs(rows[i] - outputs[i]) / size;
    if (!(off <= worst)) worst = Number.isNaN(off) ? Infinity : off;
  }
  const good = worst <= 1e-5;
  if (!good) ++failed;
  console.log(`${good ? "same" : "OTHER"} ${name}: ${session.inputNames} -> ${session.outputNames}, ${worst.toExponential(1)}`);
}
process.exit(failed ? 1 : 0);
