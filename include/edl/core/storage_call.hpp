// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>
#include <type_traits>

#include "edl/core/storage_error.hpp"

namespace edl {

/// Calls `f(code)` with a std::error_code, for a function of std::filesystem, and returns its result. Throws
/// storage_error with the text "`failure`: reason" if it fails, so that callers may try again.
template <class F>
auto storage_call(std::string const& failure, F&& f) {
  std::error_code code;
  auto const check = [&] {
    if (code) throw storage_error(code.value(), failure + ": " + code.message());
  };
  if constexpr (std::is_void_v<decltype(f(code))>) {
    f(code);
    check();
  } else {
    auto result = f(code);
    check();
    return result;
  }
}

}  // namespace edl
