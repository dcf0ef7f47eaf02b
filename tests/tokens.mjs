#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Trains tokenizers with EDL, and compares its tokens of a text with those of @huggingface/tokenizers, found from the folder
// that this is started in: tokens.mjs EDL WORK.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";

const { Tokenizer } = createRequire(process.cwd() + "/")("@huggingface/tokenizers");
const [edl, work] = process.argv.slice(2);

// Words, numbers, code, emoji, marks and blanks by a rule.
const words = ["the", "tokens", "don't", "WE'LL", "I'd", "naïve", "Straße", "e\u0301", "a\u0323\u0308", "你好世界", "مرحبا", "हिन्दी",
  "한국어", "\u1112\u1161\u11ab", "😀", "👩‍👩‍👧", "1234567", "3.14", "٣", "for (int i = 0; i < n; ++i) {", "==", "\u00a0", "\u2028", "ſ'ſ",
  "<|endoftext|>", "<|endoftext", "\ufb01", "Å"];
const blanks = [" ", " ", "  ", "\n", "\n\n", "\t", "\r\n", "   \n  ", ""];
let seed = 1;
const draw = (n) => (seed = (seed * 48271) % 2147483647) % n;
let text = "";
for (let i = 0; i < 6000; ++i) text += words[draw(words.length)] + blanks[draw(blanks.length)];
const bytes = Buffer.from(text);
for (let i = 0; i < 200; ++i) bytes[draw(bytes.length)] = draw(256);  // not UTF-8 any more
fs.writeFileSync(`${work}/text.txt`, text);
fs.writeFileSync(`${work}/bytes.txt`, bytes);

const tokens = (file) => {
  const all = fs.readFileSync(file);
  const width = all.readUInt32LE(12), count = Number(all.readBigUInt64LE(24));
  return Array.from({ length: count }, (_, i) => all.readUIntLE(64 + i * width, width));
};
let failed = 0;
const compare = (name, json) => {
  fs.writeFileSync(`${work}/${name}.json`, JSON.stringify(json));
  const by = new Tokenizer(json, {});
  for (const file of ["text", "bytes"]) {
    execFileSync(edl, ["data", "tokenize", `--tokenizer=${work}/${name}.json`, `--output=${work}/tokens`, `${work}/${file}.txt`]);
    const ours = tokens(`${work}/tokens`);
    const theirs = by.encode(fs.readFileSync(`${work}/${file}.txt`, "utf8"), { add_special_tokens: false }).ids;
    let at = 0;
    while (at < ours.length && ours[at] === theirs[at]) ++at;
    const same = at === ours.length && at === theirs.length;
    if (!same) ++failed;
    console.log(`${same ? "same" : "OTHER"} ${name} ${file}: ${ours.length} tokens` + (same ? "" : `, from ${at} on ` +
      `${JSON.stringify(by.decode(ours.slice(at, at + 4)))} for ${JSON.stringify(by.decode(theirs.slice(at, at + 4)))}`));
  }
};
for (const cuts of ["gpt2", "llama3", "qwen2"]) {
  execFileSync(edl, ["data", "train-tokenizer", `--cuts=${cuts}`, "--vocab_size=450", `--output=${work}/made.json`, `${work}/text.txt`]);
  const json = JSON.parse(fs.readFileSync(`${work}/made.json`));
  compare(cuts, json);
  if (cuts === "qwen2") compare("nfc", { ...json, normalizer: { type: "NFC" } });
  if (cuts === "llama3") {
    const pairs = json.model.merges.map((both) => both.split(" "));
    compare("pairs", { ...json, model: { ...json.model, merges: pairs, ignore_merges: true } });
  }
  if (cuts === "gpt2") {
    const level = { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true };
    compare("prefix", { ...json, pre_tokenizer: level });
    // Its Digits knows ASCII's alone, so a Split stands for it.
    compare("digits", { ...json, pre_tokenizer: { type: "Sequence", pretokenizers: [
      { type: "Split", pattern: { Regex: "\\p{N}" }, behavior: "Isolated", invert: false },
      { ...level, add_prefix_space: false }] } });
  }
}
process.exit(failed ? 1 : 0);
