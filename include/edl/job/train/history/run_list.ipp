// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/train/dashboard/job_feed.hpp"
#include "edl/job/train/history/run_list.hpp"

namespace edl::train {
namespace detail {

inline constexpr std::string_view history_name = "history.jsonl", sweep_name = "sweep.json",
                                  usual_end = "checkpoints";
inline constexpr std::streamoff longest_end = 16 << 10, longest_sweep = 64 << 20;

/// At most so many bytes of a file's end.
inline std::string end_of(std::string const& path, std::streamoff most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  auto const size = file ? std::streamoff(file.tellg()) : 0;
  std::string text(std::size_t(std::min(size, most)), '\0');
  file.seekg(size - std::streamoff(text.size()));
  file.read(text.data(), std::streamsize(text.size()));
  text.resize(std::size_t(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

/// The newest training line and the newest evaluation, as one object.
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
  if (evaluation.is_null()) return training;
  for (char const* const newer : {"step", "time"})
    if (auto const at = evaluation.find(newer); at != evaluation.end() && at->is_number())
      training[newer] = std::max(training.value(newer, nlohmann::json(0)), *at);
  training["metrics"] = evaluation["metrics"];
  return training;
}

}  // namespace detail

EDL_INLINE std::map<std::string, std::string> const& run_list::look() {
  for (auto& [id, one] : files_) one.seen = false;
  trials_.clear();
  rows_.clear();
  search("", 0);
  std::erase_if(files_, [](auto const& one) { return !one.second.seen; });
  for (auto const& [id, one] : files_) rows_[id] = one.text;
  for (auto const& [id, more] : trials_) {
    std::string& row = rows_[id];
    if (row.empty()) row = "{\"id\":" + nlohmann::json(id).dump();
    row += "," + more;
  }
  for (auto& [id, row] : rows_) row += "}";
  return rows_;
}

EDL_INLINE void run_list::search(std::string const& below, int depth) {
  using namespace detail;
  std::string const path = directory_ + (below.empty() ? "" : "/" + below);
  std::unique_ptr<::DIR, int (*)(::DIR*)> const all(::opendir(path.c_str()), ::closedir);
  if (!all) return;
  std::vector<std::string> deeper;
  bool sweep = false;
  while (::dirent const* const e = ::readdir(all.get())) {
    std::string_view const name = e->d_name;
    if (name == history_name) {
      std::string_view id = below;
      if (id == usual_end) id = "";
      if (id.ends_with("/checkpoints")) id.remove_suffix(usual_end.size() + 1);
      take(id.empty() ? "." : printable(id), path + "/" + std::string(name));
      return;  // what lies beside it are checkpoints
    }
    sweep = sweep || name == sweep_name;
    // Where a file system does not say what an entry is, opening it will.
    if ((e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) && !name.starts_with('.')) deeper.emplace_back(name);
  }
  if (sweep) add_trials(below);
  if (depth < depth_)
    for (std::string const& one : deeper) search(below.empty() ? one : below + "/" + one, depth + 1);
}

EDL_INLINE void run_list::take(std::string const& id, std::string const& path) {
  struct ::stat is {};
  if (::stat(path.c_str(), &is) != 0 || !S_ISREG(is.st_mode)) return;
  if (!files_.contains(id) && files_.size() >= most) return;
  file& one = files_[id];
  std::int64_t const time = is.st_mtim.tv_sec * std::int64_t{1'000'000'000} + is.st_mtim.tv_nsec;
  one.seen = true;
  if (one.path == path && one.size == std::uint64_t(is.st_size) && one.time == time) return;
  one.path = path, one.size = std::uint64_t(is.st_size), one.time = time;
  auto facts = detail::newest_of(detail::end_of(path, detail::longest_end));
  facts["id"] = id;
  one.text = facts.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  one.text.pop_back();
}

EDL_INLINE void run_list::add_trials(std::string const& below) {
  auto const list = parse_json(detail::end_of(
      directory_ + "/" + below + "/" + std::string(detail::sweep_name), detail::longest_sweep));
  if (!list.is_object() || !list.contains("trials") || !list["trials"].is_array()) return;
  std::size_t number = 0;
  for (auto const& trial : list["trials"]) {
    std::string const id = printable(fmt::format("{}{}trial-{}", below, below.empty() ? "" : "/", number++));
    if (number > most || !trial.is_object()) continue;
    nlohmann::json more{{"hyperparameters", trial.value("hyperparameters", nlohmann::json(""))}};
    if (trial.contains("failure")) more["failure"] = trial["failure"];
    std::string const text = more.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    trials_[id] = text.substr(1, text.size() - 2);
  }
}

EDL_INLINE std::string run_list::lines_of(std::string const& id) const {
  auto const one = files_.find(id);
  if (one == files_.end()) return rows_.contains(id) ? "[]" : "";
  job_feed lines("run");
  read_lines(one->second.path, lines);
  return lines.history();
}

}  // namespace edl::train
