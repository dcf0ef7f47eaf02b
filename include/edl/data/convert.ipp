// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/data/convert.hpp"
#include "edl/data/example_builder.hpp"

namespace edl::data {
namespace detail {

/// A directory that appears under its name when it is complete.
class output_directory {
 public:
  explicit output_directory(std::string const& path) : path_(path) {
    while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
    std::error_code failure;
    if (std::filesystem::exists(path_, failure) && !std::filesystem::is_empty(path_, failure))
      throw error(fmt::format("{}: is there already; remove it, or write elsewhere", path_));
    auto const name = path_.find_last_of('/') + 1;
    partial_ = fmt::format("{}.{}.{}.partial", path_.substr(0, name), path_.substr(name), ::getpid());
    std::filesystem::remove_all(partial_, failure);
    std::filesystem::create_directories(partial_, failure);
    if (failure) throw error(fmt::format("{}: cannot be made: {}", path_, failure.message()));
  }
  output_directory(output_directory const&) = delete;
  output_directory& operator=(output_directory const&) = delete;
  ~output_directory() {
    std::error_code ignored;
    if (!partial_.empty()) std::filesystem::remove_all(partial_, ignored);
  }

  std::string const& partial() const { return partial_; }

  void close() {
    std::error_code failure;
    std::filesystem::rename(partial_, path_, failure);  // replaces an empty directory
    if (failure) throw error(fmt::format("{}: cannot be put in its place: {}", path_, failure.message()));
    partial_.clear();
  }

 private:
  std::string path_, partial_;
};

}  // namespace detail

EDL_INLINE converted convert(source const& from, std::string const& directory,
                             convert_options const& options) {
  if (options.records_per_shard == 0) throw usage_error("records per shard must be at least 1");
  if (!(options.fraction > 0 && options.fraction <= 1))
    throw usage_error(fmt::format("a fraction of {} of the records cannot be written; choose from (0, 1]",
                                  options.fraction));
  if (options.prefix.find('/') != std::string::npos || options.prefix.starts_with('.') ||
      options.prefix.starts_with('_'))
    throw usage_error(fmt::format("files named '{}…' would not be found again; choose a prefix such as data-",
                                  options.prefix));
  auto const all = data::records(from);
  auto const wanted = std::clamp<std::uint64_t>(std::uint64_t(std::llround(double(all) * options.fraction)),
                                                1, std::max<std::uint64_t>(all, 1));
  detail::output_directory out{directory};
  auto const in = from.open();
  std::optional<recordio_writer> file;
  example record;
  std::string serialised;
  converted done;
  for (std::size_t s = 0; s < from.shards().size(); ++s) {
    for (std::uint64_t i = 0; i < from.shards()[s].records && done.records < wanted; ++i) {
      if (done.records % options.records_per_shard == 0) {
        if (file) file->close();
        file.emplace(fmt::format("{}/{}{:05}", out.partial(), options.prefix, done.files++),
                     options.recordio);
      }
      in->read(s, i, record);
      encode(record, serialised);
      file->write(serialised);
      ++done.records;
      if (options.progress && (done.records % 1000 == 0 || done.records == wanted))
        options.progress(done.records, wanted);
    }
  }
  if (!file) throw error(fmt::format("{}: there are no records to write", directory));
  file->close();
  out.close();
  return done;
}

}  // namespace edl::data
