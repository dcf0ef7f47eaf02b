// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/base/bucket/cache.hpp"
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

inline constexpr std::uint64_t longest_epoch = 1 << 12;  // bytes
inline constexpr std::string_view epoch_name = ".edl-epoch", aside = "set-aside";

/// Names the manifest of a version in a bucket, so that another one is not set aside with it.
EDL_INLINE std::string mark_of(std::uint64_t version, std::string tag) {
  std::erase_if(tag, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '-'; });
  return fmt::format("version-{}.{}", version, tag);
}

using numbered_place = std::pair<std::uint64_t, bucket::place>;

/// The `version-N` in a directory that are not set aside, newest first.
EDL_INLINE std::vector<numbered_place> versions_in(bucket::place const& directory) {
  std::map<std::uint64_t, std::string, std::greater<>> tags;  // of manifests in a bucket
  std::set<std::string> marks;
  if (!directory.in_bucket())
    for (std::string const& name : directory.names())
      if (auto const version = version_of(name)) tags[*version];
  if (directory.in_bucket())
    for (auto const& [name, tag] : directory.objects()) {
      auto const slash = name.find('/');
      if (slash == name.npos) continue;
      std::string const folder = name.substr(0, slash), file = name.substr(slash + 1);
      if (auto const version = version_of(folder))
        if (std::string& its = tags[*version]; file == "manifest.json") its = tag;
      if (folder == aside) marks.insert(file);
    }
  std::vector<numbered_place> found;
  for (auto const& [version, tag] : tags)
    if (!marks.contains(mark_of(version, tag)))
      found.emplace_back(version, directory.below(fmt::format("version-{}", version)));
  return found;
}

struct listed_checkpoint {
  std::uint64_t version = 0;
  bucket::place path;
  std::optional<position> at;  // nothing: its manifest is missing or unreadable
};

EDL_INLINE std::optional<position> position_of(bucket::place const& checkpoint) try {
  return read_manifest(checkpoint).at();
} catch (error const&) {
  return std::nullopt;
}

