#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: tokens.sh EDL WORK
# Hugging Face's tokenizers read what `edl data train-tokenizer` writes, and give texts the tokens that `edl data tokenize`
# gives them. Skipped without npm's @huggingface/tokenizers; npm fetches it where there is npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
edl=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
# Where nobody names a folder with it, npm fetches it once.
reference=${EDL_TOKENIZERS-$work/../tokenizers}
has_reference() { (cd "$reference" && node -e 'require("node:module").createRequire(process.cwd() + "/")("@huggingface/tokenizers")') 2>/dev/null; }
if [ -z "${EDL_TOKENIZERS-}" ] && command -v npm >/dev/null; then
  mkdir -p "$reference"
  has_reference || timeout 200 npm install --prefix "$reference" --ignore-scripts --no-audit --no-fund --no-save \
    @huggingface/tokenizers@0.2.0 >"$work/npm.log" 2>&1 || tail -n 3 "$work/npm.log"
fi
if ! has_reference; then
  echo "skipped: Hugging Face's tokenizers are not there: npm install --ignore-scripts @huggingface/tokenizers, and name the folder by EDL_TOKENIZERS"
  exit 77
fi
cd "$reference"
exec node "$here/tokens.mjs" "$edl" "$work"
