// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kueue/kueue_workload.hpp"
#include "edl/core/inline.hpp"

namespace edl::kueue {
namespace detail::reading {

using kubernetes::field;
using kubernetes::text;
using nlohmann::json;

/// The resource's limit on pod sets, conditions and checks.
inline constexpr std::size_t most_items = 16;

inline std::optional<std::uint32_t> count(json const& v) {
  if (!v.is_number_integer()) return std::nullopt;
  auto const n = v.get<std::int64_t>();
  if (n < 0 || n > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return std::uint32_t(n);
}

inline std::string dump(json const& v) { return v.dump(-1, ' ', false, json::error_handler_t::replace); }

template <class F>
void each(json const& list, F&& take) {
  if (!list.is_array()) return;
  for (std::size_t i = 0; i < std::min(list.size(), most_items); ++i) take(list[i]);
}

inline std::map<std::string, std::string> texts(json const& object) {
  std::map<std::string, std::string> all;
  if (object.is_object())
    for (auto const& [key, value] : object.items())
      if (value.is_string()) all[key] = value.get<std::string>();
  return all;
}

inline std::vector<std::string> tolerations(json const& list) {
  std::vector<std::string> all;
  if (list.is_array())
    for (json const& one : list)
      if (one.is_object()) all.push_back(dump(one));
  return all;
}

inline kubernetes::condition read_condition(json const& c) {
  std::string const status = text(field(c, {"status"}));
  kubernetes::condition out{.type = text(field(c, {"type"})),
                            .status = status == "True"    ? kubernetes::truth::yes
                                      : status == "False" ? kubernetes::truth::no
                                                          : kubernetes::truth::unknown,
                            .reason = text(field(c, {"reason"})),
                            .message = text(field(c, {"message"})),
                            .last_transition_time = text(field(c, {"lastTransitionTime"}))};
  if (auto const& g = field(c, {"observedGeneration"}); g.is_number_integer())
    out.observed_generation = g.get<std::int64_t>();
  return out;
}

inline pod_set read_set(json const& s) {
  pod_set out{.name = text(field(s, {"name"})), .min_count = count(field(s, {"minCount"}))};
  out.count = count(field(s, {"count"})).value_or(1);
  if (auto const& t = field(s, {"template"}); t.is_object()) out.pods = dump(t);
  return out;
}

inline void read_admission(json const& a, workload& into) {
  if (!a.is_object()) return;
  into.cluster_queue = text(field(a, {"clusterQueue"}));
  auto& all = into.admission.emplace();
  each(field(a, {"podSetAssignments"}), [&](json const& one) {
    assignment& to = all[text(field(one, {"name"}))];
    to.count = count(field(one, {"count"}));
    for (auto const& [resource, flavor] : texts(field(one, {"flavors"}))) to.flavors.insert(flavor);
  });
}

inline void read_owner(json const& meta, workload& into) {
  each(field(meta, {"ownerReferences"}), [&](json const& o) {
    if (field(o, {"controller"}) == true && text(field(o, {"kind"})) == kubernetes::training_job_kind &&
        text(field(o, {"apiVersion"})).starts_with(std::string(kubernetes::api_group) + "/"))
      into.owner = text(field(o, {"uid"})), into.job = text(field(o, {"name"}));
  });
}

}  // namespace detail::reading

EDL_INLINE kubernetes::condition const* workload::find(std::string_view type) const {
  auto const at = std::find_if(conditions.begin(), conditions.end(),
                               [&](kubernetes::condition const& c) { return c.type == type; });
  return at == conditions.end() ? nullptr : &*at;
}

EDL_INLINE bool workload::is(std::string_view type) const {
  kubernetes::condition const* const c = find(type);
  return c && c->status == kubernetes::truth::yes;
}

EDL_INLINE pod_set const* workload::set(std::string_view named) const {
  auto const at =
      std::find_if(pod_sets.begin(), pod_sets.end(), [&](pod_set const& s) { return s.name == named; });
  return at == pod_sets.end() ? nullptr : &*at;
}

EDL_INLINE std::uint32_t workload::granted(std::string_view named) const {
  pod_set const* const s = set(named);
  if (!s || !admission) return 0;
  auto const given = admission->find(std::string(named));
  if (given == admission->end()) return 0;
  auto const back = reclaimable.find(std::string(named));
  // Reclaimed pods count from the set's own size, not from the admitted size.
  std::uint32_t const left =
      back == reclaimable.end() ? s->count : s->count - std::min(s->count, back->second);
  return std::min(given->second.count.value_or(s->count), left);
}

EDL_INLINE std::optional<workload> read_workload(nlohmann::json const& object) {
  using namespace detail::reading;
  workload w;
  json const& meta = field(object, {"metadata"});
  read_owner(meta, w);
  if (w.owner.empty()) return std::nullopt;
  w.space = text(field(meta, {"namespace"}));
  w.name = text(field(meta, {"name"}));
  w.uid = text(field(meta, {"uid"}));
  w.resource_version = text(field(meta, {"resourceVersion"}));
  if (auto const& g = field(meta, {"generation"}); g.is_number_integer())
    w.generation = g.get<std::int64_t>();
  w.created = text(field(meta, {"creationTimestamp"}));
  w.leaving = field(meta, {"deletionTimestamp"}).is_string();
  if (auto const& all = field(meta, {"finalizers"}); all.is_array())
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] == in_use_finalizer) w.held = i;
  w.replaces = text(field(meta, {"annotations", replaces_annotation}));

