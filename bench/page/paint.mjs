#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// How soon a page is painted: paint.mjs URL [TURNS]. Debian's Chromium, without a screen, opens it so often, each time
// without what it knows of the time before. Prints milliseconds from the navigation, those of a page of one word opened in
// turns with it, which no page is below, and the bytes of the document.
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const [url, turns = "11"] = process.argv.slice(2);
if (!url || !(Number(turns) > 0)) {
  console.error("usage: paint.mjs URL [TURNS]");
  process.exit(2);
}
const profile = fs.mkdtempSync(path.join(os.tmpdir(), "paint-"));
const browser = spawn(
  "chromium", ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", `--user-data-dir=${profile}`, "--remote-debugging-pipe"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true });
browser.on("error", (bad) => {
  console.error(`chromium cannot be started: ${bad.message}`);
  process.exit(1);
});

let calls = 0, text = "", session;
const answers = new Map(), waiting = new Map();
browser.stdio[4].on("data", (piece) => {
  const all = (text + piece).split("\0");
  text = all.pop();
  for (const one of all.map((t) => JSON.parse(t)))
    if (one.id) answers.get(one.id)(one), answers.delete(one.id);
    else if (waiting.has(one.method)) waiting.get(one.method)(), waiting.delete(one.method);
});
const call = (method, params = {}) => new Promise((done, failed) => {
  answers.set(++calls, (a) => (a.error ? failed(new Error(`${method}: ${a.error.message}`)) : done(a.result)));
  browser.stdio[3].write(`${JSON.stringify({ id: calls, method, params, sessionId: session })}\0`);
});
const event = (method) => new Promise((done) => waiting.set(method, done));
const run = async (expression) =>
  (await call("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true })).result.value;

const quantile = (all, q) => all[Math.min(all.length - 1, Math.floor(q * all.length))];
try {
  const { targetId } = await call("Target.createTarget", { url: "about:blank" });
  session = (await call("Target.attachToTarget", { targetId, flatten: true })).sessionId;
  for (const part of ["Page.enable", "Network.enable"]) await call(part);
  await call("Network.setCacheDisabled", { cacheDisabled: true });
  const open = async (address) => {
    const loaded = event("Page.loadEventFired");
    const { errorText } = await call("Page.navigate", { url: address });
    if (errorText) throw new Error(`${address}: ${errorText}`);
    await loaded;
    return run(`new Promise(done => {
      const look = () => {
        const painted = performance.getEntriesByName('first-contentful-paint')[0];
        if (painted) done({ms: painted.startTime, bytes: performance.getEntriesByType('navigation')[0].decodedBodySize});
        else setTimeout(look, 5);
      };
      look(); })`);
  };
  const times = { page: [], "one word": [] };
  let bytes = 0;
  for (let turn = 0; turn <= Number(turns); ++turn) {
    const word = await open("data:text/html,<p>word</p>"), page = await open(url);
    bytes = page.bytes;
    if (turn > 0) times.page.push(page.ms), times["one word"].push(word.ms);  // the first one warms up
  }
  for (const [name, all] of Object.entries(times)) {
    all.sort((a, b) => a - b);
    console.log(`${name}: first contentful paint after ${quantile(all, 0.5).toFixed(0)} ms (median), ${all[0].toFixed(0)} to ${all.at(-1).toFixed(0)} ms, ${all.length} turns`);
  }
  console.log(`document: ${bytes} bytes`);
} catch (bad) {
  console.error(bad.message);
  process.exitCode = 1;
}
browser.once("exit", () => fs.rmSync(profile, { recursive: true, force: true }));
process.kill(-browser.pid, "SIGKILL");
