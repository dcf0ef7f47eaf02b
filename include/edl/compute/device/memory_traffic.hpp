// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace edl {

/// What operations of one kind have read and written of an accelerator's memory.
struct memory_traffic {
  std::string_view operation;
  std::uint64_t calls = 0;
  std::uint64_t least = 0;  ///< bytes: each operand read once, each result written once
  std::uint64_t again = 0;  ///< bytes of operands that edl's own kernels read a second time
};

}  // namespace edl
