// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace edl::net {

/// The traffic between this process and the others of its job since it started. Thread safety: safe.
struct traffic {
  std::atomic<std::uint64_t> sent{0}, received{0};   ///< bytes of frames
  std::atomic<std::uint64_t> calls{0}, failures{0};  ///< made here, and those without a reply
  std::atomic<std::uint64_t> waited{0};              ///< nanoseconds from calls to their replies
};

/// The traffic of all nodes of this process.
inline traffic& total_traffic() {
  static traffic all;
  return all;
}

namespace detail {
inline void count(std::atomic<std::uint64_t>& into, std::uint64_t more) {
  into.fetch_add(more, std::memory_order_relaxed);
}
}  // namespace detail

}  // namespace edl::net
