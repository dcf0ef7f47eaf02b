// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <edl/compute/data/format/record_file.hpp>
#include <edl/edl.hpp>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "http_file.hpp"

/// A RecordIO file on a web server, as `data` writes it: one shard. When it is opened, the headers of its
/// chunks are read, 20 bytes each. Then a chunk is read whole when one of its records is asked for.
class http_recordio : public edl::data::source {
 public:
  /// A header that cannot be is an edl::data_error that names URL and byte; with `skip_damaged`, what follows
  /// it is left out.
  explicit http_recordio(std::string const& url, edl::data::source_options const& options,
                         http_limits const& limits = {})
      : url_(url), limits_(limits), cache_bytes_(options.cache_bytes) {
    http_file file(url, limits);
    std::uint64_t records = 0;
    std::string headers;
    try {
      for (std::uint64_t at = 0; at < file.size();) {
        std::array<std::uint32_t, 5> header{};  // magic, checksum, compressor, payload's bytes, records
        auto const fits = file.size() - at >= sizeof header;
        if (fits) file.read(at, {reinterpret_cast<char*>(header.data()), sizeof header});
        auto const [magic, checksum, compressor, bytes, in_chunk] = header;
        if (!fits || magic != 0x01020304 || compressor > 2 || bytes > file.size() - at - sizeof header ||
            bytes > 1u << 30 || in_chunk == 0 || in_chunk / 258 > bytes)
          throw edl::data_error(
              fmt::format("{}: byte {}: no chunk of RecordIO begins here", file.name(), at));
        chunks_.push_back({at, sizeof header + bytes, records});
        records += in_chunk;
        at += sizeof header + bytes;
        headers.append(reinterpret_cast<char const*>(header.data()), sizeof header);
      }
    } catch (edl::data_error const& e) {
      if (!options.skip_damaged) throw;
      damage_.emplace_back(e.what());
    }
    if (records > 0) shards_.push_back({file.name().substr(file.name().find_last_of('/') + 1), records});
    digest_ = edl::features::fingerprint(headers);
  }

  std::vector<edl::data::shard> const& shards() const override { return shards_; }
  std::unique_ptr<edl::data::reader> open() const override { return edl::data::make_reader<one>(*this); }
  std::uint64_t digest(std::size_t) const override {
    return digest_;
  }  // headers have their payloads' checksums
  std::span<std::string const> damage() const override { return damage_; }

 private:
  struct chunk {
    std::uint64_t begin = 0, bytes = 0, first = 0;  // in the file; number of its first record
  };

  class one : public edl::data::reader {
   public:
    explicit one(http_recordio const& of) : owner_(of), file_(of.url_, of.limits_) {}

    void read(std::size_t, std::uint64_t record, edl::example& into) override {
      auto const after =
          std::ranges::upper_bound(owner_.chunks_, record, {}, [](chunk const& c) { return c.first; });
      chunk const& c = *(after - 1);
      try {
        into.parse(find(c).read(record - c.first));
      } catch (edl::data_error const& e) {
        throw edl::data_error(fmt::format("{}: record {}, in the chunk at byte {}: {}", file_.name(), record,
                                          c.begin, e.what()));
      }
    }

   private:
    // A minibatch may have records of several chunks, so that one alone would be read again and again.
    edl::data::recordio_reader& find(chunk const& c) {
      auto const held = std::ranges::find(cache_, c.begin, &entry::begin);
      if (held != cache_.end()) {
        cache_.splice(cache_.begin(), cache_, held);
        return *cache_.front().reader;
      }
      std::uint64_t bytes = c.bytes;
      for (entry const& e : cache_) bytes += e.bytes;
      for (; cache_.size() >= 2 && bytes > owner_.cache_bytes_; cache_.pop_back())
        bytes -= cache_.back().bytes;
      std::string all(std::size_t(c.bytes), '\0');
      file_.read(c.begin, all);
      cache_.push_front({c.begin, c.bytes, as_file(all)});
      return *cache_.front().reader;
    }

    // A chunk is a file of one chunk: edl's reader verifies and unpacks it.
    static std::unique_ptr<edl::data::recordio_reader> as_file(std::string const& bytes) {
      int const memory = ::memfd_create("chunk", MFD_CLOEXEC);
      std::size_t written = 0;
      for (::ssize_t n = 1; memory >= 0 && n > 0 && written < bytes.size(); written += std::size_t(n))
        n = std::max<::ssize_t>(::write(memory, bytes.data() + written, bytes.size() - written), 0);
      if (written < bytes.size()) {
        if (memory >= 0) ::close(memory);
        throw edl::error("there is no memory for a chunk of " + std::to_string(bytes.size()) + " bytes");
      }
      try {
        auto reader = std::make_unique<edl::data::recordio_reader>(fmt::format("/proc/self/fd/{}", memory));
        ::close(memory);
        return reader;
      } catch (...) {
        ::close(memory);
        throw;
      }
    }

    struct entry {
      std::uint64_t begin = 0, bytes = 0;
      std::unique_ptr<edl::data::recordio_reader> reader;
    };
    http_recordio const& owner_;
    http_file file_;
    std::list<entry> cache_;  // the last used first
  };

  std::string url_;
  http_limits limits_;
  std::size_t cache_bytes_;
  std::vector<chunk> chunks_;
  std::vector<edl::data::shard> shards_;
  std::vector<std::string> damage_;
  std::uint64_t digest_ = 0;
};
