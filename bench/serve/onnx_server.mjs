#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// A minimal server over ONNX Runtime, for bench-serve: node's http, a thread that computes, no protocol. The body of POST /
// is records of float32 as bytes, and so is the answer; that of POST /json is {"instances": [[…]]}. What waits while
// a batch is computed is the next one. It says its port on its first line. Needs npm's onnxruntime-node, found from the
// folder that this is started in:
//
// onnx_server.mjs MODEL.onnx MOST EXTENT…
import http from "node:http";
import { createRequire } from "node:module";

const runtime = createRequire(process.cwd() + "/")("onnxruntime-node");
const [file, most, ...extents] = process.argv.slice(2);
const each = extents.reduce((a, b) => a * Number(b), 1);
const session = await runtime.InferenceSession.create(file, {
  intraOpNumThreads: 1,
  graphOptimizationLevel: "all",
});
const input = session.inputNames[0], output = session.outputNames[0];

let waiting = [], computing = false;
async function compute() {
  computing = true;
  while (waiting.length > 0) {
    let rows = 0, n = 0;
    while (n < waiting.length && (n === 0 || rows + waiting[n].rows <= Number(most))) rows += waiting[n++].rows;
    const batch = waiting.splice(0, n);
    let data = batch[0].data;
    if (n > 1) {
      data = new Float32Array(rows * each);
      let at = 0;
      for (const one of batch) {
        data.set(one.data, at);
        at += one.data.length;
      }
    }
    const dims = [rows, ...extents.map(Number)];
    const said = (await session.run({ [input]: new runtime.Tensor("float32", data, dims) }))[output].data;
    const width = said.length / rows;
    let at = 0;
    for (const one of batch) {
      one.answer(said.subarray(at, at + one.rows * width));
      at += one.rows * width;
    }
  }
  computing = false;
}

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", () => {
    const body = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
    const json = request.url === "/json";
    let data;
    if (json) data = Float32Array.from(JSON.parse(body).instances.flat());
    else if (body.byteOffset % 4 === 0) data = new Float32Array(body.buffer, body.byteOffset, body.length / 4);
    else data = new Float32Array(Uint8Array.prototype.slice.call(body).buffer);
    const rows = data.length / each;
    waiting.push({
      data,
      rows,
      answer(numbers) {
        const text = json
          ? Buffer.from(JSON.stringify({ predictions: [Array.from(numbers)] }))
          : Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength);
        response.writeHead(200, {
          "Content-Type": json ? "application/json" : "application/octet-stream",
          "Content-Length": text.length,
        });
        response.end(text);
      },
    });
    if (!computing) compute();
  });
});
server.keepAliveTimeout = 3600_000;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
