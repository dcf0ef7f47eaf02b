// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "edl/compute/data/directory.hpp"
#include "edl/compute/data/format/compression.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/token_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
namespace detail {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::string_view token_magic = "EDLTOKEN";
inline constexpr std::uint64_t most_token_ids = 1ull << 32;

inline std::string written(token_file_head const& h) {
  std::string bytes(token_file_head::size, '\0');
  auto const put = [&](std::size_t at, auto n) { std::memcpy(bytes.data() + at, &n, sizeof n); };
  bytes.replace(0, token_magic.size(), token_magic);
  put(8, std::uint32_t{1});
  put(12, h.width);
  put(16, h.vocabulary);
  put(24, h.tokens);
  put(32, h.documents);
  put(40, h.tokenizer);
  put(56, crc32(std::string_view(bytes).substr(0, 56)));
  return bytes;
}

}  // namespace detail

EDL_INLINE token_file_writer::token_file_writer(std::string path, std::uint64_t vocabulary,
                                                std::uint64_t tokenizer)
    : head_{.width = vocabulary <= 65'536 ? 2u : 4u, .vocabulary = vocabulary, .tokenizer = tokenizer},
      file_(std::move(path)) {
  if (vocabulary < 1 || vocabulary > detail::most_token_ids)
    throw error(fmt::format("{}: a vocabulary has from 1 to {} tokens, not {}", file_.path(),
                            detail::most_token_ids, vocabulary));
  file_.write(detail::written(head_));
}

EDL_INLINE void token_file_writer::add(std::span<std::uint32_t const> document) {
  bytes_.resize(document.size() * head_.width);
  for (std::size_t i = 0; i < document.size(); ++i) {
    if (document[i] >= head_.vocabulary)
      throw error(fmt::format("{}: token {} of a document has the id {}, and the vocabulary is {}",
                              file_.path(), i, document[i], head_.vocabulary));
    std::memcpy(bytes_.data() + i * head_.width, &document[i], head_.width);
  }
  file_.write(bytes_);
  head_.tokens += document.size();
  ends_.push_back(head_.tokens);
}

EDL_INLINE void token_file_writer::commit() {
  head_.documents = ends_.size();
  file_.write(std::string(std::size_t(head_.index() - file_.size()), '\0'));
  file_.write(std::string_view(reinterpret_cast<char const*>(ends_.data()), 8 * ends_.size()));
  file_.overwrite(0, detail::written(head_));
  file_.commit();
}

EDL_INLINE token_file_head read_token_file_head(detail::input_file const& file) {
  auto const refuse = [&](std::string const& why) {
    throw data_error(fmt::format("{}: {}", file.path(), why));
  };
  std::string bytes(std::size_t(std::min(file.size(), token_file_head::size)), '\0');
  file.read(0, bytes.data(), bytes.size());
  if (bytes.size() < token_file_head::size || !bytes.starts_with(detail::token_magic))
    refuse("is not a token file; `edl data tokenize` makes one of texts");
  auto const get = [&](std::size_t at, auto n) {
    std::memcpy(&n, bytes.data() + at, sizeof n);
    return n;
  };
  token_file_head const h{.width = get(12, std::uint32_t{}),
                          .vocabulary = get(16, std::uint64_t{}),
                          .tokens = get(24, std::uint64_t{}),
                          .documents = get(32, std::uint64_t{}),
                          .tokenizer = get(40, std::uint64_t{})};
  if (auto const version = get(8, std::uint32_t{}); version != 1)
    refuse(fmt::format("is a token file of version {}; this program reads version 1", version));
  if (bytes != detail::written(h)) refuse("the head of the token file is damaged");
  if ((h.width != 2 && h.width != 4) || h.vocabulary < 1 || h.vocabulary > std::uint64_t{1} << (8 * h.width))
    refuse(fmt::format("ids of {} bytes do not fit a vocabulary of {}", h.width, h.vocabulary));
  // No sum overflows: both are at most the file's size.
  if (h.tokens > file.size() / h.width || h.documents > file.size() / 8 ||
      h.index() + 8 * h.documents != file.size())
    refuse(fmt::format("has {} bytes, which {} tokens and {} documents do not have; it is cut off or damaged",
                       file.size(), h.tokens, h.documents));
  std::uint64_t last = 0;
  if (h.documents > 0) file.read(file.size() - 8, &last, sizeof last);
  if (last != h.tokens)
    refuse(fmt::format("the last document ends behind token {} of {}; it is damaged", last, h.tokens));
  return h;
}

class token_reader final : public reader {
 public:
  explicit token_reader(token_source const& from) : from_(from) {}

  void read(std::size_t shard, std::uint64_t record, example& into) override {
    auto const& shards = from_.shards_;
    if (shard >= shards.size() || record >= shards[shard].records)
      throw data_error(
          fmt::format("{}: no window {}", shard < shards.size() ? shards[shard].name : "?", record));
    auto const& [in, head] = from_.files_[shard];
    in.check_unchanged();
    auto const count = std::size_t(from_.length_ + 1);
    bytes_.resize(count * head.width);
    in.read(token_file_head::size + record * from_.length_ * head.width, bytes_.data(), bytes_.size());
    ids_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t id = 0;
      std::memcpy(&id, bytes_.data() + i * head.width, head.width);
      if (id >= head.vocabulary)
        throw data_error(
            fmt::format("{}: token {} has the id {}, and the vocabulary is {}; the file is damaged",
                        in.path(), record * from_.length_ + i, id, head.vocabulary));
      ids_[i] = id;
    }
    example_builder build{into};
    build.integers("tokens", ids_);
  }

 private:
  token_source const& from_;
  std::string bytes_;
  std::vector<std::int64_t> ids_;
};

