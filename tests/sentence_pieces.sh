#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: sentence_pieces.sh EDL WORK
# `edl data tokenize` gives texts the tokens that SentencePiece's own program gives them, by models that it has trained. Skipped
# without Debian's package sentencepiece.
set -eu
edl=$1 work=$2
if ! command -v spm_train >/dev/null; then
  echo "skipped: SentencePiece's programs are not there: apt-get install sentencepiece"
  exit 77
fi
rm -rf "$work"
mkdir -p "$work"
cd "$work"
cat >draw.py <<'END'
import random
random.seed(1)
words = ["the", "tokens", "don't", "WE'LL", "naïve", "Straße", "你好世界", "مرحبا", "हिन्दी", "한국어", "1234567", "3.14", "for (int i = 0;",
         "==", "<sep>", "<sep", "▁", "\u00a0", "aaaa", "aaaaaaa", "tokenize", "retoken"]
rare = ["😀", "ﷺ", "ĳ", "\ufb01", "\u2028x", "e\u0301"]
with open("train.txt", "w") as train, open("text.txt", "w") as text:
    for i in range(3000):
        line = "".join(random.choice(words) + random.choice([" ", " ", "  ", "", "\t", "    "]) for _ in range(12))
        train.write(line.replace("\t", " ") + "\n")
        text.write(random.choice(["", " ", "  "]) + line + random.choice(rare + [" ", ""]) + random.choice(words) + "\n")
END
python3 draw.py
cat >compare.py <<'END'
import struct, sys
data = open("tokens", "rb").read()
width, = struct.unpack_from("<I", data, 12)
count, documents = struct.unpack_from("<QQ", data, 24)
ids = struct.unpack_from("<%d%s" % (count, "H" if width == 2 else "I"), data, 64)
ends = struct.unpack_from("<%dQ" % documents, data, 64 + (count * width + 7) // 8 * 8)
ours = [list(ids[a:b]) for a, b in zip((0,) + ends, ends)]
theirs = [[int(i) for i in line.split()] for line in open("ids.txt")]
other = [k for k, (a, b) in enumerate(zip(ours, theirs)) if a != b]
print("OTHER" if other or len(ours) != len(theirs) else "same", sys.argv[1], len(ours), "lines,", count, "tokens", other[:5])
sys.exit(bool(other) or len(ours) != len(theirs))
END
try() {
  name=$1
  shift
  spm_train --input=train.txt --model_prefix="$name" --model_type=bpe --vocab_size=700 --hard_vocab_limit=false \
    --normalization_rule_name=identity --user_defined_symbols='<sep>' "$@" >"$name.log" 2>&1
  spm_encode --model="$name.model" --output_format=id <text.txt >ids.txt
  "$edl" data tokenize --tokenizer="$name.model" --separator='\n' --output=tokens text.txt >>"$name.log" 2>&1
  python3 compare.py "$name"
}
try plain
try llama --byte_fallback --remove_extra_whitespaces=false --split_digits --character_coverage=0.98 --allow_whitespace_only_pieces
try bare --add_dummy_prefix=false --split_by_whitespace=false --character_coverage=0.99
