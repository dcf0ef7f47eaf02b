// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/wire/checkpoint_directory.hpp"
#include "edl/wire/durable_file.hpp"
#include "edl/wire/manifest.hpp"

namespace edl::wire {
namespace detail {

/// N of "version-N", as it would be written.
EDL_INLINE std::optional<std::uint64_t> version_of(std::string_view name) {
  static constexpr std::string_view prefix = "version-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::uint64_t version = 0;
  auto const [end, code] = std::from_chars(name.data(), name.data() + name.size(), version);
  bool const canonical = name.size() == 1 || !name.starts_with('0');
  return code == std::errc{} && end == name.data() + name.size() && canonical ? std::optional(version)
                                                                              : std::nullopt;
}

/// The `version-N` of a directory, newest first.
EDL_INLINE std::vector<std::pair<std::uint64_t, std::string>> versions_in(std::string const& directory) {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  std::error_code code;
  std::filesystem::directory_iterator it(directory, code);
  if (code == std::errc::no_such_file_or_directory) return found;
  for (; !code && it != std::filesystem::directory_iterator{}; it.increment(code))
    if (auto const version = version_of(it->path().filename().string()))
      found.emplace_back(*version, it->path().string());
  if (code) throw error(fmt::format("cannot read directory {}: {}", directory, code.message()));
  std::sort(found.rbegin(), found.rend());
  return found;
}

EDL_INLINE bool is_checkpoint(std::string const& path, check how) {
  try {
    verify_checkpoint(path, how);
    return true;
  } catch (error const&) {
    return false;
  }
}

/// Manifest first: what is half removed is no checkpoint.
EDL_INLINE void remove_checkpoint(std::string const& path) {
  std::error_code code;
  if (std::filesystem::remove(path + "/manifest.json", code)) sync_directory(path);
  if (!code) std::filesystem::remove_all(path, code);
  if (code) throw error(fmt::format("cannot remove {}: {}", path, code.message()));
}

}  // namespace detail

EDL_INLINE void verify_checkpoint(std::string const& path, check how) {
  manifest const contents = read_manifest(path);
  for (auto const& listed : contents.files) {
    input_file const file(path + "/" + listed.name);
    if (file.size() != listed.bytes)
      throw error(
          fmt::format("{} has {} bytes, its manifest says {}", file.path(), file.size(), listed.bytes));
    if (how == check::checksums && file.crc32() != listed.crc32)
      throw error(fmt::format(
          "{} is damaged: its CRC-32 is not that of its manifest; use an older checkpoint", file.path()));
  }
}

EDL_INLINE std::optional<std::string> newest_valid(std::string const& directory, check how) {
  for (auto const& [version, path] : detail::versions_in(directory))
    if (detail::is_checkpoint(path, how)) return path;
  return std::nullopt;
}

EDL_INLINE void prune(std::string const& directory, std::uint64_t keep) {
  if (keep == 0) return;
  std::uint64_t kept = 0;
  for (auto const& [version, path] : detail::versions_in(directory)) {
    bool const valid = detail::is_checkpoint(path, check::sizes);
    if (kept == keep)
      detail::remove_checkpoint(path);
    else
      kept += valid;
  }
}

}  // namespace edl::wire
