#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: new.sh EDL_WORLD: histories that nobody has seen, for half a minute of a processor. Which ones is a matter of the
# number of commits: a commit that passes here passes everywhere.
set -eu
cd "$(dirname "$0")"
commit=$(git rev-list --count HEAD) || { echo "skipped: no history says which seeds are next"; exit 77; }
exec "$1" --seed="${commit}000" --processor=30
