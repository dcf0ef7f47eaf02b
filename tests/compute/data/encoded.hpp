// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/compute/data/format/example.hpp"

/// A record as protobuf.
inline std::string encoded(edl::example const& e) {
  std::string bytes;
  encode(e, bytes);
  return bytes;
}
