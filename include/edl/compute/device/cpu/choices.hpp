// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "edl/compute/device/cpu/options.hpp"

namespace edl {

/// The name that the processor reports, or nothing if the system does not provide it.
std::string processor_name();

}  // namespace edl

namespace edl::detail {

/// An operation and the extents that determine the speed of its kernels.
struct kernel_key {
  std::string_view operation;  ///< a literal, without spaces
  std::array<std::int32_t, 14> extents{};
  std::int32_t batch = 0;
  bool bfloat16 = false;  ///< what factors are rounded to

  friend auto operator<=>(kernel_key const&, kernel_key const&) = default;
};

/// Remembers for every shape which of several kernels is the fastest on this machine, and measures shapes
/// that it does not know. It stores the results in a file, if it has one, for later processes on the same
/// kind of machine. Movable. Thread safety: distinct objects: safe, even with one file. Shared objects:
/// unsafe.
class kernel_choices {
 public:
  /// `cache` names a file that need not exist; empty: none. A damaged file, or one of another machine or
  /// version, is ignored.
  kernel_choices(kernels policy, int threads, std::string cache);

  kernels policy() const { return policy_; }
  /// The number of shapes that this object has measured.
  std::size_t measurements() const { return measurements_; }

  /// Returns the kernel for `key`: number `rule`, unless choices are measured and another is clearly faster.
  /// `run(way)` does the work, repeatedly and with the same result, or returns false if that kernel cannot. A
  /// shape that was seen with another batch size uses the same kernel again, so that the last minibatch of an
  /// epoch uses the kernels of all others. A kernel for which right(way) is false is not used, which is
  /// logged once. If no other is left, the first one is used.
  template <std::invocable<int> Run, std::invocable<int> Right>
  int pick(kernel_key const& key, std::span<std::string_view const> ways, int rule, Run&& run,
           Right&& right) {
    if (policy_ != kernels::measured) return rule;
    return chosen(key, ways, rule, question(run), question(right));
  }

 private:
  /// The functions that test a way.
  struct question {
    template <class Answer>
    explicit question(Answer& a)
        : context(&a), answer([](void* c, int way) -> bool { return (*static_cast<Answer*>(c))(way); }) {}
    bool operator()(int way) const { return answer(context, way); }

    void* context;
    bool (*answer)(void*, int);
  };

  static double time_of(int way, question const& run, double best);
  int chosen(kernel_key const& key, std::span<std::string_view const> ways, int rule, question const& run,
             question const& right);
  void load();
  void save();

  kernels policy_;
  int threads_;
  std::size_t measurements_ = 0;
  double seconds_ = 0;  // that they took
  std::string cache_, signature_;
  std::map<kernel_key, int> used_;              // without the batch
  std::map<std::string, std::string> learned_;  // key as text → name of the way
};

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/choices.ipp"
#endif
