#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: context.sh ROOT COMPILER
# What the development images copy is all that they build edl from, as docker/install-edl does. It needs no engine.
set -eu
root=$1
export CXX=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in Dockerfile.dev Dockerfile.cuda; do
  edl=$work/$file
  mkdir "$edl"
  grep '^COPY .* /opt/edl' "$root/docker/$file" | while read -r _ copied; do
    to=$edl${copied##* /opt/edl}
    for from in ${copied% *}; do
      mkdir -p "$to"
      if [ -d "$root/$from" ]; then cp -r "$root/$from/." "$to"; else cp "$root/$from" "$to"; fi
    done
  done
  cmake -S "$edl" -B "$edl/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DEDL_TESTS=OFF -DEDL_UNITY=ON -DEDL_CUDA=OFF \
    >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "$file copies too little to configure edl" >&2; exit 1; }
  ninja -n -C "$edl/build" edl edl-tool edl-controller mnist >"$work/log" 2>&1 ||
    { tail -n 5 "$work/log" >&2; echo "$file copies too little to build edl" >&2; exit 1; }
  find "$edl/build" -name cmake_install.cmake -exec grep -ho "\"$edl/[^\"]*\"" {} + | tr -d '"' | grep -v "^$edl/build/" |
    while read -r installed; do
      [ -e "$installed" ] || { echo "$file copies too little to install edl: $installed is missing" >&2; exit 1; }
    done
done