  json const& spec = field(object, {"spec"});
  w.queue = text(field(spec, {"queueName"}));
  w.priority_class = text(field(spec, {"priorityClassRef", "name"}));
  if (auto const& p = field(spec, {"priority"}); p.is_number_integer()) w.priority = p.get<std::int64_t>();
  w.active = field(spec, {"active"}) != false;
  each(field(spec, {"podSets"}), [&](json const& s) { w.pod_sets.push_back(read_set(s)); });

  json const& status = field(object, {"status"});
  each(field(status, {"conditions"}), [&](json const& c) { w.conditions.push_back(read_condition(c)); });
  read_admission(field(status, {"admission"}), w);
  each(field(status, {"reclaimablePods"}), [&](json const& r) {
    w.reclaimable[text(field(r, {"name"}))] = count(field(r, {"count"})).value_or(0);
  });
  each(field(status, {"admissionChecks"}), [&](json const& check) {
    each(field(check, {"podSetUpdates"}), [&](json const& u) {
      w.updates[text(field(u, {"name"}))].push_back(
          {texts(field(u, {"labels"})), texts(field(u, {"annotations"})), texts(field(u, {"nodeSelector"})),
           tolerations(field(u, {"tolerations"}))});
    });
  });
  return w;
}

EDL_INLINE pod_changes read_flavor(nlohmann::json const& object) {
  using namespace detail::reading;
  json const& spec = field(object, {"spec"});
  return {.node_selector = texts(field(spec, {"nodeLabels"})),
          .tolerations = tolerations(field(spec, {"tolerations"}))};
}

EDL_INLINE std::string merge(pod_changes& to, pod_changes const& more) {
  for (auto const& [into, from, what] : {std::tuple{&to.labels, &more.labels, "labels"},
                                         {&to.annotations, &more.annotations, "annotations"},
                                         {&to.node_selector, &more.node_selector, "nodeSelector"}})
    for (auto const& [key, value] : *from)
      if (auto const [at, fresh] = into->emplace(key, value); !fresh && at->second != value)
        return fmt::format("{}: {}", what, key);
  for (std::string const& one : more.tolerations)
    if (std::find(to.tolerations.begin(), to.tolerations.end(), one) == to.tolerations.end())
      to.tolerations.push_back(one);
  return {};
}

EDL_INLINE changed_template with_changes(kubernetes::template_text const& template_of,
                                         pod_changes const& changes) {
  using namespace detail::reading;
  if (changes == pod_changes{} || template_of.empty()) return {template_of};
  json pods = json::parse(template_of);
  pod_changes all{texts(field(pods, {"metadata", "labels"})), texts(field(pods, {"metadata", "annotations"})),
                  texts(field(pods, {"spec", "nodeSelector"})),
                  tolerations(field(pods, {"spec", "tolerations"}))};
  if (std::string conflict = merge(all, changes); !conflict.empty())
    return {template_of, std::move(conflict)};
  if (!all.labels.empty()) pods["metadata"]["labels"] = all.labels;
  if (!all.annotations.empty()) pods["metadata"]["annotations"] = all.annotations;
  if (!all.node_selector.empty()) pods["spec"]["nodeSelector"] = all.node_selector;
  json& list = pods["spec"]["tolerations"] = json::array();
  for (std::string const& one : all.tolerations) list.push_back(json::parse(one));
  if (list.empty()) pods["spec"].erase("tolerations");
  return {dump(pods)};
}

EDL_INLINE bool covers(nlohmann::json const& read, nlohmann::json const& sent) {
  if (sent.is_object()) {
    if (!read.is_object()) return sent.empty();
    for (auto const& [key, value] : sent.items()) {
      auto const at = read.find(key);
      // A server drops empty values.
      if (at == read.end() ? !(value.is_null() || (value.is_structured() && value.empty()))
                           : !covers(*at, value))
        return false;
    }
    return true;
  }
  if (sent.is_array()) {
    if (!read.is_array() || read.size() != sent.size()) return false;
    for (std::size_t i = 0; i < sent.size(); ++i)
      if (!covers(read[i], sent[i])) return false;
    return true;
  }
  return read == sent;
}

}  // namespace edl::kueue
