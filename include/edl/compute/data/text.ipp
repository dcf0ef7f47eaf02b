// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <system_error>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/text.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

class text_reader final : public reader {
 public:
  explicit text_reader(text_source const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    std::uint64_t const most = from_.shards_.front().records;
    if (shard != 0 || record >= most)
      throw data_error(fmt::format("{}: no window {}: the file has {}", from_.path_, record, most));
    std::string_view const all = from_.text_;
    example_builder build{into};
    build.bytes("text", all.substr(std::size_t(record * from_.length_), std::size_t(from_.length_ + 1)));
  }

 private:
  text_source const& from_;
};

EDL_INLINE text_source::text_source(std::string const& path, std::uint64_t length)
    : path_(path), length_(length) {
  if (length < 1 || length > longest)
    throw usage_error(fmt::format("text:{}:{}: a window has from 1 to {} characters", length, path, longest));
  text_ = detail::read_all(path, 1ull << 30);
  if (text_.size() <= length)
    throw data_error(fmt::format("{}: has {} bytes, and a window of {} characters needs {}: shorten it", path,
                                 text_.size(), length, length + 1));
  shards_.push_back({path.substr(path.find_last_of('/') + 1), (text_.size() - 1) / length});
}

EDL_INLINE std::unique_ptr<source> text_source::open_named(std::string const& given) {
  std::string_view rest = given;
  rest.remove_prefix(std::min(rest.size(), std::string_view("text:").size()));
  std::uint64_t length = 0;
  auto const [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
  rest.remove_prefix(std::size_t(end - rest.data()));
  if (failed != std::errc() || rest.size() < 2 || rest.front() != ':')
    throw usage_error(fmt::format("{}: a text is text:LENGTH:FILE, such as text:256:book.txt", given));
  return std::make_unique<text_source>(std::string(rest.substr(1)), length);
}

EDL_INLINE std::unique_ptr<reader> text_source::open() const { return std::make_unique<text_reader>(*this); }

EDL_INLINE std::uint64_t text_source::digest(std::size_t shard) const {
  if (shard != 0) return 0;
  detail::content_digest sum;
  sum.add(length_);
  sum.add(text_);
  return sum.value();
}

}  // namespace edl::data
