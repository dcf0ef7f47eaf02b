#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: clang.sh COMPILER [FLAG…]: compiles with Clang what COMPILER would.
shift
exec clang++-19 -DASIO_HAS_CO_AWAIT=1 -DASIO_HAS_STD_COROUTINE=1 "$@"
