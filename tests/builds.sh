#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: builds.sh [N | --list]: builds `mnist` and `edl` in the ways that the documents name, and runs both: all ways, or
# the N-th. Every pair of values of two columns stands in a line of the first ten. -O0, because what is inlined hides what is
# missing; headers of others, and the messages, are read once for all units.
set -eu
cd "$(dirname "$0")/.."
ways='
1  OFF Release        newer static oneDNN    no-CUDA compiled
2  OFF RelWithDebInfo newer shared no-oneDNN no-CUDA compiled
3  OFF Debug          older shared oneDNN    no-CUDA compiled
4  OFF Release        older shared no-oneDNN no-CUDA compiled
5  ON  RelWithDebInfo older shared no-oneDNN no-CUDA compiled
6  ON  Debug          newer static no-oneDNN CUDA    compiled
7  ON  Release        g++   shared oneDNN    CUDA    compiled
8  OFF RelWithDebInfo older static oneDNN    CUDA    compiled
9  OFF Debug          g++   shared no-oneDNN no-CUDA compiled
10 ON  RelWithDebInfo g++   static no-oneDNN no-CUDA compiled
11 ON  Debug          g++   static oneDNN    no-CUDA header-only
12 ON  Release        newer static no-oneDNN no-CUDA header-only
13 ON  Release        arm64 static no-oneDNN no-CUDA compiled
'
newer=clang++-19 older=clang++-17
grep -qs '^VERSION_ID="12"' /etc/os-release && older=clang++-16  # the oldest of each Debian that can build edl
case "${1-}" in
  --list) echo "$ways"; exit 0 ;;
  '') chosen=$(echo "$ways" | cut -d ' ' -f 1) ;;
  *) chosen=$1 ;;
esac

built=0 left_out=
for number in $chosen; do
  line=$(echo "$ways" | grep "^$number ") || { echo "tests/builds.sh: there is no way $number; --list shows them" >&2; exit 1; }
  # shellcheck disable=SC2086
  set -- $line
  unity=$2 type=$3 linking=$5 onednn=$6 cuda=$7 form=$8
  emulator=
  case $4 in
    newer) compiler=$newer ;;
    older) compiler=$older ;;
    arm64) compiler=aarch64-linux-gnu-g++ emulator=qemu-aarch64-static ;;
    *) compiler=$4 ;;
  esac
  shown="unity $unity, $type, $compiler, $linking, $onednn, $cuda, $form"
  if [ "$emulator" ]; then set -- --toolchain cmake/aarch64.cmake; else set -- "-DCMAKE_CXX_COMPILER=$compiler"; fi
  [ -z "$emulator" ] || dpkg-query -W libprotobuf-dev:arm64 >/dev/null 2>&1 ||
    { left_out="$left_out $number (tools/install-packages --arm64 installs what it needs)"; continue; }
  command -v "$compiler" >/dev/null || tools/install-packages "clang-${compiler##*-}" ||
    { left_out="$left_out $number ($compiler is not installed)"; continue; }
  [ "$cuda" = no-CUDA ] || command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || cuda=no-CUDA
  [ "$onednn" = no-oneDNN ] && onednn=OFF || onednn=ON
  [ "$cuda" = no-CUDA ] && cuda=OFF || cuda=ON
  [ "$linking" = shared ] && shared=ON || shared=OFF
  echo "== build $number: $shown"
  work=$PWD/build/builds/$number source=. flags="-fPIC -O0"
  mkdir -p "$work"
  : >"$work/others.cmake"
  if [ "$form" = header-only ]; then
    source=tests/package/header_only
  elif [ "${compiler%g++}" = "$compiler" ]; then  # GCC would be no faster
    # errno of mathematics: some units choose it, and it must be one. g++ of the other builds checks formats, and warns.
    flags="$flags -fno-math-errno -w -DFMT_CONSTEVAL="
    cat >"$work/others.hpp" <<'EOF'
#include <Eigen/Core>
#include <asio.hpp>
#include <edl/base/wire/edl.pb.h>
#include <filesystem>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <regex>
#include <xtensor/xadapt.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
EOF
    cat >"$work/others.cmake" <<EOF
set(with_edl \$<AND:\$<COMPILE_LANGUAGE:CXX>,\$<NOT:\$<STREQUAL:\$<TARGET_PROPERTY:NAME>,edl-cuda>>>)
add_compile_options("\$<\${with_edl}:SHELL:-include-pch $work/others.hpp.pch>")
EOF
  fi
  cmake -S "$source" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE="$type" "$@" -DEDL_UNITY="$unity" \
    -DBUILD_SHARED_LIBS=$shared -DEDL_ONEDNN="$onednn" -DEDL_CUDA="$cuda" -DCMAKE_CUDA_ARCHITECTURES=80 -DEDL_TESTS=OFF \
    "-DCMAKE_CXX_FLAGS=$flags" -DCMAKE_PROJECT_INCLUDE="$work/others.cmake" -DCMAKE_CXX_FLAGS_RELEASE=-DNDEBUG -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-DNDEBUG -DCMAKE_CXX_FLAGS_DEBUG= \
    >"$work.log" 2>&1 || { cat "$work.log" >&2; exit 1; }
  if [ -e "$work/others.hpp" ]; then
    [ "$type" = Debug ] && debug= || debug=-DNDEBUG
    cmake --build "$work" --target edl_messages >"$work.log" 2>&1 || { tail -n 60 "$work.log" >&2; exit 1; }
    # shellcheck disable=SC2086
    "$compiler" -std=gnu++20 -march=x86-64-v3 $flags $debug -fpch-instantiate-templates -isystem "$work/generated" -I/usr/include/eigen3 \
      -DASIO_STANDALONE -DASIO_SEPARATE_COMPILATION -DASIO_DISABLE_STD_ALIGNED_ALLOC -DASIO_HAS_CO_AWAIT=1 \
      -DASIO_HAS_STD_COROUTINE=1 -DFMT_SHARED -x c++-header "$work/others.hpp" -o "$work/others.hpp.pch"
  fi
  set -- mnist
  [ "$form" = header-only ] || set -- mnist edl-tool
  [ "$cuda" = OFF ] || set -- "$@" edl-cuda
  cmake --build "$work" -j 2 --target "$@" >"$work.log" 2>&1 || { tail -n 60 "$work.log" >&2; echo "build $number fails: $shown" >&2; exit 1; }
  for program in mnist edl; do
    [ "$form $program" != "header-only edl" ] || continue
    $emulator "$(find "$work" -name $program -type f -perm -u+x)" --help >/dev/null
  done
  rm -rf "$work"
  built=$((built + 1))
done
[ -z "$left_out" ] || echo "left out:$left_out"
[ "$built" -gt 0 ] || exit 1
echo "$built builds are linked and run"
