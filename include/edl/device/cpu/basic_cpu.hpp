// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/device/buffer.hpp"
#include "edl/device/cpu/choices.hpp"
#include "edl/device/cpu/options.hpp"
#include "edl/device/cpu/team.hpp"
#include "edl/device/device.hpp"

namespace edl {

namespace detail {

/// What a library's kernels keep between steps, whoever they are.
struct kernel_store {
  virtual ~kernel_store() = default;
};

}  // namespace detail

/// Some cores of the processor at hand, with workspace of their own, so that no operation allocates once it
/// has been done. Equal builds, machines, kernels and numbers of threads give equal bits; work is cut by the
/// number of threads alone. Movable. Thread safety: distinct objects: safe. Shared objects: unsafe.
template <class T>
class basic_cpu {
 public:
  using scalar = T;
  using buffer = aligned_buffer<T>;
  using options = cpu_options;

  basic_cpu() : basic_cpu(options{}) {}
  explicit basic_cpu(options o)
      : team_(o.threads),
        choices_(o.kernels, team_.size(), std::move(o.kernel_cache)),
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

  static constexpr std::size_t rooms = 5;

  /// Memory that grows to the largest that was ever asked for; one of `rooms` per thread.
  std::span<T> room(int thread, std::size_t which, std::size_t size) {
    buffer& b = threads_[std::size_t(thread)].memory[which];
    if (b.size() < size) {
      b = {};  // first, so that both are not held at once
      b = buffer(size);
    }
    return b.span().first(size);
  }

  /// See detail::kernel_choices. Called by operations that hold no room.
  template <class Run>
  int pick(detail::kernel_key const& key, std::span<std::string_view const> ways, int rule, Run&& run) {
    std::size_t const before = choices_.measurements();
    int const way = choices_.pick(key, ways, rule, run);
    if (choices_.measurements() != before)  // what was tried and not chosen needs no memory any more
      for (auto& t : threads_) t.memory = {};
    return way;
  }

  int threads() const { return team_.size(); }
  edl::kernels kernels() const { return choices_.policy(); }
  bool libraries() const { return kernels() != edl::kernels::own; }

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
  std::unique_ptr<detail::kernel_store>& store() { return store_; }

 private:
  struct per_thread {
    buffer workspace;
    std::array<buffer, rooms> memory;
  };

  thread_team team_;
  detail::kernel_choices choices_;
  std::vector<per_thread> threads_;
  std::unique_ptr<detail::kernel_store> store_;
};

// Host memory is the processor's: what other devices do besides is next to nothing here.

template <class T>
aligned_buffer<T> allocate(basic_cpu<T>&, std::size_t n) {
  return aligned_buffer<T>(n);
}
template <class T>
void upload(basic_cpu<T>&, reads<T> host, writes<T> to) {
  std::ranges::copy(host, to.begin());
}
template <class T>
void download(basic_cpu<T>&, reads<T> from, writes<T> host) {
  std::ranges::copy(from, host.begin());
}
template <class T>
void bind_parameters(basic_cpu<T>&, reads<T>) {}
template <class T>
void finish(basic_cpu<T>&) {}
template <class T>
constexpr bool in_host_memory(basic_cpu<T> const&) {
  return true;
}

}  // namespace edl