/// The `version-N` in a directory, newest first. One whose position is unknown counts as of the newest
/// history.
EDL_INLINE std::vector<listed_checkpoint> by_position(bucket::place const& directory) {
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
EDL_INLINE std::optional<bucket::place> top_of_epoch(bucket::place const& directory) try {
  auto const all = versions_in(directory);
  if (all.empty()) return std::nullopt;
  auto const at = position_of(all.front().second);
  std::uint64_t const claimed = read_epoch(directory).epoch;  // 0: the writer used no epochs
  bool const newest = at && claimed > 0 && epoch_of(at->generation) == claimed;
  return newest ? std::optional(all.front().second) : std::nullopt;
} catch (error const&) {
  return std::nullopt;
}

/// Moves a checkpoint out of the way: one rename to a free name that no reader looks for. In a bucket that
/// name marks it.
EDL_INLINE void move_aside(bucket::place const& directory, listed_checkpoint const& one) {
  bucket::place const to = directory.below(std::string(aside));
  if (directory.in_bucket()) {
    auto const manifest = manifest_text(one.path);
    return to.put(mark_of(one.version, manifest ? manifest->tag : ""), "");
  }
  to.create();
  std::string const name = fmt::format("{}/version-{}.epoch-{}", to.path(), one.version,
                                       one.at ? std::to_string(epoch_of(one.at->generation)) : "unknown");
  std::string target = name;
  std::error_code code;
  for (int again = 2; std::filesystem::exists(target, code); ++again)
    target = fmt::format("{}.{}", name, again);
  storage_call("cannot set " + one.path.path() + " aside",
               [&](auto& failed) { std::filesystem::rename(one.path.path(), target, failed); });
  sync_directory(to.path());
  sync_directory(directory.path());
}

/// The version of a checkpoint that was set aside.
EDL_INLINE std::optional<std::uint64_t> version_aside(std::string_view name) {
  return version_of(name.substr(0, name.find('.')));
}

EDL_INLINE void remove_passed(bucket::place const& directory, std::uint64_t newest,
                              permission const& allowed) {
  bucket::place const from = directory.below(std::string(aside));
  auto const all = from.names();
  auto const versions = all.empty() ? std::vector<numbered_place>() : versions_in(directory);
  for (std::string const& name : all) try {
      auto const v = version_aside(name);
      if (!v || *v >= newest) continue;
      if (allowed) allowed();
      // The version may be a checkpoint of the new history by now.
      if (directory.in_bucket() && std::ranges::find(versions, *v, &numbered_place::first) == versions.end())
        directory.below(fmt::format("version-{}", *v)).remove_all();
      directory.in_bucket() ? from.remove(name) : from.below(name).remove_all();
    } catch (storage_error const&) {  // another time
    }
}

/// The message about versions that were set aside.
EDL_INLINE std::string told_aside(std::vector<std::string> const& versions, std::string const& directory,
                                  std::string_view why) {
  if (versions.empty()) return {};
  return fmt::format("{} of version {} {} set aside, in {}/{}: {}",
                     versions.size() == 1 ? "the checkpoint" : "checkpoints", fmt::join(versions, ", "),
                     versions.size() == 1 ? "is" : "are", directory, aside, why);
}

EDL_INLINE bool is_checkpoint(bucket::place const& path, check how) {
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

/// The file of a checkpoint whose CRC-32 is not that of its manifest; empty: there is none.
EDL_INLINE std::string damaged_in(std::string const& path, manifest const& contents) {
  for (auto const& listed : contents.files)
    if (input_file(path + "/" + listed.name).crc32() != listed.crc32) return listed.name;
  return {};
}

/// The same of a bucket, in a copy. A damaged copy is fetched once more. A failure to copy may pass: it is no
/// damage.
EDL_INLINE std::string damaged_in_bucket(bucket::place const& path, manifest const& contents) try {
  auto copy = path.copy();
  std::string const name = damaged_in(copy.path(), contents);
  if (name.empty()) return {};
  if (!copy.remove())
    throw storage_error(EBUSY, fmt::format("the copy of {}/{} on this machine is damaged, and another "
                                           "process uses it: try again",
                                           path.path(), name));
  return damaged_in(path.copy().path(), contents);
} catch (storage_error const& e) {
  throw storage_error(e.may_pass() ? e.code() : EIO, e.what());
} catch (error const& e) {
  throw storage_error(EIO, e.what());
} catch (std::filesystem::filesystem_error const& e) {
  throw storage_error(EIO, fmt::format("--data_cache: {}", e.what()));
}

/// Removes the manifest first: a partly removed checkpoint then no longer counts as one.
EDL_INLINE void remove_checkpoint(bucket::place const& path) {
  path.remove("manifest.json");
  if (!path.in_bucket()) sync_directory(path.path());
  path.remove_all();
}

}  // namespace detail

EDL_INLINE void verify_checkpoint(bucket::place const& path, check how) {
  manifest const contents = read_manifest(path);
  for (auto const& listed : contents.files)
    if (auto const size = path.size(listed.name); size != listed.bytes)
      throw error(fmt::format("{}/{} has {} bytes, but its manifest gives {}", path.path(), listed.name, size,
                              listed.bytes));
  if (how != check::checksums) return;
  auto const damaged = path.in_bucket() ? detail::damaged_in_bucket(path, contents)
                                        : detail::damaged_in(path.path(), contents);
  if (!damaged.empty())
    throw error(
        fmt::format("{}/{} is damaged: its CRC-32 is not that of its manifest; use an older checkpoint",
                    path.path(), damaged));
}

EDL_INLINE claimed_epoch read_epoch(bucket::place const& directory) {
  auto const found = directory.read(std::string(detail::epoch_name), detail::longest_epoch);
  if (!found) return {};
  std::string_view const line = trimmed(found->content);
  std::string_view const number = line.substr(0, line.find(' '));
  return {std::min(number_from<std::uint64_t>(std::string(number)).value_or(0), most_epoch),
          std::string(trimmed(line.substr(number.size()))), found->tag};
}

EDL_INLINE bool write_epoch(bucket::place const& directory, claimed_epoch const& what) {
  return directory
      .replace(std::string(detail::epoch_name), fmt::format("{} {}\n", what.epoch, what.owner), what.tag)
      .has_value();
}

EDL_INLINE checkpoint_search find_checkpoint(bucket::place const& directory, check how, unreadable what) {
  checkpoint_search found;
  if (auto const top = detail::top_of_epoch(directory)) try {
      verify_checkpoint(*top, how);
      found.newest = top->path();
      return found;
    } catch (error const&) {  // reported below
    }
  std::string unfinished;
  for (auto const& [version, path, at] : detail::by_position(directory)) try {
      if (!at && !has_manifest(path)) {
        if (unfinished.empty() &&
            std::ranges::any_of(path.names(), [](auto const& n) { return n != "manifest.json"; }))
          unfinished = path.path();
        continue;
      }
      verify_checkpoint(path, how);
      found.newest = path.path();
      break;
    } catch (storage_error const& e) {
      if (what == unreadable::refused && e.may_pass()) throw;
      found.passed_over.push_back({path.path(), e.what()});
    } catch (error const& e) {
      found.passed_over.push_back({path.path(), e.what()});
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

EDL_INLINE std::optional<std::string> newest_valid(bucket::place const& directory, check how) {
  return find_checkpoint(directory, how).newest;
}

EDL_INLINE std::vector<std::string> valid_checkpoints(bucket::place const& directory, check how) {
  std::vector<std::string> all;
  for (auto const& [version, path, at] : detail::by_position(directory)) try {
      if (detail::is_checkpoint(path, how)) all.push_back(path.path());
    } catch (storage_error const&) {
    }
  return all;
}

EDL_INLINE void remove_litter(bucket::place const& directory, bool uncommitted) {
  bool const remote = directory.in_bucket();
  if (remote && !uncommitted) return;
  for (auto const& [version, path] : detail::versions_in(directory)) try {
      if (!remote) remove_dead_temporaries(path.path());
      if (!uncommitted) continue;
      auto const names = path.names();
      // The temporary of a superseded master that was suspended: without it, that master cannot complete a
      // manifest any more whose parts are removed here.
      for (std::string const& name : names)
        if (is_temporary(name) && name.starts_with(".manifest.json.")) path.remove(name);
      auto const complete = detail::manifest_text(path);
      bool const empty = remote && (!complete || detail::is_empty(*complete));
      std::vector<manifest::file> const named =
          complete && !empty ? read_manifest(path).files : std::vector<manifest::file>();
      std::vector<std::string> parts;
      for (std::string const& name : names)
        if (is_part(name) && std::ranges::find(named, name, &manifest::file::name) == named.end())
          parts.push_back(name);
      // In a bucket that master fails by the tag of the object that it knows.
      if (remote && !parts.empty() &&
          !path.replace("manifest.json", (complete ? complete->content : "") + "\n",
                        complete ? complete->tag : ""))
        continue;
      for (std::string const& name : parts) path.remove(name);
      if (!complete && !remote)
        ::rmdir(path.path().c_str());  // does nothing if it is not empty, or no directory
    } catch (error const&) {
    }
  try {
    for (char const* const begin : {"version-", "best/"}) directory.abandon_uploads(begin);
  } catch (error const&) {  // leftovers do no harm
  }
}

EDL_INLINE void prune(bucket::place const& directory, std::uint64_t keep, permission const& allowed) {
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

EDL_INLINE std::string set_aside_newer(bucket::place const& directory, std::uint64_t newest,
                                       permission const& allowed) {
  std::vector<std::string> moved;
  for (auto const& [version, path] : detail::versions_in(directory))
    if (version > newest) {
      if (allowed) allowed();
      detail::move_aside(directory, {version, path, detail::position_of(path)});
      moved.push_back(std::to_string(version));
    }
  return detail::told_aside(moved, directory.path(),
                            "they may be wrong, and the job goes back to an older version");
}

EDL_INLINE std::string set_aside_strays(bucket::place const& directory, permission const& allowed) {
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
      moved, directory.path(),
      fmt::format("the job has left their line, and goes on from version {}", newest ? newest->version : 0));
}

EDL_INLINE std::uint64_t newest_epoch(bucket::place const& directory) {
  std::uint64_t newest = read_epoch(directory).epoch;
  for (detail::listed_checkpoint const& one : detail::by_position(directory))
    if (one.at) newest = std::max(newest, epoch_of(one.at->generation));
  return newest;
}

}  // namespace edl::checkpoint
