// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace edl {

/// While it lives, notes the names of the features that this thread asks records for, those that they lack,
/// too. Thread safety: each thread has its own.
class asked_features {
 public:
  asked_features() : before_(now_) { now_ = this; }
  ~asked_features() { now_ = before_; }
  asked_features(asked_features const&) = delete;

  static void note(std::string_view name) {
    if (now_ != nullptr) [[unlikely]]
      now_->names.emplace(name);
  }

  std::set<std::string, std::less<>> names;

 private:
  static inline constinit thread_local asked_features* now_ = nullptr;
  asked_features* before_;
};

}  // namespace edl
