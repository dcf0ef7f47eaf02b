#!/bin/sh
sh "$(dirname "$0")/published.sh" "$1" 576 211 \
  "repeat/sequential/residual/body/attention/query_key_value_kernel ('model.layers.0.self_attn.{q,k,v}_proj.weight')"
