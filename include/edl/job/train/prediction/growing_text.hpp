// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edl/compute/tokens/unicode.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/train/prediction/generation_session.hpp"

namespace edl::detail {

/// A text as it grows: what may still become one of the texts of `stop`, or a whole character, is held back.
class growing_text {
 public:
  growing_text(std::vector<std::string> const& stop, text_sink hear) : stop_(&stop), hear_(std::move(hear)) {}

  std::string const& text() const { return text_; }

  /// Adds what a token stands for. Why the text ends; empty: it does not.
  std::optional<text_end> add(std::string_view piece) {
    text_ += piece;
    std::size_t held = tokens::incomplete_bytes(text_);
    std::size_t end = text_.npos;
    for (std::string const& s : *stop_) {
      std::size_t const from = said_ > s.size() ? said_ - s.size() : 0;
      end = std::min(end, text_.find(s, from));
      for (std::size_t n = std::min(s.size() - 1, text_.size()); n > held; --n)
        if (text_.ends_with(std::string_view(s).substr(0, n))) held = std::max(held, n);
    }
    if (end != text_.npos) {
      invariant(end >= said_, "nothing of a text that ends the generation was passed on");
      text_.resize(end);
      return say(text_.size()) ? text_end::stop : text_end::caller;
    }
    if (!say(text_.size() - held)) return text_end::caller;
    return std::nullopt;
  }

  /// Says what was held back.
  void finish() { say(text_.size()); }

 private:
  bool say(std::size_t to) {
    invariant(to <= text_.size() && said_ <= text_.size(), "only what there is can be passed on");
    if (to <= said_) return true;
    std::string_view const piece = std::string_view(text_).substr(said_, to - said_);
    said_ = to;
    return !hear_ || hear_(piece);
  }

  std::vector<std::string> const* stop_;
  text_sink hear_;
  std::string text_;
  std::size_t said_ = 0;
};

}  // namespace edl::detail
