#!/bin/sh
# The program $1 knows the published names of its 152 variables: of a file with one of them it misses the others. (The
# whole network is too large for a test.)
set -eu
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "$1" >&2; exit 1; }

head='{"classifier.bias":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}}      '
[ ${#head} -eq 80 ]  # the length of the head, in 8 bytes
{ printf 'P\000\000\000\000\000\000\000%s' "$head"; head -c 4000 /dev/zero; } >"$work/part.safetensors"
"$program" evaluate --validation_data=synthetic:pictures --checkpoint_dir_for_init="$work/part.safetensors" \
  >"$work/log" 2>&1 && fail "a part of a model was taken"
for said in 'found: 1 (dense/bias)' 'not found: 151 (' "patch_tokens/token ('vit.embeddings.cls_token')" \
  "repeat/sequential/residual/body/attention/query_key_value_kernel ('vit.encoder.layer.0.attention.attention.{query,key,value}.weight')"; do
  grep -qF "$said" "$work/log" || fail "it does not say: $said"
done
