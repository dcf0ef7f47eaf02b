// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/storage_call.hpp"
#include "edl/core/text.hpp"

namespace edl::checkpoint {
namespace detail {

/// N of "version-N", in the exact spelling that edl writes.
EDL_INLINE std::optional<std::uint64_t> version_of(std::string_view name) {
  static constexpr std::string_view prefix = "version-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  bool const canonical = name.size() == 1 || !name.starts_with('0');
  return canonical ? number_from<std::uint64_t>(name) : std::nullopt;
}

/// The `version-N` in a directory, newest first.
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

struct listed_checkpoint {
  std::uint64_t version = 0;
  std::string path;
  std::optional<position> at;  // nothing: its manifest is missing or unreadable
};

inline constexpr std::string_view epoch_file = "/.edl-epoch", aside = "/set-aside";

EDL_INLINE std::optional<position> position_of(std::string const& checkpoint) try {
  return read_manifest(checkpoint).at();
} catch (error const&) {
  return std::nullopt;
}

/// The `version-N` in a directory, newest first. One whose position is unknown counts as of the newest
/// history.
EDL_INLINE std::vector<listed_checkpoint> by_position(std::string const& directory) {
  std::vector<listed_checkpoint> all;
  std::uint64_t newest = 0;
  for (auto& [version, path] : versions_in(directory)) {
    all.push_back({version, std::move(path), {}});
    all.back().at = position_of(all.back().path);
    if (all.back().at) newest = std::max(newest, all.back().at->generation);
  }
  std::ranges::sort(all, std::greater<>(), [&](listed_checkpoint const& one) {
    return one.at.value_or(position{newest, one.version});
  });
  return all;
}

/// The checkpoint of the highest version, if it is of the epoch that was claimed last. That is the common
/// case; it is then the newest, and no other manifest need be read.
EDL_INLINE std::optional<std::string> top_of_epoch(std::string const& directory) try {
  auto const all = versions_in(directory);
  if (all.empty()) return std::nullopt;
  auto const at = position_of(all.front().second);
  std::uint64_t const claimed = read_epoch(directory).epoch;  // 0: the writer used no epochs
  bool const newest = at && claimed > 0 && epoch_of(at->generation) == claimed;
  return newest ? std::optional(all.front().second) : std::nullopt;
} catch (error const&) {
  return std::nullopt;
}

/// Moves a checkpoint out of the way: one rename to a free name that no reader looks for.
EDL_INLINE std::string move_aside(std::string const& directory, listed_checkpoint const& one) {
  std::string const to = directory + std::string(aside);
  storage_call("cannot create directory " + to,
               [&](auto& code) { return std::filesystem::create_directories(to, code); });
  std::string const name = fmt::format("{}/version-{}.epoch-{}", to, one.version,
                                       one.at ? std::to_string(epoch_of(one.at->generation)) : "unknown");
  std::string target = name;
  std::error_code code;
  for (int again = 2; std::filesystem::exists(target, code); ++again)
    target = fmt::format("{}.{}", name, again);
  storage_call("cannot set " + one.path + " aside",
               [&](auto& failed) { std::filesystem::rename(one.path, target, failed); });
  sync_directory(to);
  sync_directory(directory);
  return target;
}

/// The version of a checkpoint that was set aside.
EDL_INLINE std::optional<std::uint64_t> version_aside(std::string_view name) {
  return version_of(name.substr(0, name.find('.')));
}

EDL_INLINE void remove_passed(std::string const& directory, std::uint64_t newest, permission const& allowed) {
  std::error_code code;
  std::vector<std::string> passed;
  for (std::filesystem::directory_iterator it(directory + std::string(aside), code), end; !code && it != end;
       it.increment(code))
    if (auto const v = version_aside(it->path().filename().native()); v && *v < newest)
      passed.push_back(it->path().native());
  for (std::string const& path : passed) {
    if (allowed) allowed();
    std::filesystem::remove_all(path, code);
  }
}

/// The message about versions that were set aside.
EDL_INLINE std::string told_aside(std::vector<std::string> const& versions, std::string const& directory,
                                  std::string_view why) {
  if (versions.empty()) return {};
  return fmt::format("{} of version {} {} set aside, in {}{}: {}",
                     versions.size() == 1 ? "the checkpoint" : "checkpoints", fmt::join(versions, ", "),
                     versions.size() == 1 ? "is" : "are", directory, aside, why);
}

EDL_INLINE bool is_checkpoint(std::string const& path, check how) {
  try {
    verify_checkpoint(path, how);
    return true;
  } catch (storage_error const& e) {
    if (e.may_pass()) throw;  // the checkpoint may be valid
    return false;
  } catch (error const&) {
    return false;
  }
}

/// Removes the manifest first: a partly removed checkpoint then no longer counts as one.
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
          fmt::format("{} has {} bytes, but its manifest gives {}", file.path(), file.size(), listed.bytes));
    if (how == check::checksums && file.crc32() != listed.crc32)
      throw error(fmt::format(
          "{} is damaged: its CRC-32 is not that of its manifest; use an older checkpoint", file.path()));
  }
}

