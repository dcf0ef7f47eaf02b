#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: clang.sh [ccache] COMPILER [FLAG…]: compiles with Clang what COMPILER would.
case $1 in *ccache) cache=$1; shift ;; *) cache= ;; esac
shift
exec $cache clang++-16 -DASIO_HAS_CO_AWAIT=1 -DASIO_HAS_STD_COROUTINE=1 "$@"
