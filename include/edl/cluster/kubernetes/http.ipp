// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "edl/cluster/kubernetes/http.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/text.hpp"

namespace edl::kubernetes {
namespace detail {

inline constexpr std::size_t longest_head = 64 << 10;

inline untrusted no_http(std::string_view what, std::string_view text) {
  return untrusted(
      fmt::format("the answer is no HTTP ({} '{}'): is this an API server?", what, one_line(text, 80)));
}

}  // namespace detail

// Takes a line out of `bytes`; sets whole_line_, or keeps what has come of it.
EDL_INLINE std::string_view response::line(std::string_view& bytes, std::size_t longest) {
  auto const end = bytes.find('\n');
  whole_line_ = end != bytes.npos;
  line_.append(bytes.substr(0, end));
  bytes.remove_prefix(whole_line_ ? end + 1 : bytes.size());
  if (line_.size() > longest) throw detail::no_http("a line too long", line_);
  if (line_.ends_with('\r') && whole_line_) line_.pop_back();
  return line_;
}

EDL_INLINE void response::feed(std::string_view bytes, sink const& take) {
  while (!bytes.empty()) {
    started_ = true;
    switch (state_) {
      case state::head:
      case state::trailer: {
        auto const before = bytes.size();
        auto const text = line(bytes, detail::longest_head);
        head_size_ += before - bytes.size();
        if (head_size_ > detail::longest_head) throw detail::no_http("a head too long", text);
        if (!whole_line_) return;
        if (state_ == state::head)
          head(text);
        else if (text.empty())
          state_ = state::done;
        line_.clear();
        break;
      }
      case state::size: {
        auto const text = line(bytes, 1024);
        if (!whole_line_) return;
        auto const size = number_from<std::uint64_t>(trimmed(text.substr(0, text.find(';'))), 16);
        if (!size) throw detail::no_http("a bad chunk size", text);
        line_.clear();
        left_ = *size;
        head_size_ = 0;
        state_ = left_ ? state::piece : state::trailer;
        break;
      }
      case state::piece_end: {
        auto const text = line(bytes, 2);
        if (!whole_line_) return;
        if (!text.empty()) throw detail::no_http("a chunk that does not end", text);
        state_ = state::size;
        break;
      }
      case state::piece:
      case state::sized: {
        invariant(left_ > 0, "a piece that is read has bytes left");
        auto const part = bytes.substr(0, std::size_t(std::min<std::uint64_t>(left_, bytes.size())));
        left_ -= part.size();
        bytes.remove_prefix(part.size());
        if (left_ == 0) state_ = state_ == state::piece ? state::piece_end : state::done;
        if (!take(part)) {
          keep_ = false;
          state_ = state::done;
        }
        break;
      }
      case state::rest: {
        auto const part = std::exchange(bytes, {});
        if (!take(part)) state_ = state::done;
        break;
      }
      case state::done:  // nobody has asked for more
        keep_ = false;
        return;
    }
  }
}

EDL_INLINE void response::head(std::string_view text) {
  if (code_ == 0) {
    bool const http = text.starts_with("HTTP/1.") && text.size() >= 12 && text[8] == ' ';
    auto const code = http ? number_from<std::uint64_t>(text.substr(9, 3)) : std::nullopt;
    if (!code || *code < 100 || *code > 999) throw detail::no_http("it begins with", text);
    code_ = int(*code);
    keep_ = text[7] != '0';
    return;
  }
  if (text.empty()) {
    if (code_ >= 200) return begin_body();
    code_ = 0;
    fields_.clear();
    return;
  }
  auto const colon = text.find(':');
  if (colon == text.npos) throw detail::no_http("a bad field", text);
  std::string name = lower(trimmed(text.substr(0, colon)));
  std::string_view const value = trimmed(text.substr(colon + 1));
  if (name == "content-length" && !field(name).empty() && field(name) != value)
    throw detail::no_http("two lengths", text);
  fields_.emplace_back(std::move(name), value);
}

EDL_INLINE void response::begin_body() {
  invariant(state_ == state::head && code_ >= 200, "a body follows the head of a final answer");
  if (lower(field("connection")).find("close") != std::string::npos) keep_ = false;
  auto const size = field("content-length");
  if (code_ == 204 || code_ == 304) {
    state_ = state::done;
  } else if (auto const coding = field("transfer-encoding"); !coding.empty()) {
    if (lower(coding) != "chunked") throw detail::no_http("an unknown transfer encoding", coding);
    state_ = state::size;
  } else if (!size.empty()) {
    auto const n = number_from<std::uint64_t>(size);
    if (!n) throw detail::no_http("a bad length", size);
    left_ = *n;
    state_ = left_ ? state::sized : state::done;
  } else {
    keep_ = false;
    state_ = state::rest;
  }
}

EDL_INLINE bool response::end() {
  keep_ = false;
  if (state_ == state::rest) state_ = state::done;
  return done();
}

EDL_INLINE std::string_view response::field(std::string_view name) const {
  for (auto const& [key, value] : fields_)
    if (key == name) return value;
  return {};
}

EDL_INLINE std::string percent_encoded(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool const plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain)
      out.push_back(c);
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace edl::kubernetes
