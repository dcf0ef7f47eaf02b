// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace edl {

/// Which kernels compute.
enum class kernels {
  measured,  ///< for every shape the fastest on this machine
  fixed,     ///< for every shape by a rule: the same bits in every run
  direct,    ///< the same, but none that multiplies less and rounds more (Winograd's)
  own        ///< none of a library
};

/// Their names, in order.
constexpr std::array<std::string_view, 4> names(kernels) { return {"measured", "fixed", "direct", "own"}; }

struct cpu_options {
  int threads = 1;  ///< that compute, the caller among them
  edl::kernels kernels = edl::kernels::fixed;
  std::string kernel_cache{};  ///< the file in which measurements are remembered; empty: none
};

}  // namespace edl
