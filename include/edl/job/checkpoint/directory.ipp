// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/text.hpp"
#include "edl/job/checkpoint/directory.hpp"
#include "edl/job/checkpoint/manifest.hpp"

namespace edl::checkpoint {
namespace detail {

/// N of "version-N", as it would be written.
EDL_INLINE std::optional<std::uint64_t> version_of(std::string_view name) {
  static constexpr std::string_view prefix = "version-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  bool const canonical = name.size() == 1 || !name.starts_with('0');
  return canonical ? number_from<std::uint64_t>(name) : std::nullopt;
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
  if (code)
    throw storage_error(code.value(), fmt::format("cannot read directory {}: {}", directory, code.message()));
  std::sort(found.rbegin(), found.rend());
  return found;
}

EDL_INLINE bool is_checkpoint(std::string const& path, check how) {
  try {
    verify_checkpoint(path, how);
    return true;
  } catch (storage_error const& e) {
    if (e.may_pass()) throw;  // it may well be valid
    return false;
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

EDL_INLINE checkpoint_search find_checkpoint(std::string const& directory, check how, unreadable what) {
  checkpoint_search found;
  for (auto const& [version, path] : detail::versions_in(directory)) try {
      std::error_code code;
      if (!std::filesystem::exists(path + "/manifest.json", code) && !code) continue;
      verify_checkpoint(path, how);
      found.newest = path;
      break;
    } catch (storage_error const& e) {
      if (what == unreadable::refused && e.may_pass()) throw;
      found.passed_over.push_back({path, e.what()});
    } catch (error const& e) {
      found.passed_over.push_back({path, e.what()});
    }
  return found;
}

EDL_INLINE std::string checkpoint_search::warning() const {
  if (passed_over.empty()) return {};
  std::string others;
  if (passed_over.size() == 2)
    others = fmt::format(", and so is {}", passed_over[1].path);
  else if (passed_over.size() > 2)
    others = fmt::format(", and so are {} older ones", passed_over.size() - 1);
  return fmt::format("checkpoint {} is passed over ({}){}; {}", passed_over.front().path,
                     passed_over.front().why, others,
                     newest ? fmt::format("{} is taken instead", *newest) : "there is no older one");
}

EDL_INLINE std::optional<std::string> newest_valid(std::string const& directory, check how) {
  return find_checkpoint(directory, how).newest;
}

EDL_INLINE std::vector<std::string> valid_checkpoints(std::string const& directory, check how) {
  std::vector<std::string> all;
  for (auto const& [version, path] : detail::versions_in(directory)) try {
      if (detail::is_checkpoint(path, how)) all.push_back(path);
    } catch (storage_error const&) {
    }
  return all;
}

EDL_INLINE void remove_litter(std::string const& directory, bool uncommitted) {
  for (auto const& [version, path] : detail::versions_in(directory)) try {
      remove_dead_temporaries(path);
      if (!uncommitted) continue;
      std::vector<std::string> parts;
      std::error_code code;
      for (std::filesystem::directory_iterator it(path, code), end; !code && it != end; it.increment(code))
        if (std::string const name = it->path().filename(); is_part(name)) parts.push_back(name);
      bool const complete = std::filesystem::exists(path + "/manifest.json", code) || code;
      std::vector<manifest::file> const named =
          complete ? read_manifest(path).files : std::vector<manifest::file>();
      for (std::string const& name : parts)
        if (std::ranges::find(named, name, &manifest::file::name) == named.end())
          std::filesystem::remove(path + "/" + name, code);
      if (!complete) ::rmdir(path.c_str());  // what is not empty, or no directory, stays
    } catch (error const&) {
    }
}

EDL_INLINE void prune(std::string const& directory, std::uint64_t keep, permission const& allowed) {
  if (keep == 0) return;
  std::uint64_t kept = 0;
  for (auto const& [version, path] : detail::versions_in(directory)) {
    bool valid = false;
    try {
      valid = detail::is_checkpoint(path, check::sizes);
    } catch (storage_error const&) {
      continue;
    }
    if (kept == keep) {
      if (allowed) allowed();
      detail::remove_checkpoint(path);
    } else {
      kept += valid;
    }
  }
}

EDL_INLINE std::string remove_newer(std::string const& directory, std::uint64_t newest) {
  std::string removed;
  for (auto const& [version, path] : detail::versions_in(directory))
    if (version > newest) {
      detail::remove_checkpoint(path);
      removed += fmt::format("{}{}", removed.empty() ? "" : ", ", version);
    }
  return removed.empty() ? removed
                         : fmt::format("checkpoints of versions {} were wrong, and are removed", removed);
}

}  // namespace edl::checkpoint
