// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "edl/core/error.hpp"

/// What a usage_error says that `f` throws, or "accepted".
template <class F>
std::string refused(F f) {
  try {
    f();
  } catch (edl::usage_error const& e) {
    return e.what();
  }
  return "accepted";
}
