// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <system_error>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example_builder.hpp"
#include "edl/compute/data/format/libfm.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

class libfm_reader final : public reader {
 public:
  explicit libfm_reader(libfm_source const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    if (shard != 0 || record >= from_.rows_.size())
      throw data_error(
          fmt::format("{}: there is no row {}, it has {}", from_.path_, record, from_.rows_.size()));
    auto const& row = from_.rows_[std::size_t(record)];
    char const* const begin = from_.text_.data() + row.first;
    char const *at = begin, *const end = begin + row.size;
    auto const refuse = [&](std::string_view expected) {
      throw data_error(fmt::format("{}:{}:{}: expected {}", from_.path_, row.line, at - begin + 1, expected));
    };
    auto const number = [&](auto& to, std::string_view what) {
      auto const [next, failed] = std::from_chars(at + (at < end && *at == '+'), end, to);
      if (failed != std::errc()) refuse(what);
      at = next;
    };
    auto const blank = [&] {
      char const* const first = at;
      while (at < end && (*at == ' ' || *at == '\t')) ++at;
      return at > first;
    };
    float label = 0;
    ids_.clear();
    weights_.clear();
    blank();
    number(label, "a label");
    while (blank() && at < end) {
      number(ids_.emplace_back(), "an id");
      if (ids_.back() < 0) refuse("an id of at least 0");
      if (at == end || *at != ':') refuse("':' and a weight");
      ++at;
      number(weights_.emplace_back(), "a weight");
    }
    if (at < end) refuse("a blank");
    example_builder build{into};
    build.floating("label", label);
    build.integers("ids", ids_);
    build.floats("weights", weights_);
  }

 private:
  libfm_source const& from_;
  std::vector<std::int64_t> ids_;
  std::vector<float> weights_;
};

EDL_INLINE libfm_source::libfm_source(std::string const& path)
    : path_(path), text_(detail::read_all(path, 1ull << 30)) {
  std::size_t line = 0;
  for (std::size_t first = 0, next = 0; first < text_.size(); first = next) {
    std::size_t const end = std::min(text_.find('\n', first), text_.size());
    next = end + 1;
    ++line;
    std::size_t size = end - first;
    if (size > 0 && text_[end - 1] == '\r') --size;
    if (size > 0 && text_[first] != '#') rows_.push_back({first, size, line});
  }
  if (rows_.empty()) throw data_error(fmt::format("{}: has no rows", path));
  shards_.push_back({path.substr(path.find_last_of('/') + 1), rows_.size()});
}

EDL_INLINE std::unique_ptr<reader> libfm_source::open() const {
  return std::make_unique<libfm_reader>(*this);
}

EDL_INLINE std::uint64_t libfm_source::digest(std::size_t shard) const {
  if (shard != 0) return 0;
  detail::content_digest sum;
  sum.add(text_);
  return sum.value();
}

}  // namespace edl::data
