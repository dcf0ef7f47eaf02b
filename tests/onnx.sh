#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: onnx.sh NETWORKS MNIST FRAPPE EDL WORK RECURRENT IMPORTED
# Models of ONNX are valid, and ONNX Runtime makes of records what edl makes of them: of NETWORKS with random variables, of
# the trained programs MNIST and FRAPPE (tables), and of RECURRENT, the model that was imported in the folder IMPORTED.
# Without onnxruntime-node or python3-onnx that part is skipped; npm fetches the former where there is npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
networks=$1 mnist=$2 frappe=$3 edl=$4 work=$5 recurrent=$6 imported=$7
rm -rf "$work"
mkdir -p "$work/models" "$work/files"
cd "$work"

"$networks" models

# Pictures and rows of ids by a rule, as files that edl reads and as tensors.
cat >draw.py <<'EOF'
import json, struct
n = 20
pixels = bytes((i * i * 7 + i // 50) % 256 for i in range(n * 784))
with open("files/t10k-images-idx3-ubyte", "wb") as f:
    f.write(struct.pack(">4i", 2051, n, 28, 28) + pixels)
with open("files/t10k-labels-idx1-ubyte", "wb") as f:
    f.write(struct.pack(">2i", 2049, n) + bytes(i % 10 for i in range(n)))
picture = lambda data: {"type": "float32", "dims": [n, 28, 28, 1], "data": data}
json.dump({"input": picture([p / 255 for p in pixels])}, open("mnist.json", "w"))
json.dump({"image": picture(list(pixels))}, open("mnist-record.json", "w"))
rows = [[(i * 31 + k * k) % 97 + 100 * k for k in range(10)] for i in range(200)]
with open("rows.libfm", "w") as f:
    for i, row in enumerate(rows):
        f.write(f"{1 if i % 3 else -1} " + " ".join(f"{k}:1" for k in row) + "\n")
ids = {"type": "int64", "dims": [200, 10], "data": [str(k) for row in rows for k in row]}
ones = {"type": "float32", "dims": [200, 10], "data": [1] * 2000}
steps = [[(i * 37 + k * 11) % 19 / 9 - 1 for k in range(15)] for i in range(6)]
with open("steps.jsonl", "w") as f:
    for row in steps:
        f.write(json.dumps({"x": row}) + "\n")
json.dump({"x": {"type": "float32", "dims": [6, 5, 3], "data": [x for row in steps for x in row]}}, open("recurrent.json", "w"))
json.dump({"weights": ids, "weights_weights": ones, "vectors": ids}, open("frappe.json", "w"))
EOF
python3 draw.py

# NAME PROGRAM DATA: what a job exports at its end is what `export` makes of its checkpoint, and predicts the same.
try() {
  "$2" train --training_data="$3" --num_epochs=2 --minibatch_size=10 --checkpoint_dir="$1-c" --output="$1-m" \
    --export_onnx="models/trained_$1.onnx" 2>"$1.log"
  "$2" export --checkpoint_dir_for_init="$1-c" --export_onnx="$1.onnx" 2>>"$1.log"
  cmp "$1.onnx" "models/trained_$1.onnx"
  compare "$1" "$2" "$3" "$1-c" "models/trained_$1"
}
# NAME PROGRAM DATA WEIGHTS MODEL: what the program predicts stands beside the model.
compare() {
  "$2" predict --prediction_data="$3" --checkpoint_dir_for_init="$4" --prediction_outputs="$1-p" \
    --prediction_format=jsonl 2>>"$1.log"
  cp "$1-p/predictions.jsonl" "$1.jsonl"
  python3 -c 'import json, sys
name, model = sys.argv[1:]
outputs = []
for line in open(name + ".jsonl"):
    said = json.loads(line)["output"]
    outputs += said if isinstance(said, list) else [said]
json.dump({"inputs": json.load(open(name + ".json")), "outputs": outputs}, open(model + ".json", "w"))' "$1" "$5"
}
try mnist "$mnist" files
try frappe "$frappe" rows.libfm
cp "$imported/recurrent.onnx" models/imported_recurrent.onnx
compare recurrent "$recurrent" steps.jsonl "$imported/recurrent.safetensors" models/imported_recurrent

# What a record has is the input of what `feed` is put into, with the same predictions.
"$edl" export "$mnist" --checkpoint_dir_for_init=mnist-c --export_onnx=models/record_mnist.onnx --export_preprocess \
  --export_fold_batch_norm 2>>mnist.log
python3 -c 'import json
json.dump({"inputs": json.load(open("mnist-record.json")), "outputs": json.load(open("models/trained_mnist.json"))["outputs"]},
          open("models/record_mnist.json", "w"))'

# The zoo's networks come back as docs/tasks/import.md says.
echo "| network | comes back |" >back.md
echo "|---|---|" >>back.md
for network in mnist_main mnist_accurate mnist_subclass cifar10_resnet20 cifar10_mobilenetv2 imagenet_resnet50 pictures_main \
    census_main criteo_dcn criteo_wide_deep criteo_xdeepfm criteo_deepfm_served_rows criteo_deepfm_served char_lstm \
    char_transformer sentence_classifier; do
  if "$edl" import "models/$network.onnx" --to=back --force >/dev/null 2>back.log; then
    said=yes
  else
    said=$(sed -n "s/.*not imported: .*(\([A-Za-z]*\)): \(.*\)/no: \`\1\`, \2/p" back.log | head -n 1)
  fi
  echo "| \`$network\` | $said |" >>back.md
done
sed -n '/^| network | comes back |/,/^$/p' "$here/../docs/tasks/import.md" | sed '/^$/d' >said.md
diff said.md back.md || { echo "docs/tasks/import.md says otherwise of the zoo (<) than edl import (>)"; exit 1; }

code=0
if /usr/bin/python3 -c 'import onnx' 2>/dev/null; then
  /usr/bin/python3 "$here/onnx_check.py" models/*.onnx
else
  echo "skipped: the checker of ONNX is not there: apt-get install python3-onnx"
  code=77
fi
# Where nobody names a folder with it, npm fetches it once.
runtime=${EDL_ONNXRUNTIME:-$work/../onnxruntime}
has_runtime() { (cd "$runtime" && node -e 'require("node:module").createRequire(process.cwd() + "/")("onnxruntime-node")') 2>/dev/null; }
if [ -z "${EDL_ONNXRUNTIME-}" ] && command -v npm >/dev/null; then
  mkdir -p "$runtime"
  has_runtime || timeout 200 npm install --prefix "$runtime" --ignore-scripts --no-audit --no-fund --no-save \
    onnxruntime-node@1.30.0 >npm.log 2>&1 || tail -n 3 npm.log
fi
if has_runtime; then
  cd "$runtime"
  node "$here/onnx.mjs" "$work/models"
else
  echo "skipped: ONNX Runtime is not there: npm install --ignore-scripts onnxruntime-node, and name the folder by EDL_ONNXRUNTIME"
  code=77
fi
exit $code
