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

/// The processor in its own words, or nothing where the system does not tell.
std::string processor_name();

}  // namespace edl

namespace edl::detail {

/// An operation and the extents that decide how fast its kernels are.
struct kernel_key {
  std::string_view operation;  ///< a literal, without spaces
  std::array<std::int32_t, 14> extents{};
  std::int32_t batch = 0;
  bool bfloat16 = false;  ///< what factors are rounded to

  friend auto operator<=>(kernel_key const&, kernel_key const&) = default;
};

/// Remembers for every shape which of several ways to compute it is the fastest here; measures what it does
/// not know. What it learns goes into a file, if it has one, for the next process on such a machine. Movable.
/// Thread safety: distinct objects: safe, with one file as well. Shared objects: unsafe.
class kernel_choices {
 public:
  /// `cache` is a file that need not exist; empty: none. One that is damaged, or of another machine or
  /// version, is as good as none.
  kernel_choices(kernels policy, int threads, std::string cache);

  kernels policy() const { return policy_; }
  /// Shapes that this object has measured.
  std::size_t measurements() const { return measurements_; }

  /// The way for `key`: number `rule`, unless choices are measured and another is clearly faster. `run(way)`
  /// does the work, repeatedly and with the same result, or returns false where it cannot. A shape that has
  /// been seen with another batch is computed as it was then. So the last minibatch of an epoch has the
  /// kernels of all others. A way of which right(way) is false is not taken, which is logged once. If no
  /// other is left, the first is.
  template <std::invocable<int> Run, std::invocable<int> Right>
  int pick(kernel_key const& key, std::span<std::string_view const> ways, int rule, Run&& run,
           Right&& right) {
    if (policy_ != kernels::measured) return rule;
    return chosen(key, ways, rule, question(run), question(right));
  }

 private:
  /// What is asked of a way.
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
  std::string cache_, signature_;
  std::map<kernel_key, int> used_;              // without the batch
  std::map<std::string, std::string> learned_;  // key as text → name of the way
};

}  // namespace edl::detail

#ifdef EDL_HEADER_ONLY
#include "edl/compute/device/cpu/choices.ipp"
#endif
