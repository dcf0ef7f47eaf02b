#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: builds.sh [N | --list]: builds `mnist` and `edl` in the ways that the documents name, and runs both: all ways, or the
# N-th. Most pairs of values of two columns stand in a line; -O0, because what is inlined hides what is missing.
set -eu
cd "$(dirname "$0")/.."
ways='
1  OFF Release        g++        static oneDNN   no-CUDA compiled
2  ON  Release        clang++-19 shared no-oneDNN no-CUDA compiled
3  OFF Debug          clang++-19 static no-oneDNN CUDA    compiled
4  ON  Debug          g++        shared oneDNN   CUDA    compiled
5  OFF RelWithDebInfo clang++-13 shared oneDNN   no-CUDA compiled
6  ON  RelWithDebInfo g++        static no-oneDNN CUDA    compiled
7  ON  Debug          clang++-13 static no-oneDNN no-CUDA compiled
8  OFF Release        clang++-13 shared no-oneDNN CUDA    compiled
9  ON  RelWithDebInfo clang++-19 static oneDNN   no-CUDA compiled
10 OFF Debug          g++        shared no-oneDNN no-CUDA compiled
11 ON  Release        g++        static oneDNN   no-CUDA header-only
12 ON  RelWithDebInfo clang++-19 static no-oneDNN no-CUDA header-only
'
count=$(echo "$ways" | grep -c '[0-9] ')
case "${1-}" in
  --list) echo "$ways"; exit 0 ;;
  '') chosen=$(seq "$count") ;;
  *) chosen=$1 ;;
esac

built=0 left_out=
for number in $chosen; do
  line=$(echo "$ways" | grep "^$number ") || { echo "tests/builds.sh: there is no way $number of $count" >&2; exit 1; }
  # shellcheck disable=SC2086
  set -- $line
  unity=$2 type=$3 compiler=$4 linking=$5 onednn=$6 cuda=$7 form=$8
  shown="unity $unity, $type, $compiler, $linking, $onednn, $cuda, $form"
  command -v "$compiler" >/dev/null || tools/install-packages "clang-${compiler##*-}" ||
    { left_out="$left_out $number ($compiler is not installed)"; continue; }
  [ "$cuda" = no-CUDA ] || command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || cuda=no-CUDA
  [ "$onednn" = no-oneDNN ] && onednn=OFF || onednn=ON
  [ "$cuda" = no-CUDA ] && cuda=OFF || cuda=ON
  [ "$linking" = shared ] && shared=ON || shared=OFF
  echo "== build $number: $shown"
  work=build/builds/$number source=.
  mkdir -p "$work"
  if [ "$form" = header-only ]; then
    source=tests/package/header_only
  fi
  cmake -S "$source" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE="$type" -DCMAKE_CXX_COMPILER="$compiler" -DEDL_UNITY="$unity" \
    -DBUILD_SHARED_LIBS=$shared -DEDL_ONEDNN="$onednn" -DEDL_CUDA="$cuda" -DCMAKE_CUDA_ARCHITECTURES=80 -DEDL_TESTS=OFF \
    -DCMAKE_CXX_FLAGS_RELEASE="-O0 -DNDEBUG" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O0 -g1 -DNDEBUG" -DCMAKE_CXX_FLAGS_DEBUG="-O0" \
    >"$work.log" 2>&1 || { cat "$work.log" >&2; exit 1; }
  set -- mnist
  [ "$form" = header-only ] || set -- mnist edl-tool
  [ "$cuda" = OFF ] || set -- "$@" edl-cuda
  cmake --build "$work" -j 2 --target "$@" >"$work.log" 2>&1 || { tail -n 60 "$work.log" >&2; echo "build $number fails: $shown" >&2; exit 1; }
  for program in mnist edl; do
    [ "$form $program" != "header-only edl" ] || continue
    "$(find "$work" -name $program -type f -perm -u+x)" --help >/dev/null
  done
  rm -rf "$work"
  built=$((built + 1))
done
[ -z "$left_out" ] || echo "left out:$left_out"
[ "$built" -gt 0 ] || exit 1
echo "$built builds are linked and run"
