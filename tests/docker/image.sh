#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: image.sh ROOT PROGRAM [DATA]
# An image with PROGRAM, the MNIST example, and what it links trains, as a user who is nobody, on a file system that nobody can
# write to, as a job of four processes. DATA is a folder with MNIST's published files; without it drawn digits are learned.
# Ends with 77 where no container engine runs and none can be started.
set -eu
root=$1 program=$2 data=${3-}
work=$(mktemp -d)
daemon=''
docker=${EDL_DOCKER:-docker}
image=edl-test:$$

finish() {
  code=$?
  trap - EXIT
  $docker image rm --force "$image" >/dev/null 2>&1 || true
  if [ -n "$daemon" ]; then
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" || true
  fi
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 1' INT TERM

skip() { echo "SKIPPED: $1"; exit 77; }
fail() { echo "$1" >&2; exit 1; }

command -v "$docker" >/dev/null || skip "there is no container engine: no program $docker"
if ! $docker info >/dev/null 2>"$work/refusal"; then
  [ "$(id -u)" -eq 0 ] && command -v dockerd >/dev/null ||
    skip "no container engine runs, and this user cannot start one: $(tail -n 1 "$work/refusal")"
  export DOCKER_HOST="unix://$work/engine"
  dockerd --host "$DOCKER_HOST" --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" \
    --iptables=false --ip6tables=false --bridge=none >"$work/engine.log" 2>&1 &
  daemon=$!
  tries=0
  until $docker info >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 60 ] && kill -0 "$daemon" 2>/dev/null ||
      skip "dockerd does not start here: $(grep -v level=info "$work/engine.log" | tail -n 1)"
    sleep 1
  done
fi

"$root/docker/pack" --all --strip "$work/image" "$program"
$docker build --quiet --tag "$image" --build-arg BASE_IMAGE=scratch --file "$root/docker/Dockerfile.packed" "$work/image" \
  >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the image was not built"; }
[ "$($docker image inspect --format '{{.Config.User}}' "$image")" = 65532:65532 ] || fail "the image's user is not 65532"
echo "image: $($docker image inspect --format '{{.Size}}' "$image") bytes, from nothing, with the C and C++ libraries"

# No more than a pod gets that may do nothing: no capability, no network but the loopback, only /tmp to write to.
training=synthetic:train validation=synthetic:test
set -- --rm --read-only --tmpfs /tmp --network=none --cap-drop=ALL --security-opt=no-new-privileges
if [ -n "$data" ] && [ -d "$data" ]; then
  training=/data/train validation=/data/test
  set -- "$@" --volume "$data:/data:ro"
fi
$docker run "$@" "$image" mnist train --training_data="$training" --validation_data="$validation" --max_step=80 --minibatch_size=32 \
  --num_ps_pods=1 --num_workers=2 --kernel_cache=/tmp/kernels >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; fail "training in the container ended with an error"; }
grep "Evaluation metrics" "$work/log" | tail -n 1 | tee "$work/last"
grep -Eq "'accuracy': (0\.[89]|1)" "$work/last" || { cat "$work/log" >&2; fail "less than 0.8 of the digits were recognised"; }
