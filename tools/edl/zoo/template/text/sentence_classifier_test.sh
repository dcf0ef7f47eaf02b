#!/bin/sh
# The program $1 learns which sentences praise: they say good, but not "not good". No word alone tells it, and the words
# around say nothing. Sentences have 3 to 60 words, most of them few.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

draw() {
  awk -v seed="$1" -v count="$2" 'BEGIN {
    srand(seed)
    for (i = 0; i < count; ++i) {
      n = 3 + int(57 * rand() * rand() * rand()); at = 1 + int((n - 1) * rand()); praises = rand() < 0.5; other = at
      while (other == at || other == at + 1) other = 1 + int(n * rand())
      text = ""
      for (k = 1; k <= n; ++k) {
        word = "w" int(200 * rand())
        if (k == at + 1) word = "good"
        if (k == (praises ? other : at)) word = "not"
        text = text (k > 1 ? " " : "") word
      }
      printf "{\"text\": \"%s\", \"label\": %d}\n", text, praises
    }
  }'
}
draw 1 3000 >"$work/train.jsonl"
draw 2 500 >"$work/test.jsonl"
"$program" train --training_data="$work/train.jsonl" --validation_data="$work/test.jsonl" --num_epochs=3 --num_threads=1 \
  --minibatch_size=32 >"$work/log" 2>&1 || fail "training ended with code $?"
grep "Evaluation metrics" "$work/log" | tail -n 1 | grep -Eq "'accuracy': (0\.9|1)" || fail "the accuracy is below 0.9"