EDL_INLINE claimed_epoch read_epoch(std::string const& directory) {
  std::string const path = directory + std::string(detail::epoch_file);
  std::error_code code;
  if (!std::filesystem::exists(path, code) && !code) return {};
  input_file const file(path);
  std::string text(std::min<std::uint64_t>(file.size(), 64), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  std::string_view const line = trimmed(text);
  std::string_view const number = line.substr(0, line.find(' '));
  return {std::min(number_from<std::uint64_t>(std::string(number)).value_or(0), most_epoch),
          std::string(trimmed(line.substr(number.size())))};
}

EDL_INLINE void write_epoch(std::string const& directory, claimed_epoch const& what) {
  replace_file(directory + std::string(detail::epoch_file), fmt::format("{} {}\n", what.epoch, what.owner));
}

EDL_INLINE checkpoint_search find_checkpoint(std::string const& directory, check how, unreadable what) {
  checkpoint_search found;
  if (auto const top = detail::top_of_epoch(directory)) try {
      verify_checkpoint(*top, how);
      found.newest = *top;
      return found;
    } catch (error const&) {  // reported below
    }
  std::string unfinished;
  for (auto const& [version, path, at] : detail::by_position(directory)) try {
      std::error_code code;
      if (!std::filesystem::exists(path + "/manifest.json", code) && !code) {
        if (unfinished.empty() && !std::filesystem::is_empty(path, code) && !code) unfinished = path;
        continue;
      }
      verify_checkpoint(path, how);
      found.newest = path;
      break;
    } catch (storage_error const& e) {
      if (what == unreadable::refused && e.may_pass()) throw;
      found.passed_over.push_back({path, e.what()});
    } catch (error const& e) {
      found.passed_over.push_back({path, e.what()});
    }
  if (!unfinished.empty())
    found.unfinished =
        fmt::format("checkpoint {} has no manifest.json, so its writer did not finish it: {}", unfinished,
                    found.newest ? "using " + *found.newest + " instead" : "no older one exists");
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
                     newest ? fmt::format("using {} instead", *newest) : "no older one exists");
}

EDL_INLINE std::optional<std::string> newest_valid(std::string const& directory, check how) {
  return find_checkpoint(directory, how).newest;
}

EDL_INLINE std::vector<std::string> valid_checkpoints(std::string const& directory, check how) {
  std::vector<std::string> all;
  for (auto const& [version, path, at] : detail::by_position(directory)) try {
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
      std::error_code code, kept;
      for (std::filesystem::directory_iterator it(path, code), end; !code && it != end; it.increment(code)) {
        std::string const name = it->path().filename();
        if (is_part(name)) parts.push_back(name);
        // The temporary of a superseded master that was suspended: without it, that master cannot complete a
        // manifest any more whose parts are removed here.
        if (is_temporary(name) && name.starts_with(".manifest.json."))
          if (std::error_code failed; !std::filesystem::remove(it->path(), failed) && failed) kept = failed;
      }
      if (kept) continue;
      bool const complete = std::filesystem::exists(path + "/manifest.json", code) || code;
      std::vector<manifest::file> const named =
          complete ? read_manifest(path).files : std::vector<manifest::file>();
      for (std::string const& name : parts)
        if (std::ranges::find(named, name, &manifest::file::name) == named.end())
          std::filesystem::remove(path + "/" + name, code);
      if (!complete) ::rmdir(path.c_str());  // does nothing if it is not empty, or not a directory
    } catch (error const&) {
    }
}

EDL_INLINE void prune(std::string const& directory, std::uint64_t keep, permission const& allowed) {
  if (keep == 0) return;
  std::uint64_t kept = 0, newest = 0;
  for (auto const& [version, path, at] : detail::by_position(directory)) {
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
      // An invalid checkpoint is neither counted nor removed: its writer may still be writing.
      if (kept == 0 && valid) newest = version;
      kept += valid;
      invariant(kept <= keep, "no more checkpoints are kept than --keep_checkpoint_max allows");
    }
  }
  detail::remove_passed(directory, newest, allowed);
}

EDL_INLINE std::string set_aside_newer(std::string const& directory, std::uint64_t newest,
                                       permission const& allowed) {
  std::vector<std::string> moved;
  for (auto const& [version, path] : detail::versions_in(directory))
    if (version > newest) {
      if (allowed) allowed();
      detail::move_aside(directory, {version, path, detail::position_of(path)});
      moved.push_back(std::to_string(version));
    }
  return detail::told_aside(moved, directory, "they may be wrong, and the job goes back to an older version");
}

EDL_INLINE std::string set_aside_strays(std::string const& directory, permission const& allowed) {
  std::vector<std::string> moved;
  if (detail::top_of_epoch(directory)) return {};
  std::optional<position> newest;
  for (detail::listed_checkpoint const& one : detail::by_position(directory)) {
    if (!one.at) continue;
    if (!newest) try {
        if (detail::is_checkpoint(one.path, check::sizes)) newest = one.at;
      } catch (storage_error const&) {
        return {};  // it may be the newest
      }
    if (!newest || one.version <= newest->version) continue;
    if (allowed) allowed();
    detail::move_aside(directory, one);
    moved.push_back(std::to_string(one.version));
  }
  return detail::told_aside(
      moved, directory,
      fmt::format("the job has left their line, and goes on from version {}", newest ? newest->version : 0));
}

EDL_INLINE std::uint64_t newest_epoch(std::string const& directory) {
  std::uint64_t newest = read_epoch(directory).epoch;
  for (detail::listed_checkpoint const& one : detail::by_position(directory))
    if (one.at) newest = std::max(newest, epoch_of(one.at->generation));
  return newest;
}

}  // namespace edl::checkpoint
