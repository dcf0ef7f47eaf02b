// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/cluster/kubernetes/object_reader.hpp"
#include "edl/cluster/kubernetes/training_job_status.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/printable.hpp"

namespace edl::kubernetes {
namespace detail::job_status {

using nlohmann::json;

inline constexpr std::size_t longest_message = 32768, longest_reason = 1024, longest_text = 4096,
                             most_conditions = 32;
inline constexpr std::int64_t most_count = 1'000'000'000, most_records = std::int64_t{1} << 62;
inline constexpr std::pair<truth, char const*> truths[] = {
    {truth::no, "False"}, {truth::yes, "True"}, {truth::unknown, "Unknown"}};

inline char const* word(truth t) {
  for (auto const& [value, text] : truths)
    if (value == t) return text;
  return "Unknown";
}

inline void put(json& into, char const* name, std::string const& text) {
  if (!text.empty()) into[name] = printable(text, longest_message);
}

inline void put(json& into, char const* name, std::uint64_t n) {
  if (n > 0) into[name] = std::min<std::uint64_t>(n, most_records);
}

inline json counts_to(role_counts const& c) {
  return {{"desired", c.desired}, {"running", c.running}, {"pending", c.pending}};
}

inline role_counts counts_from(object_reader const& from) {
  role_counts c;
  from.take_number("desired", c.desired, 0, most_count);
  from.take_number("running", c.running, 0, most_count);
  from.take_number("pending", c.pending, 0, most_count);
  return c;
}

inline json condition_to(condition const& c) {
  json out{{"type", printable(c.type, longest_reason)}, {"status", word(c.status)}};
  out["reason"] = printable(c.reason.empty() ? c.type : c.reason, longest_reason);
  out["message"] = printable(c.message, longest_message);
  put(out, "lastTransitionTime", c.last_transition_time);
  put(out, "observedGeneration", std::uint64_t(c.observed_generation));
  return out;
}

inline truth truth_from(object_reader const& from, char const* name) {
  std::string value;
  from.take(name, value);
  auto const found =
      std::find_if(std::begin(truths), std::end(truths), [&](auto const& t) { return t.second == value; });
  if (found == std::end(truths)) from.fail(name, "is neither True nor False nor Unknown");
  return found->first;
}

inline condition condition_from(object_reader const& from) {
  condition c;
  from.take("type", c.type, longest_reason);
  c.status = truth_from(from, "status");
  from.take("reason", c.reason, longest_reason);
  from.take("message", c.message, longest_message);
  from.take("lastTransitionTime", c.last_transition_time);
  from.take_number("observedGeneration", c.observed_generation, 0, most_records);
  return c;
}

inline json progress_to(job_progress const& p) {
  json out = json::object();
  out["records"] = std::min<std::uint64_t>(p.records, most_records);
  put(out, "totalRecords", p.total_records);
  put(out, "epoch", p.epoch);
  put(out, "epochs", p.epochs);
  put(out, "version", p.version);
  put(out, "recordsPerSecond", p.records_per_second);
  put(out, "estimatedEnd", p.estimated_end);
  put(out, "observedTime", p.observed_time);
  return out;
}

inline json spot_to(spot_status const& s) {
  json out = json::object();
  put(out, "pool", s.pool);
  if (!s.reason.empty()) out["reason"] = printable(s.reason, longest_reason);
  put(out, "time", s.time);
  out["usd"] = s.usd;
  put(out, "countedTime", s.counted_time);
  if (s.start_seconds > 0) out["startSeconds"] = s.start_seconds;
  for (std::size_t i = 0; i < std::min(s.pools.size(), most_sighted_pools); ++i) {
    pool_sightings const& p = s.pools[i];
    json one{{"name", p.name}, {"up", word(p.up)}, {"upHours", p.up_hours}, {"downHours", p.down_hours}};
    put(one, "losses", p.losses);
    put(one, "returns", p.returns);
    put(one, "observedTime", p.observed_time);
    out["pools"].push_back(one);
  }
  return out;
}

inline spot_status spot_from(object_reader const& from) {
  spot_status s;
  from.take("pool", s.pool);
  from.take("reason", s.reason, longest_reason);
  from.take("time", s.time);
  s.usd = from.fraction("usd");
  from.take("countedTime", s.counted_time);
  s.start_seconds = from.fraction("startSeconds");
  for (object_reader const& one : from.objects("pools", most_sighted_pools)) {
    pool_sightings& p = s.pools.emplace_back();
    one.take("name", p.name);
    p.up = truth_from(one, "up");
    p.up_hours = one.fraction("upHours");
    p.down_hours = one.fraction("downHours");
    one.take_number("losses", p.losses, 0, most_count);
    one.take_number("returns", p.returns, 0, most_count);
    one.take("observedTime", p.observed_time);
  }
  return s;
}

inline job_progress progress_from(object_reader const& from) {
  job_progress p;
  from.take_number("records", p.records, 0, most_records);
  from.take_number("totalRecords", p.total_records, 0, most_records);
  from.take_number("epoch", p.epoch, 0, 0xffffffff);
  from.take_number("epochs", p.epochs, 0, 0xffffffff);
  from.take_number("version", p.version, 0, most_records);
  from.take_number("recordsPerSecond", p.records_per_second, 0, most_records);
  from.take("estimatedEnd", p.estimated_end);
  from.take("observedTime", p.observed_time);
  return p;
}

}  // namespace detail::job_status

EDL_INLINE condition const* find_condition(training_job_status const& status, std::string_view type) {
  for (condition const& c : status.conditions)
    if (c.type == type) return &c;
  return nullptr;
}

EDL_INLINE bool is_true(training_job_status const& status, std::string_view type) {
  condition const* const c = find_condition(status, type);
  return c && c->status == truth::yes;
}

EDL_INLINE bool set_condition(training_job_status& status, condition next) {
  invariant(!next.type.empty(), "a condition has a type, by which it is found again");
  next.message = printable(next.message, detail::job_status::longest_message);
  auto const is = std::find_if(status.conditions.begin(), status.conditions.end(),
                               [&](condition const& c) { return c.type == next.type; });
  if (is == status.conditions.end()) {
    status.conditions.push_back(std::move(next));
    return true;
  }
  if (is->status == next.status) next.last_transition_time = is->last_transition_time;
  bool const differs = is->status != next.status || is->reason != next.reason || is->message != next.message;
  *is = std::move(next);
  return differs;
}

EDL_INLINE void add_scale_record(training_job_status& status, scale_record next) {
  invariant(next.from != next.to, "a change of the scale changes it");
  status.scale_records.insert(status.scale_records.begin(), std::move(next));
  if (status.scale_records.size() > most_scale_records) status.scale_records.resize(most_scale_records);
}

EDL_INLINE std::string phase_of(training_job_status const& status) {
  auto const is = [&](std::string_view type) { return is_true(status, type); };
  if (is(condition_type::succeeded)) return "succeeded";
  if (is(condition_type::failed)) return "failed";
  if (is(condition_type::suspended)) return "suspended";
  if (!is(condition_type::admitted)) return "pending";
  if (!is(condition_type::running)) return "creating";
  return is(condition_type::resizing) ? "scaling" : "running";
}

EDL_INLINE nlohmann::json status_json(training_job_status const& status) {
  using namespace detail::job_status;
  json out{{"phase", phase_of(status)},
           {"replicas", status.replicas},
           {"master", counts_to(status.master)},
           {"servers", counts_to(status.servers)},
           {"workers", counts_to(status.workers)}};
  put(out, "observedGeneration", std::uint64_t(status.observed_generation));
  for (condition const& c : status.conditions)
    if (out["conditions"].size() < most_conditions) out["conditions"].push_back(condition_to(c));
  put(out, "attempts", status.attempts);
  put(out, "restarts", status.restarts);
  put(out, "startTime", status.start_time);
  put(out, "completionTime", status.completion_time);
  put(out, "selector", status.selector);
  if (status.progress != job_progress{}) out["progress"] = progress_to(status.progress);
  for (std::size_t i = 0; i < std::min(status.speeds.size(), most_speeds); ++i)
    out["speeds"].push_back(
        {{"workers", status.speeds[i].workers}, {"recordsPerSecond", status.speeds[i].records_per_second}});
  for (std::size_t i = 0; i < std::min(status.scale_records.size(), most_scale_records); ++i) {
    scale_record const& r = status.scale_records[i];
    json one{{"from", r.from}, {"to", r.to}, {"reason", printable(r.reason, longest_reason)}};
    put(one, "time", r.time);
    out["scaleRecords"].push_back(one);
  }
  put(out, "activeSeconds", status.active_seconds);
  if (status.spot != spot_status{}) out["spot"] = spot_to(status.spot);
  return out;
}

EDL_INLINE training_job_status read_status(nlohmann::json const& value, std::string const& whose) {
  using namespace detail::job_status;
  object_reader const from(value, whose, "status");
  training_job_status s;
  from.take_number("observedGeneration", s.observed_generation, 0, most_records);
  for (object_reader const& c : from.objects("conditions", most_conditions)) {
    condition one = condition_from(c);
    if (find_condition(s, one.type)) c.fail("type", "occurs twice");
    s.conditions.push_back(std::move(one));
  }
  from.take_number("attempts", s.attempts, 0, most_count);
  from.take_number("restarts", s.restarts, 0, most_count);
  from.take("startTime", s.start_time);
  from.take("completionTime", s.completion_time);
  from.take_number("replicas", s.replicas, 0, most_count);
  from.take("selector", s.selector);
  s.master = counts_from(from.object("master"));
  s.servers = counts_from(from.object("servers"));
  s.workers = counts_from(from.object("workers"));
  s.progress = progress_from(from.object("progress"));
  for (object_reader const& one : from.objects("speeds", most_speeds)) {
    speed_record& r = s.speeds.emplace_back();
    one.take_number("workers", r.workers, 0, most_count);
    r.records_per_second = one.fraction("recordsPerSecond");
  }
  for (object_reader const& one : from.objects("scaleRecords", most_scale_records)) {
    scale_record& r = s.scale_records.emplace_back();
    one.take("time", r.time);
    one.take_number("from", r.from, 0, most_count);
    one.take_number("to", r.to, 0, most_count);
    one.take("reason", r.reason, longest_reason);
  }
  from.take_number("activeSeconds", s.active_seconds, 0, most_records);
  if (from.has("spot")) s.spot = spot_from(from.object("spot"));
  return s;
}

}  // namespace edl::kubernetes
