// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// A small terminal: what a person sees of bytes that are written to one.
namespace terminal {

/// Understands \r, \n, ESC[K, ESC[A and colours (ESC[…m). A row that is full goes on in the next one.
class emulator {
 public:
  explicit emulator(std::size_t columns) : columns_(columns) {}

  void take(std::string_view bytes) {
    for (char const c : bytes) take(c);
  }

  /// Lines as they were written: rows that a full one went on in belong to it. The last one may be empty.
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (row const& r : rows_) r.goes_on ? void(all.back() += r.text) : all.push_back(r.text);
    return all;
  }

  /// The row that the cursor is in.
  std::string const& last_row() const { return rows_[at_].text; }

  /// What stood in rows that were erased from their beginning, one after the other.
  std::vector<std::string> const& erased() const { return erased_; }

  /// Whether such a row was the rest of a longer line: a part of it stays on the screen.
  bool erased_a_rest() const { return erased_a_rest_; }

  std::size_t colours() const { return colours_; }
  std::string const& not_understood() const { return not_understood_; }

 private:
  struct row {
    std::string text;
    bool goes_on = false;  // from the row before
  };

  void take(char c) {
    if (!sequence_.empty()) return follow(c);
    if (c == '\x1b') {
      sequence_ = c;
    } else if (c == '\r') {
      column_ = 0;
    } else if (c == '\n') {
      down(false);
    } else if (c < ' ') {
      not_understood_ += c;
    } else {
      put(c);
    }
  }

  void put(char c) {
    if (column_ == columns_) {
      down(true);
      column_ = 0;
    }
    std::string& text = rows_[at_].text;
    if (text.size() < column_ + 1) text.resize(column_ + 1, ' ');
    text[column_++] = c;
  }

  void down(bool goes_on) {
    if (++at_ == rows_.size()) rows_.emplace_back();
    if (goes_on) rows_[at_].goes_on = true;
  }

  void follow(char c) {
    sequence_ += c;
    bool const ends = sequence_.size() > 2 && c >= '@' && c <= '~';
    if (!ends && sequence_.size() < 16) return;
    if (c == 'K') {
      erase();
    } else if (c == 'A') {
      int const rows = sequence_.size() > 3 ? std::stoi(sequence_.substr(2)) : 1;
      for (int i = 0; i < rows && at_ > 0; ++i) --at_;
    } else if (c == 'm') {
      ++colours_;
    } else {
      not_understood_ += sequence_;
    }
    sequence_.clear();
  }

  void erase() {
    row& r = rows_[at_];
    if (column_ == 0 && !r.text.empty()) {
      erased_.push_back(r.text);
      erased_a_rest_ |= r.goes_on;
    }
    r.text.resize(std::min(r.text.size(), column_));
  }

  std::size_t columns_, at_ = 0, column_ = 0, colours_ = 0;
  std::vector<row> rows_{1};
  std::vector<std::string> erased_;
  bool erased_a_rest_ = false;
  std::string sequence_, not_understood_;
};

}  // namespace terminal
