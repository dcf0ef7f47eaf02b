#!/bin/sh
sh "$(dirname "$0")/published.sh" "$1" 2048 113
