#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: clang.sh COMPILER [FLAG…]: compiles with Clang what COMPILER would.
shift
for flag; do
  shift
  case $flag in -fconcepts-diagnostics-depth=*) ;; *) set -- "$@" "$flag" ;; esac  # GCC's alone
done
# Clang warns of the deprecated functions that GCC 12's own algorithms call.
exec clang++-19 -Wno-deprecated-declarations -DASIO_HAS_CO_AWAIT=1 -DASIO_HAS_STD_COROUTINE=1 "$@"
