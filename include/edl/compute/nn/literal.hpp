// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace edl::nn {

/// A name as a template argument: `input<"age">`.
template <std::size_t N>
struct literal {
  char text[N]{};

  consteval literal(char const (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT: a literal is one
  constexpr std::string_view view() const { return {text, N - 1}; }
};

}  // namespace edl::nn
