# published.sh PROGRAM WIDTH MISSING NAMES...: the program knows the published names of its variables: of a file with its
# last norm alone it misses MISSING others, NAMES among them. (Whole networks are too large for a test.)
set -eu
program=$1 width=$2 missing=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
head=$(printf '%-104s' "{\"model.norm.weight\":{\"dtype\":\"F32\",\"shape\":[$width],\"data_offsets\":[0,$((4 * width))]}}")
{ printf 'h\000\000\000\000\000\000\000%s' "$head"; head -c $((4 * width)) /dev/zero; } >"$work/part.safetensors"
if "$program" generate --model_path="$work/part.safetensors" >"$work/log" 2>&1; then
  echo "a part of a model was taken" >&2
  exit 1
fi
for said in 'found: 1 (rms_normalization/gamma)' "not found: $missing (" "embedding/embeddings ('model.embed_tokens.weight')" \
  "$@"; do
  grep -qF "$said" "$work/log" || { cat "$work/log" >&2; echo "it does not say: $said" >&2; exit 1; }
done
