#!/bin/sh
# The program $1 knows the published names of its 148 variables: of a file with one of them it misses the others. (The
# whole network is too large for a test.)
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

head='{"ln_f.bias":{"dtype":"F32","shape":[768],"data_offsets":[0,3072]}}     '
[ ${#head} -eq 72 ]  # the length of the head, in 8 bytes
{ printf 'H\000\000\000\000\000\000\000%s' "$head"; head -c 3072 /dev/zero; } >"$work/part.safetensors"
"$program" generate --model_path="$work/part.safetensors" >"$work/log" 2>&1 && fail "a part of a model was taken"
for said in 'found: 1 (layer_normalization/beta)' 'not found: 147 (' "embedding/embeddings ('wte.weight')" \
  "repeat/sequential/residual/body/attention/query_key_value_kernel ('h.0.attn.c_attn.weight')"; do
  grep -qF "$said" "$work/log" || fail "it does not say: $said"
done
