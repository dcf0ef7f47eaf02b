// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "edl/device/buffer.hpp"
#include "edl/device/cpu/team.hpp"
#include "edl/device/device.hpp"

namespace edl {

struct cpu_options {
  int threads = 1;        ///< that compute, the caller among them
  bool libraries = true;  ///< use kernels of libraries where the build found any; false: edl's own alone
  bool winograd = true;   ///< let libraries convolve with fewer multiplications and a little more rounding
};

namespace detail {

/// What a library's kernels keep between steps, whoever they are.
struct kernel_store {
  virtual ~kernel_store() = default;
};

}  // namespace detail

/// Some cores of the processor at hand, with workspace of their own, so that no operation allocates once it
/// has been done. Equal builds, machines, and numbers of threads give equal bits; work is cut by the number
/// of threads alone. Movable. Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class T>
class basic_cpu {
 public:
  using scalar = T;
  using buffer = aligned_buffer<T>;
  using options = cpu_options;

  basic_cpu() : basic_cpu(options{}) {}
  explicit basic_cpu(options o)
      : team_(o.threads),
        libraries_(o.libraries),
        winograd_(o.winograd),
        threads_(std::size_t(team_.size())) {
    for (auto& t : threads_) t.workspace = buffer(packed_left + packed_right);
  }

  /// Elements of the two operands that a product packs at a time: one for the second level of cache, one
  /// beyond.
  static constexpr std::size_t packed_left = 64 * 1024, packed_right = 160 * 1024;

  std::span<T> left(int thread = 0) {
    return threads_[std::size_t(thread)].workspace.span().first(packed_left);
  }
  std::span<T> right(int thread = 0) {
    return threads_[std::size_t(thread)].workspace.span().subspan(packed_left);
  }

  /// Memory that grows to the largest that was ever asked for; one of four per thread.
  std::span<T> room(int thread, std::size_t which, std::size_t size) {
    buffer& b = threads_[std::size_t(thread)].rooms[which];
    if (b.size() < size) b = buffer(size);
    return b.span().first(size);
  }

  int threads() const { return team_.size(); }
  bool libraries() const { return libraries_; }
  bool winograd() const { return winograd_; }

  /// Parts that `n` units of work are cut into, so that each has at least `least`.
  int parts(std::size_t n, std::size_t least) const {
    return int(std::clamp<std::size_t>(n / std::max<std::size_t>(least, 1), 1, std::size_t(threads())));
  }

  /// work(begin, end, thread) for even parts of [0, n), side by side.
  template <class Work>
  void share(std::size_t n, int parts, Work&& work) {
    auto const p = std::size_t(parts);
    team_.run(parts, [&](int t) { work(n * std::size_t(t) / p, n * std::size_t(t + 1) / p, t); });
  }

  thread_team& team() { return team_; }
  std::unique_ptr<detail::kernel_store>& kernels() { return kernels_; }

 private:
  struct per_thread {
    buffer workspace;
    std::array<buffer, 4> rooms;
  };

  thread_team team_;
  bool libraries_, winograd_;
  std::vector<per_thread> threads_;
  std::unique_ptr<detail::kernel_store> kernels_;
};

}  // namespace edl
