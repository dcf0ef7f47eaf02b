#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: deb.sh BUILD CPACK
# Debian packages are built, and what they hold works from where it is unpacked. Ends with 77 where dpkg is not.
set -eu
build=$1 cpack=$2
command -v dpkg-shlibdeps >/dev/null || { echo "SKIPPED: dpkg-shlibdeps is not installed (Debian: dpkg-dev)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1" >&2; exit 1; }

(cd "$build" && "$cpack" -G DEB -B "$work/packages") >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "cpack failed"; }
for name in edl libedl-dev python3-edl; do
  package=$(ls "$work/packages/${name}"_*.deb) || fail "there is no package $name"
  [ -n "$(dpkg-deb --field "$package" Depends)" ] || fail "$name depends on nothing"
  echo "$(basename "$package"): $(stat -c %s "$package") bytes"
  dpkg-deb --extract "$package" "$work/root"
done

usr=$work/root/usr
version=$("$usr/bin/edl" --version)
[ "$version" = "edl $(dpkg-deb --field "$work"/packages/edl_*.deb Version)" ] || fail "edl says '$version'"
[ "$("$usr/bin/elasticdl" --version)" = "$version" ] || fail "elasticdl is not edl"
"$usr/bin/edl-controller" --help >/dev/null
bash -c ". '$usr/share/bash-completion/completions/edl' && complete -p edl" >/dev/null || fail "bash completes nothing"
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
  PYTHONPATH=$usr/lib/python3/dist-packages /usr/bin/python3 -c 'import edl; edl.open' || fail "Python finds no module edl"
fi
[ -e "$usr/include/edl/predictor.h" ] || fail "there is no header for C"
if command -v help2man >/dev/null; then
  for page in edl edl-controller; do
    gzip -cd "$usr/share/man/man1/$page.1.gz" 2>/dev/null | grep -q '^.SH' || grep -q '^.SH' "$usr/share/man/man1/$page.1" ||
      fail "$page has no manual page"
  done
fi

# A project finds the library that was unpacked.
mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(finds LANGUAGES CXX)
find_package(edl REQUIRED)
get_target_property(where edl::edl LOCATION)
message(STATUS "found ${where}")
END
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$usr" >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; fail "find_package(edl) fails"; }
grep -q "found $usr/lib" "$work/log" || { cat "$work/log" >&2; fail "another edl was found"; }