EDL_INLINE token_source::token_source(std::vector<std::string> const& paths, std::uint64_t length)
    : length_(length) {
  if (length < 1 || length > longest)
    throw usage_error(fmt::format("tokens:{}: a window has from 1 to {} tokens", length, longest));
  for (std::string const& path : paths) {
    detail::input_file in(path);
    token_file_head const head = read_token_file_head(in);
    if (head.tokens <= length)
      throw data_error(fmt::format("{}: has {} tokens, and a window of {} needs {}: shorten it", path,
                                   head.tokens, length, length + 1));
    if (auto const& first = files_.empty() ? head : files_.front().head;
        head.vocabulary != first.vocabulary || head.tokenizer != first.tokenizer)
      throw data_error(
          fmt::format("{}: was made by another tokenizer than {}", path, files_.front().in.path()));
    shards_.push_back({path.substr(path.find_last_of('/') + 1), (head.tokens - 1) / length});
    files_.push_back({std::move(in), head});
  }
}

EDL_INLINE std::unique_ptr<source> token_source::open_named(std::string const& given) {
  std::string_view rest = given;
  rest.remove_prefix(std::min(rest.size(), std::string_view("tokens:").size()));
  std::uint64_t length = 0;
  auto const [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
  rest.remove_prefix(std::size_t(end - rest.data()));
  if (failed != std::errc() || rest.size() < 2 || rest.front() != ':')
    throw usage_error(
        fmt::format("{}: tokens are tokens:LENGTH:FILE, such as tokens:1024:train.tokens", given));
  std::string const path(rest.substr(1));
  auto paths = detail::is_pattern(path) ? detail::matching_paths(path) : std::vector<std::string>{};
  if (paths.empty()) paths.push_back(path);
  return std::make_unique<token_source>(paths, length);
}

EDL_INLINE std::unique_ptr<reader> token_source::open() const {
  return std::make_unique<token_reader>(*this);
}

EDL_INLINE std::uint64_t token_source::digest(std::size_t shard) const {
  detail::content_digest sum;
  sum.add(length_);
  sum.add(detail::digest_of(files_.at(shard).in));
  return sum.value();
}

}  // namespace edl::data
