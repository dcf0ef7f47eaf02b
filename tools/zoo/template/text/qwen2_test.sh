#!/bin/sh
sh "$(dirname "$0")/published.sh" "$1" 896 193 \
  "repeat/sequential/residual/body/attention/query_key_value_bias ('model.layers.0.self_attn.{q,k,v}_proj.bias')"
