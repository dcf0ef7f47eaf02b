// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "edl/compute/tokens/tokenizer.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/prediction/token_codec.hpp"

namespace edl {
namespace detail {

class byte_tokens final : public token_codec {
 public:
  std::vector<std::int32_t> encode(std::string_view prompt) override {
    if (prompt.empty()) prompt = "\n";
    std::vector<std::int32_t> ids;
    for (char const c : prompt) ids.push_back(std::uint8_t(c));
    return ids;
  }
  std::unique_ptr<text> decode() const override {
    struct as_it_is final : text {
      std::string add(std::int32_t id) override { return std::string(1, char(id)); }
      std::string finish() override { return {}; }
    };
    return std::make_unique<as_it_is>();
  }
  bool ends(std::int32_t) const override { return false; }
  int vocabulary() const override { return 256; }
};

class file_tokens final : public token_codec {
 public:
  explicit file_tokens(std::string const& path)
      : path_(path), by_(tokens::tokenizer::from_file(path)), encoder_(by_) {
    for (char const* const end : {"<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "</s>"})
      if (auto const id = by_.find(end)) ends_.push_back(std::int32_t(*id));
  }

  std::vector<std::int32_t> encode(std::string_view prompt) override {
    auto const all = encoder_.encode(prompt, true);
    if (!all.empty()) return {all.begin(), all.end()};
    if (ends_.empty())
      throw usage_error(fmt::format("{} has no token that begins a text: give a prompt", path_));
    return {ends_.front()};
  }
  std::unique_ptr<text> decode() const override {
    struct decoded final : text {
      explicit decoded(tokens::tokenizer const& by) : decoder(by, false, false) {}
      std::string add(std::int32_t id) override try {
        return decoder.add(tokens::token_id(id));
      } catch (data_error const&) {  // the vocabulary has no token of this number
        return "\xEF\xBF\xBD";
      }
      std::string finish() override { return decoder.finish(); }
      tokens::decoder decoder;
    };
    return std::make_unique<decoded>(by_);
  }
  bool ends(std::int32_t id) const override { return std::ranges::find(ends_, id) != ends_.end(); }
  int vocabulary() const override { return int(by_.vocabulary()); }

 private:
  std::string path_;
  tokens::tokenizer by_;
  tokens::encoder encoder_;
  std::vector<std::int32_t> ends_;
};

}  // namespace detail

EDL_INLINE std::unique_ptr<token_codec> byte_codec() { return std::make_unique<detail::byte_tokens>(); }
EDL_INLINE std::unique_ptr<token_codec> file_codec(std::string const& path) {
  return std::make_unique<detail::file_tokens>(path);
}

}  // namespace edl
