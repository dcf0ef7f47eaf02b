// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/base/checkpoint/manifest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/job/train/dashboard/job_feed.hpp"
#include "edl/job/train/observe/run_list.hpp"

namespace edl::train {
namespace detail {

inline constexpr std::string_view history_name = "history.jsonl", sweep_name = "sweep.json",
                                  usual_end = "checkpoints";
inline constexpr std::size_t most_manifests = 4;
inline constexpr std::size_t longest_end = 16 << 10, longest_sweep = 64 << 20, longest_manifest = 16 << 20,
                             longest_text = 256 << 20;  // bytes

/// Merges the newest training line and the newest evaluation into one object.
inline nlohmann::json newest_of(std::string_view end) {
  nlohmann::json training, evaluation;
  while (!end.empty() && (training.is_null() || evaluation.is_null())) {
    auto const from = end.substr(0, end.size() - 1).rfind('\n') + 1;  // npos + 1 is 0
    auto one = parse_json(end.substr(from));
    end = end.substr(0, from);
    if (!one.is_object() || !one.contains("step") || !one["step"].is_number_unsigned()) continue;
    auto& to = one.contains("metrics") ? evaluation : training;
    if (to.is_null()) to = std::move(one);
  }
  if (training.is_null()) training = nlohmann::json::object();
  // Drop fields of a type that readers do not expect.
  for (auto it = training.begin(); it != training.end();)
    it = it->is_number() && is_history_field(it.key()) ? std::next(it) : training.erase(it);
  if (evaluation.is_null()) return training;
  for (char const* const newer : {"step", "time"})
    if (auto const at = evaluation.find(newer); at != evaluation.end() && at->is_number())
      training[newer] = std::max(training.value(newer, nlohmann::json(0)), *at);
  if (auto& metrics = evaluation["metrics"]; metrics.is_object()) {
    for (auto it = metrics.begin(); it != metrics.end();)
      it = it->is_number() || it->is_null() ? std::next(it) : metrics.erase(it);
    training["metrics"] = std::move(metrics);
  }
  return training;
}

/// The hyperparameters in the newest checkpoint beside a history; null: there is no checkpoint yet.
inline std::optional<std::string> hyperparameters_of(std::string const& directory) {
  std::vector<std::pair<std::uint64_t, std::string>> checkpoints;
  std::error_code failed, unknown;
  constexpr std::string_view start = "version-";
  for (std::filesystem::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::string const name = at->path().filename().native();
    std::uint64_t version = 0;
    if (!name.starts_with(start) ||
        at->symlink_status(unknown).type() != std::filesystem::file_type::directory)
      continue;
    std::from_chars(name.data() + start.size(), name.data() + name.size(), version);
    checkpoints.emplace_back(version, at->path().native());
  }
  std::ranges::sort(checkpoints, std::ranges::greater());
  for (auto const& [version, path] : checkpoints) try {
      return checkpoint::manifest_from_json(end_of_file(path + "/manifest.json", longest_manifest), path)
          .hyperparameters;
    } catch (std::exception const&) {  // it is being written, or damaged
    }
  return std::nullopt;
}

}  // namespace detail

EDL_INLINE std::map<std::string, std::string> const& run_list::look() {
  for (auto& [id, one] : files_) one.seen = false;
  for (auto& [below, one] : sweeps_) one.seen = false;
  rows_.clear();
  problem_.clear();
  place_.in_bucket() ? search_bucket() : search("", 0);
  std::erase_if(files_, [](auto const& one) { return !one.second.seen; });
  std::erase_if(sweeps_, [](auto const& one) { return !one.second.seen; });
  for (auto const& [id, one] : files_) rows_[id] = one.text;
  std::set<std::string> of_trials;  // trials whose hyperparameters are known
  for (auto const& [below, one] : sweeps_)
    for (std::size_t i = 0; i < one.trials.size(); ++i) {
      std::string const id = printable(fmt::format("{}{}trial-{}", below, below.empty() ? "" : "/", i));
      std::string& row = rows_[id];
      if (row.empty()) row = "{\"id\":" + nlohmann::json(id).dump();
      if (one.trials[i].empty()) continue;
      row += "," + one.trials[i];
      of_trials.insert(id);
    }
  for (auto const& [id, one] : files_)
    if (one.hyperparameters && !one.hyperparameters->empty() && !of_trials.contains(id))
      rows_[id] +=
          ",\"hyperparameters\":" +
          nlohmann::json(*one.hyperparameters).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (auto& [id, row] : rows_) row += "}";
  return rows_;
}

EDL_INLINE void run_list::search(std::string const& below, int depth) {
  using namespace detail;
  std::string const path = directory_ + (below.empty() ? "" : "/" + below);
  if (take(below, path + "/" + std::string(history_name))) return;  // its subdirectories are checkpoints
  // The user named the first directory, and may have named a link.
  int const no_link = below.empty() ? 0 : O_NOFOLLOW;
  int const fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | no_link);
  std::unique_ptr<::DIR, int (*)(::DIR*)> const all(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  if (!all) {
    if (fd >= 0) ::close(fd);
    return;
  }
  std::vector<std::string> deeper;
  bool sweep = false;
  while (::dirent const* const e = ::readdir(all.get())) {
    std::string_view const name = e->d_name;
    sweep = sweep || name == sweep_name;
    // If the file system does not report an entry's type, opening it will show.
    if ((e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) && !name.starts_with('.')) deeper.emplace_back(name);
  }
  if (sweep) add_trials(below, end_of_file(path + "/" + std::string(sweep_name), longest_sweep));
  if (depth < depth_)
    for (std::string const& one : deeper) search(below.empty() ? one : below + "/" + one, depth + 1);
}

/// The run of the history with this path; null: there are too many.
EDL_INLINE run_list::file* run_list::named(std::string_view below, std::string const& path) {
  if (below == detail::usual_end) below = "";
  if (below.ends_with("/checkpoints")) below.remove_suffix(detail::usual_end.size() + 1);
  std::string const name = below.empty() ? "." : printable(below);
  std::string id = name;
  auto const taken = [&] {
    auto const other = files_.find(id);
    return other != files_.end() && other->second.seen && other->second.path != path;
  };
  for (int n = 2; taken(); ++n) id = fmt::format("{} ({})", name, n);
  if (!files_.contains(id) && files_.size() >= most) return nullptr;
  file& one = files_[id];
  one.id = id;
  one.seen = true;
  return &one;
}

EDL_INLINE void run_list::fill(file& one, std::string_view end) {
  auto facts = detail::newest_of(end);
  facts["id"] = one.id;
  one.text = facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  one.text.pop_back();
}

EDL_INLINE bool run_list::take(std::string_view below, std::string const& path) {
  struct ::stat is{};
  if (::lstat(path.c_str(), &is) != 0 || !S_ISREG(is.st_mode)) return false;  // a link could lead anywhere
  file* const one = named(below, path);
  if (!one) return true;
  std::int64_t const time = is.st_mtim.tv_sec * std::int64_t{1'000'000'000} + is.st_mtim.tv_nsec;
  bool const same = one->path == path && one->size == std::uint64_t(is.st_size) && one->time == time;
  if (!same || !one->hyperparameters)
    one->hyperparameters = detail::hyperparameters_of(path.substr(0, path.find_last_of('/')));
  if (same) return true;
  one->path = path, one->size = std::uint64_t(is.st_size), one->time = time;
  fill(*one, end_of_file(path, detail::longest_end));
  return true;
}

EDL_INLINE void run_list::search_bucket() {
  using namespace detail;
  std::map<std::string, std::string> histories, lists;                    // tags, by folder
  std::map<std::string, std::map<std::uint64_t, std::string>> manifests;  // names, by folder and version
  std::set<std::string> partly;  // folders of runs that were passed over
  auto const version_of = [](std::string_view folder) -> std::optional<std::uint64_t> {
    if (!folder.starts_with("version-")) return std::nullopt;
    std::uint64_t version = 0;
    std::from_chars(folder.data() + 8, folder.data() + folder.size(), version);
    return version;
  };
  auto const is_near = [&](std::string_view name) { return std::ranges::count(name, '/') <= depth_; };
  // Where a page ends in the folder of a run, behind its history.
  auto const skip = [&](bucket::place::listed const& page) -> std::optional<std::string> {
    for (auto const& [name, tag] : page)
      if (is_near(name) && (name == history_name || name.ends_with("/history.jsonl")))
        histories[name.substr(0, name.size() - std::min(name.size(), history_name.size() + 1))] = tag;
    std::string const& last = page.back().first;
    for (std::size_t at = 0; at != last.npos; at = last.find('/', at + 1))
      if (std::string const below = last.substr(0, at); histories.contains(below)) {
        partly.insert(below);
        return below.empty() ? below : below + "/";
      }
    return std::nullopt;
  };
  auto const all = place_.objects(skip, most_listed);
  histories.clear();
  for (auto const& [name, tag] : all) {
    auto const slash = name.rfind('/');
    std::string const below = slash == name.npos ? "" : name.substr(0, slash);
    std::string_view const file = std::string_view(name).substr(slash + 1);  // or all
    if (name.starts_with('.') || name.find("/.") != name.npos) continue;
    if (file == history_name && is_near(name)) histories[below] = tag;
    if (file == sweep_name && is_near(name)) lists[below] = tag;
    auto const outer = below.rfind('/');
    if (auto const version = version_of(std::string_view(below).substr(outer + 1));
        version && file == "manifest.json")
      manifests[outer == below.npos ? "" : below.substr(0, outer)][*version] = name;
  }
  // Folders in that of a history are checkpoints.
  auto const is_inner = [&](std::string const& below) {
    if (!below.empty() && histories.contains("")) return true;
    for (auto at = below.rfind('/'); at != below.npos && at > 0; at = below.rfind('/', at - 1))
      if (histories.contains(below.substr(0, at))) return true;
    return false;
  };
  auto const text_of = [&](std::string const& name, std::size_t longest) -> std::optional<std::string> {
    try {
      auto found = place_.read(name, longest);
      return found ? std::move(found->content) : std::string();
    } catch (error const& e) {
      auto const* const of_storage = dynamic_cast<storage_error const*>(&e);
      if (of_storage && of_storage->code() != EACCES) throw;
      // It may not be read, is too large, or damaged.
      if (problem_.empty()) problem_ = e.what();
      return std::nullopt;
    }
  };
  for (auto const& [below, tag] : histories) {
    if (is_inner(below)) continue;
    std::string const name = (below.empty() ? "" : below + "/") + std::string(history_name);
    file* const one = named(below, directory_ + "/" + name);
    if (!one || (one->tag == tag && one->hyperparameters)) continue;
    if (partly.contains(below))
      for (std::string const& inner : (below.empty() ? place_ : place_.below(below)).names())
        if (auto const version = version_of(inner))
          manifests[below][*version] = (below.empty() ? "" : below + "/") + inner + "/manifest.json";
    // Of the newest ones some may lack a manifest, or have one that is damaged.
    for (auto const& [version, of] : std::views::reverse(manifests[below]) | std::views::take(most_manifests))
      try {
        if (one->hyperparameters && one->manifest == of) break;
        one->hyperparameters =
            checkpoint::manifest_from_json(text_of(of, longest_manifest).value_or(""), of).hyperparameters;
        one->manifest = of;
        break;
      } catch (storage_error const&) {
        throw;
      } catch (error const&) {  // it is damaged, or stands for an attempt that must not be completed
      }
    if (one->tag == tag) continue;
    auto const text = text_of(name, longest_text);
    one->path = directory_ + "/" + name;
    if (text) one->tag = tag;
    if (!text && !one->text.empty()) continue;
    std::string_view const end = text ? *text : std::string_view();
    fill(*one, end.substr(end.size() - std::min(end.size(), longest_end)));
  }
  for (auto const& [below, tag] : lists) {
    if (is_inner(below)) continue;
    sweep& one = sweeps_[below];
    one.seen = true;
    if (one.tag == tag) continue;
    auto text = text_of((below.empty() ? "" : below + "/") + std::string(sweep_name), longest_sweep);
    if (!text) continue;
    add_trials(below, std::move(*text));
    one.tag = tag;
  }
}

EDL_INLINE void run_list::add_trials(std::string const& below, std::string text) {
  sweep& one = sweeps_[below];
  one.seen = true;
  if (one.text == text) return;
  one.text = std::move(text);
  one.trials.clear();
  auto const list = parse_json(one.text);
  if (!list.is_object() || !list.contains("trials") || !list["trials"].is_array()) return;
  for (auto const& trial : list["trials"]) {
    if (one.trials.size() == most) break;
    nlohmann::json more = nlohmann::json::object();
    for (char const* const name : {"hyperparameters", "failure"})
      if (trial.is_object() && trial.contains(name) && trial[name].is_string()) more[name] = trial[name];
    std::string const fields = more.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    one.trials.push_back(fields.substr(1, fields.size() - 2));
  }
}

EDL_INLINE std::string run_list::lines_of(std::string const& id) {
  if (!files_.contains(id) && !rows_.contains(id)) look();  // the run may be newer than the last search
  auto const one = files_.find(id);
  if (one == files_.end()) return rows_.contains(id) ? "[]" : "";
  job_feed lines("run");
  read_lines(one->second.path, lines, place_);
  return lines.history();
}

}  // namespace edl::train
