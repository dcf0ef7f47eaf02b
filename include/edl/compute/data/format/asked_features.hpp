// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/core/span.hpp"

namespace edl {

/// While it lives, notes the features that this thread asks records for, those that they lack, too. Thread
/// safety: each thread has its own.
class asked_features {
 public:
  struct asked {
    std::size_t place = 0;  ///< it is the nth that was asked for
    example::kind kind =
        example::kind::none;                ///< none: not said, or texts at one time and numbers at another
    std::vector<std::size_t> extents = {};  ///< in which it is read; empty: as a list
    bool texts = false, numbers = false;    ///< was asked for as these
  };

  asked_features() : before_(now_) { now_ = this; }
  ~asked_features() { now_ = before_; }
  asked_features(asked_features const&) = delete;

  static void note(std::string_view name, example::kind what = example::kind::none,
                   view<std::size_t> extents = {}) {
    if (now_ != nullptr) [[unlikely]]
      now_->add(name, what, extents);
  }

  std::map<std::string, asked, std::less<>> all;

 private:
  void add(std::string_view name, example::kind what, view<std::size_t> extents) {
    using enum example::kind;
    auto at = all.find(name);
    if (at == all.end()) at = all.emplace(name, asked{.place = all.size()}).first;
    asked& a = at->second;
    if (!extents.empty()) a.extents.assign(extents.begin(), extents.end());
    if (what == none) return;
    (what == strings ? a.texts : a.numbers) = true;
    a.kind = a.texts && a.numbers ? none : a.kind == floats ? floats : what;
  }

  static inline constinit thread_local asked_features* now_ = nullptr;
  asked_features* before_;
};

}  // namespace edl
