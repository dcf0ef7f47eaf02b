// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "edl/cluster/controller/cluster_reading.hpp"
#include "edl/cluster/controller/pod_record.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/pod_status.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/wall_time.hpp"

namespace edl::controller {
namespace detail::record {

using kubernetes::field;
using kubernetes::first;
using kubernetes::text;
using nlohmann::json;

inline constexpr std::size_t longest_report = 16 << 10, most_reported_speeds = 32, longest_note = 1024;
inline constexpr std::uint32_t most_workers = 10'000;

inline double positive(json const& v) {
  double const n = v.is_number() ? v.get<double>() : 0;
  return std::isfinite(n) && n > 0 ? n : 0;
}

template <class T>
T whole(json const& v) {
  return T(std::min(positive(v), 9e15) > double(std::numeric_limits<T>::max())
               ? double(std::numeric_limits<T>::max())
               : std::min(positive(v), 9e15));
}

inline std::string short_text(json const& v) { return shortened(text(v), longest_note); }

/// The uid of the TrainingJob that controls a pod; empty: none.
inline std::string job_of(json const& pod) {
  auto const& owners = field(pod, {"metadata", "ownerReferences"});
  if (owners.is_array())
    for (json const& o : owners)
      if (field(o, {"controller"}) == true && text(field(o, {"kind"})) == "TrainingJob" &&
          text(field(o, {"apiVersion"})).starts_with("elasticdl.org/"))
        return text(field(o, {"uid"}));
  return {};
}

inline std::unique_ptr<master_state> read_master(json const& pod, kubernetes::pod_status const& s) {
  using kubernetes::number;
  auto m = std::make_unique<master_state>();
  auto const& notes = field(pod, {"metadata", "annotations"});
  m->attempt = number(field(notes, {attempt_annotation})).value_or(1);
  m->restart = number(field(notes, {restart_annotation})).value_or(0);
  m->first_size = number(field(notes, {first_size_annotation})).value_or(0);
  m->requested_size = short_text(field(notes, {annotation::num_workers}));
  m->leave = short_text(field(notes, {annotation::leave}));
  m->suspending = text(field(notes, {annotation::suspend})) == "true";
  m->pool = kubernetes::pool_of(pod);
  m->short_nodes = text(field(notes, {annotation::short_nodes}));
  m->scaled = short_text(field(notes, {annotation::scaled}));
  m->waits = short_text(field(notes, {annotation::waits}));
  m->leaving_nodes = text(field(notes, {annotation::leaving_nodes}));
  m->missing = short_text(field(notes, {annotation::missing}));
  m->size = kubernetes::shown_size(pod);
  m->report = read_report(text(field(notes, {annotation::report})));
  auto const& container = kubernetes::program_status(pod);
  m->started = field(container, {"state", "running"}).is_object() ||
               field(container, {"state", "terminated"}).is_object() ||
               field(container, {"lastState", "terminated"}).is_object();
  m->ready = field(container, {"ready"}) == true;
  if (int const code = whole<std::uint32_t>(field(container, {"lastState", "terminated", "exitCode"}));
      code > 128 && code != 128 + SIGKILL && code != 128 + SIGTERM)
    m->crashes = whole<std::uint32_t>(field(container, {"restartCount"}));
  if (s.over()) {
    // When the master has exited by itself, a later deletion of its pod is not the cause of its end.
    kubernetes::pod_status how = s;
    if (s.ended && s.ended->code < 128) {
      how.terminating = false;
      how.disruption.clear();
      how.reason.clear();
    }
    m->ending = ending_of(how);
  }
  return m;
}

/// A kubelet reports a container's end before the pod's end: a pod whose containers have all ended occupies
/// nothing.
inline bool another_runs(json const& pod) {
  for (json const& c : field(pod, {"status", "containerStatuses"}))
    if (!field(c, {"state", "terminated"}).is_object()) return true;
  return false;
}

}  // namespace detail::record

EDL_INLINE std::optional<job_report> read_report(std::string const& report) {
  using namespace detail::record;
  if (report.empty() || report.size() > longest_report) return std::nullopt;
  json const v = parse_json(report);
  if (!v.is_object()) return std::nullopt;
  job_report r;
  r.records = whole<std::uint64_t>(field(v, {"records"}));
  r.total_records = whole<std::uint64_t>(field(v, {"total_records"}));
  r.epoch = whole<std::uint32_t>(field(v, {"epoch"}));
  r.epochs = whole<std::uint32_t>(field(v, {"epochs"}));
  r.version = whole<std::uint64_t>(field(v, {"version"}));
  r.records_per_s = positive(field(v, {"records_per_s"}));
  r.workers = whole<std::uint32_t>(field(v, {"workers"}));
  if (auto const& left = field(v, {"seconds_left"}); left.is_number()) r.seconds_left = positive(left);
  if (auto const& still = field(v, {"standstill_s"}); still.is_number()) r.standstill_s = positive(still);
  if (auto const& speeds = field(v, {"speeds"}); speeds.is_array())
    for (json const& one : speeds) {
      if (!one.is_array() || one.size() != 2 || r.speeds.size() == most_reported_speeds) continue;
      kubernetes::speed_record const s{whole<std::uint32_t>(one[0]), positive(one[1])};
      if (s.workers > 0 && s.workers <= most_workers && s.records_per_second > 0) r.speeds.push_back(s);
    }
  return r;
}

EDL_INLINE pod_record read_record(nlohmann::json const& pod) {
  using namespace detail::record;
  pod_record r;
  auto const& meta = field(pod, {"metadata"});
  r.key = text(field(meta, {"namespace"})) + "/" + text(field(meta, {"name"}));
  r.uid = text(field(meta, {"uid"}));
  r.version = text(field(meta, {"resourceVersion"}));
  r.node = text(field(pod, {"spec", "nodeName"}));
  r.pool = kubernetes::pool_of(pod);
  if (auto const& p = field(pod, {"spec", "priority"}); p.is_number_integer())
    r.priority = int(std::clamp<std::int64_t>(p.get<std::int64_t>(), -2'147'483'647, 2'147'483'647));
  r.nominated = text(field(pod, {"status", "nominatedNodeName"}));
  std::string const phase = text(field(pod, {"status", "phase"}));
  r.at = phase == "Running"                          ? pod_record::phase::running
         : phase == "Succeeded" || phase == "Failed" ? pod_record::phase::over
                                                     : pod_record::phase::pending;
  r.leaving = field(meta, {"deletionTimestamp"}).is_string();
  if (r.leaving) r.leave_by = seconds_of(text(field(meta, {"deletionTimestamp"}))).value_or(0);
  r.wants_room = !r.leaving && r.at == pod_record::phase::pending && wants_room(pod);
  r.owner = job_of(pod);
  if (r.owner.empty()) return r;
  auto const s = kubernetes::read_pod(pod);
  if (!s) {
    r.owner.clear();  // owned by a TrainingJob, but neither master nor member
    return r;
  }
  r.who = s->who;
  r.outlived = s->over() && r.at == pod_record::phase::running && another_runs(pod);
  if (s->over()) r.at = pod_record::phase::over;
  if (kubernetes::hopeless(*s)) r.hopeless = shortened(s->waiting, longest_note);
  r.trouble = shortened(trouble(*s), longest_note);
  if (auto const& holders = field(meta, {"finalizers"}); holders.is_array())
    r.held = std::find(holders.begin(), holders.end(), recorded_finalizer) != holders.end();
  if (r.who.role == role::master) r.master = read_master(pod, *s);
  return r;
}

EDL_INLINE bool same_for_plan(pod_record const& a, pod_record const& b) {
  return a.uid == b.uid && a.node == b.node && a.nominated == b.nominated && a.shape.same(b.shape) &&
         a.priority == b.priority && a.owner == b.owner &&
         (a.at == pod_record::phase::over) == (b.at == pod_record::phase::over) && a.outlived == b.outlived &&
         a.leaving == b.leaving && a.wants_room == b.wants_room;
}

EDL_INLINE bool same_for_job(pod_record const& a, pod_record const& b) {
  bool const same = a.uid == b.uid && a.node == b.node && a.pool == b.pool && a.owner == b.owner &&
                    a.at == b.at && a.outlived == b.outlived && a.leaving == b.leaving && a.held == b.held &&
                    a.trouble == b.trouble && a.hopeless == b.hopeless && !a.master == !b.master;
  if (!same || !a.master) return same;
  master_state const &x = *a.master, &y = *b.master;
  return x.attempt == y.attempt && x.restart == y.restart && x.requested_size == y.requested_size &&
         x.leave == y.leave && x.suspending == y.suspending && x.pool == y.pool &&
         x.short_nodes == y.short_nodes && x.scaled == y.scaled && x.size == y.size && x.report == y.report &&
         x.started == y.started && x.ready == y.ready && x.waits == y.waits && x.missing == y.missing &&
         x.leaving_nodes == y.leaving_nodes && x.crashes == y.crashes && x.ending.code == y.ending.code &&
         x.ending.words == y.ending.words;
}

}  // namespace edl::controller
