// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "edl/compute/data/format/convert.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {
namespace detail {

/// Creates the output directory, which must not exist yet, or be empty.
inline durable_directory new_directory(std::string const& path) {
  std::error_code failure;
  if (std::filesystem::exists(path, failure) && !std::filesystem::is_empty(path, failure))
    throw error(fmt::format("{}: already exists; remove it, or write elsewhere", path));
  std::string plain = path;
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  auto const slash = plain.find_last_of('/');
  remove_dead_temporaries(slash == std::string::npos ? "." : plain.substr(0, slash + 1));
  return durable_directory(plain);
}

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
  durable_directory out = detail::new_directory(directory);
  auto const in = from.open();
  std::optional<recordio_writer> file;
  example record;
  std::string serialised;
  converted done;
  for (std::size_t s = 0; s < from.shards().size(); ++s) {
    for (std::uint64_t i = 0; i < from.shards()[s].records && done.records < wanted; ++i) {
      if (done.records % options.records_per_shard == 0) {
        if (file) file->close();
        file.emplace(fmt::format("{}/{}{:05}", out.temporary(), options.prefix, done.files++),
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
  if (!file) throw error(fmt::format("{}: no records to write", directory));
  file->close();
  out.commit();
  return done;
}

}  // namespace edl::data
