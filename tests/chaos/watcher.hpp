// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chaos/fault.hpp"

namespace chaos {

/// A line of a job's log.
struct line {
  wall_clock::time_point at;
  std::string level, process, text;  ///< all but the text empty: no line of the logger
};

/// Reads a job's log while it grows.
class watcher {
 public:
  explicit watcher(std::string path) : path_(std::move(path)) {}

  /// Takes what is new.
  void read() {
    std::ifstream in(path_, std::ios::binary);
    in.seekg(std::streamoff(taken_));
    std::string more{std::istreambuf_iterator<char>(in), {}};
    more.resize(more.rfind('\n') + 1);  // npos + 1: nothing is whole yet
    taken_ += more.size();
    for (std::size_t at = 0; at < more.size();) {
      auto const end = more.find('\n', at);
      take(more.substr(at, end - at));
      at = end + 1;
    }
  }

  std::vector<line> const& lines() const { return lines_; }

  /// Workers that have joined, with their processes, as they say themselves.
  std::map<std::string, std::set<long>> const& joined() const { return joined_; }

  bool has(std::string const& text) const {
    return std::any_of(lines_.begin(), lines_.end(),
                       [&](line const& l) { return l.text.find(text) != std::string::npos; });
  }

  static bool is_step(line const& l) { return l.text.starts_with("Loss = "); }

 private:
  void take(std::string const& whole) {
    line l{{}, {}, {}, whole};
    auto const between = [&](std::size_t& at) -> std::optional<std::string> {
      if (at >= whole.size() || whole[at] != '[') return std::nullopt;
      auto const end = whole.find("] ", at);
      if (end == std::string::npos) return std::nullopt;
      std::string part = whole.substr(at + 1, end - at - 1);
      at = end + 2;
      return part;
    };
    std::size_t at = 0;
    auto const time = between(at), level = between(at);
    auto const before = at;
    // Processes of one command say where in the source they are with --verbose only.
    if (auto const place = between(at); !place || place->find(':') == place->npos) at = before;
    if (time && level && time->size() == 23) {
      l.at = parse(*time);
      l.level = *level;
      auto const process = between(at);
      bool const named =
          process && (process->starts_with("worker-") || process->starts_with("ps-") || *process == "master");
      if (named) l.process = *process;
      if (process && !named) at -= process->size() + 3;
      l.text = whole.substr(at);
    }
    static std::string const said = "joined the job (process ";
    if (l.process.starts_with("worker-") && l.text.starts_with(said))
      joined_[l.process].insert(std::atol(l.text.c_str() + said.size()));
    lines_.push_back(std::move(l));
  }

  wall_clock::time_point parse(std::string const& text) {
    std::string const second = text.substr(0, 19);
    if (second != second_) {
      std::tm parts{};
      ::strptime(second.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
      parts.tm_isdst = -1;
      base_ = wall_clock::from_time_t(std::mktime(&parts));
      second_ = second;
    }
    return base_ + milliseconds(std::atoi(text.c_str() + 20));
  }

  std::string path_;
  std::size_t taken_ = 0;
  std::vector<line> lines_;
  std::map<std::string, std::set<long>> joined_;
  std::string second_;  // parsed last
  wall_clock::time_point base_;
};

/// The line by which the master says that it has dealt with a fault.
inline bool deals_with(line const& l, fault const& f, bool allreduce) {
  if (l.process != "master") return false;
  auto const begins = [&](char const* with) { return l.text.starts_with(with); };
  switch (f.what) {
    case kind::server:
    case kind::storage_and_server:
    case kind::newcomer_silent:
    case kind::squatted:
      if (allreduce || !f.victims.front().starts_with("ps-")) break;
      return begins("Going back to version") || begins("Going on at version");
    case kind::master:
    case kind::journal:
      return allreduce ? begins("World ") : begins("Going on at version");
    default:
      break;
  }
  if (allreduce || f.what == kind::master_and_worker)
    return allreduce ? begins("World ") : begins("Going on at version");
  return std::ranges::any_of(f.victims, [&](std::string const& v) {
    return v.starts_with("worker-") && l.text.starts_with("worker " + v.substr(7) + " is lost");
  });
}

/// The times of a fault, as the log of its job has them. What the master said from `next` on, it said of the
/// next fault.
inline sample measure(std::vector<line> const& lines, fault const& f, wall_clock::time_point next,
                      bool allreduce, std::string const& strategy) {
  sample s{.what = f.what, .in_recovery = f.in_recovery, .alone = f.bystanders.empty(), .strategy = strategy};
  bool const noticed = !unnoticed(f.what);
  // Lines are in order but for a few that two processes wrote at a time, and their time is cut to
  // milliseconds.
  for (line const& l : lines) {
    if (l.process.empty() || l.at <= f.at) continue;
    double const seconds = std::chrono::duration<double>(l.at - f.at).count();
    bool const step =
        watcher::is_step(l) && (s.alone || std::ranges::find(f.bystanders, l.process) != f.bystanders.end());
    if (step && s.next_step < 0) s.next_step = seconds;
    if (noticed && s.found < 0 && l.at < next && deals_with(l, f, allreduce)) s.found = seconds;
    if (step && s.found >= 0) s.recovered = seconds;
    if (s.recovered >= 0 || (s.next_step >= 0 && s.found < 0 && l.at >= next)) break;
  }
  return s;
}

}  // namespace chaos
