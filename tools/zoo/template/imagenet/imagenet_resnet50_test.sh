#!/bin/sh
# The program $1 learns drawn pictures: the mean loss of its last 5 minibatches is below 0.75 of the first 5.
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

# It knows the published names of its 267 variables: of a file with one of them it misses the others.
head='{"fc.bias":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}}      '
{ printf 'H\000\000\000\000\000\000\000%s' "$head"; head -c 4000 /dev/zero; } >"$work/part.safetensors"
[ ${#head} -eq 72 ]  # the length of the head, in 8 bytes
"$program" evaluate --validation_data=synthetic:pictures --checkpoint_dir_for_init="$work/part.safetensors" \
  >"$work/log" 2>&1 && fail "a part of a model was taken"
for said in 'found: 1 (dense/bias)' 'not found: 266 (' "conv2d/kernel ('conv1.weight')"; do
  grep -qF "$said" "$work/log" || fail "it does not say: $said"
done

"$program" train --training_data=synthetic:pictures --max_step=22 --minibatch_size=8 --log_loss_steps=1 \
  --deterministic --num_threads=1 >"$work/log" 2>&1 || fail "training ended with code $?"
sed -n 's/.*Loss = \([0-9.e+-]*\),.*/\1/p' "$work/log" | awk '
  { losses[NR] = $1 }
  END {
    for (i = 0; i < 5; ++i) { first += losses[1 + i]; last += losses[NR - i] }
    exit !(NR == 22 && last < 0.75 * first)
  }' || fail "the loss did not fall enough"
