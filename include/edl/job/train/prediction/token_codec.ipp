// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/prediction/token_codec.hpp"

namespace edl {
namespace detail {

class bytes_as_tokens final : public token_codec {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    for (char const c : text) ids.push_back(std::uint8_t(c));
    return ids;
  }
  std::string bytes_of(std::int32_t id) const override {
    if (id < 0 || id > 255) throw error(fmt::format("id {} is no byte", id));
    return std::string(1, char(id));
  }
  bool ends(std::int32_t) const override { return false; }
  std::vector<std::int32_t> beginning() const override { return {'\n'}; }
};

}  // namespace detail

EDL_INLINE std::shared_ptr<token_codec const> byte_codec() {
  return std::make_shared<detail::bytes_as_tokens const>();
}

EDL_INLINE std::string_view complete_utf8(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    auto const c = std::uint8_t(text[text.size() - back]);
    if (c < 0x80) break;
    if (c < 0xC0) continue;  // a byte within a character
    std::size_t const needed = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    return needed > back ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

}  // namespace edl
