// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace edl {

/// The memory traffic of all operations of one kind on an accelerator.
struct memory_traffic {
  std::string_view operation;
  std::uint64_t calls = 0;
  std::uint64_t least = 0;  ///< bytes: each operand read once, each result written once
  std::uint64_t again = 0;  ///< bytes of operands that edl's own kernels read a second time
};

}  // namespace edl
