// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/names.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"
#include "edl/job/train/dashboard/job_facts.hpp"
#include "edl/job/train/setup/setup.hpp"

namespace edl::train {
namespace detail::facts {

using nlohmann::json;

inline constexpr std::size_t most_processes = 1000, most_text = 1000;

inline double rounded(double x) { return std::isfinite(x) ? std::round(x * 1000) / 1000 : 0; }

inline char const* state_of(job_facts const& f) {
  if (f.stopped && !f.decisions.over()) return "stopped";
  switch (f.decisions.job().phase()) {
    case master::job_phase::forming:
      return "gathering";
    case master::job_phase::configuring:
      return "preparing";
    case master::job_phase::running:
      return f.decisions.suspending() ? "suspending" : "training";
    case master::job_phase::closing:
      return f.decisions.suspending() ? "suspending" : "finishing";
    case master::job_phase::finished:
      return "finished";
    case master::job_phase::suspended:
      return "suspended";
    case master::job_phase::failed:
      return "failed";
  }
  return "";
}

/// Where to find a process: its place, if known, and its addresses for other machines.
inline std::string address_of(job_facts const& f, process_id who, master::member const& m) {
  std::string all = f.place ? f.place(who) : std::string();
  for (std::string const& one : m.addresses)
    if (one.starts_with("tcp:")) all += (all.empty() ? "" : ", ") + one.substr(4, one.find('!') - 4);
  return printable(all, 200);
}

inline json row_of(job_facts const& f, role of, master::member const& m) {
  using seconds = std::chrono::duration<double>;
  return {{"process", to_string(process_id{of, m.id})},
          {"role", master::in_words(of)},
          {"state", "running"},
          {"incarnation", fmt::format("{:016x}", m.incarnation)},
          {"address", address_of(f, {of, m.id}, m)},
          {"joined", rounded(f.time - seconds(f.now - m.joined).count())},
          {"heard_s", rounded(std::max(0.0, seconds(f.now - m.seen).count()))},
          {"records_per_s", rounded(m.rate)},
          {"records", m.trained.records},
          {"version", m.last.version},
          {"memory_bytes", m.last.resident_bytes}};
}

/// Adds rows for the members, and for processes that are still to join.
inline void add_rows(json& to, std::size_t& all, job_facts const& f, role of,
                     master::membership const& members, master::lineages::record const& lines) {
  auto const add = [&](json row) {
    if (++all <= most_processes) to.push_back(std::move(row));
  };
  for (auto const& [id, m] : members.all()) add(row_of(f, of, m));
  for (auto const& line : lines.lines)
    if (!members.find(line.id) && !f.decisions.over())
      add({{"process", to_string(process_id{of, line.id})},
           {"role", master::in_words(of)},
           {"state", line.ended ? "given up" : "awaited"}});
}

}  // namespace detail::facts

EDL_INLINE std::string to_json(job_facts const& f) {
  using namespace detail::facts;
  master::job_progress const& p = f.at;
  auto const known = [](std::optional<std::uint64_t> const& n) { return n ? json(*n) : json(nullptr); };
  json processes = json::array();
  processes.push_back({{"process", f.config.strategy == strategy::local ? "local" : "master"},
                       {"role", f.config.strategy == strategy::local ? "whole job" : "master"},
                       {"state", "running"},
                       {"address", printable(f.host, 200)},
                       {"joined", rounded(f.since)}});
  std::size_t all = 1;
  if (f.config.strategy == strategy::local) {
    processes[0].update(
        json{{"records_per_s", rounded(p.rate)}, {"records", p.trained.records}, {"version", p.version}});
  } else {
    auto const kept = f.decisions.remembered();
    add_rows(processes, all, f, role::server, f.decisions.servers(), kept.servers);
    add_rows(processes, all, f, role::worker, f.decisions.workers(), kept.workers);
  }
  json out{{"name", printable(f.config.name, most_text)},
           {"strategy", name_of(f.config.strategy)},
           {"state", state_of(f)},
           {"reason", printable(f.decisions.reason(), most_text)},
           {"waits_for", ""},
           {"time", rounded(f.time)},
           {"since", rounded(f.since)},
           {"step", p.version},
           {"generation", count_of(f.decisions.generation())},
           {"epoch", p.epoch},
           {"epochs", std::max(0, f.config.data.num_epochs)},
           {"max_step", f.config.data.max_step},
           {"tasks", p.done.tasks_done},
           {"total_tasks", known(p.total_tasks)},
           {"records", p.done.records_done},
           {"total_records", known(p.total_records)},
           {"records_per_s", rounded(p.rate)},
           {"steps_per_s", rounded(f.steps_per_s)},
           {"seconds_left", nullptr},
           {"loss", p.loss == 0 || !std::isfinite(p.loss) ? json(nullptr) : json(p.loss)},
           {"workers", p.workers},
           {"servers", p.servers},
           {"account",
            {{"records_counted", p.done.records_done},
             {"records_skipped", p.done.records_skipped},
             {"members_lost", p.lost},
             {"tasks_repeated", p.repeated},
             {"tasks_recovered", p.recovered},
             {"epochs", account_lines(f.decisions)}}},
           {"worst", known(f.worst)},
           {"processes", std::move(processes)},
           {"processes_left_out", all - std::min(all, most_processes)}};
  if (p.total_records && p.rate > 0 && !f.decisions.over())
    out["seconds_left"] =
        std::ceil(double(*p.total_records - std::min(p.done.records_done, *p.total_records)) / p.rate);
  bool const moves = f.decisions.job().phase() == master::job_phase::running && !f.stuck;
  if (!moves && !f.decisions.over() && !f.stopped)
    out["waits_for"] = printable(f.decisions.waits_for(f.now), most_text);
  return out.dump();
}

EDL_INLINE std::string to_json(master::log_line const& what, double time) {
  using namespace detail::facts;
  return json{{"time", rounded(time)},
              {"kind", name_of(what.subject)},
              {"severity", lower(name_of(what.level))},
              {"text", printable(what.text, most_text)}}
      .dump();
}

}  // namespace edl::train
