// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace edl::features {

/// The pieces of a text between separators, in order, without those equal to `ignored` (by default empty
/// ones). `for (std::string_view piece : pieces("a,b,,c"))` visits a, b and c. It copies nothing.
class pieces {
 public:
  explicit constexpr pieces(std::string_view text, char separator = ',', std::string_view ignored = {})
      : text_(text), separator_(separator), ignored_(ignored) {}

  struct sentinel {};

  class iterator {
   public:
    constexpr iterator(pieces const& of) : pieces_(&of) { find(); }
    constexpr std::string_view operator*() const { return pieces_->text_.substr(first_, last_ - first_); }
    constexpr iterator& operator++() {
      first_ = last_ + 1;
      find();
      return *this;
    }
    constexpr bool operator==(sentinel) const { return first_ > pieces_->text_.size(); }

   private:
    constexpr void find() {
      for (std::string_view const text = pieces_->text_; first_ <= text.size(); first_ = last_ + 1) {
        last_ = std::min(text.find(pieces_->separator_, first_), text.size());
        if (**this != pieces_->ignored_) return;
      }
    }

    pieces const* pieces_;
    std::size_t first_ = 0, last_ = 0;
  };

  constexpr iterator begin() const { return {*this}; }
  constexpr sentinel end() const { return {}; }

 private:
  std::string_view text_;
  char separator_;
  std::string_view ignored_;
};

}  // namespace edl::features
