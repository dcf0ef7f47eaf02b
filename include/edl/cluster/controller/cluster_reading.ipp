// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "edl/cluster/autoscaler/pod_selector.hpp"
#include "edl/cluster/controller/cluster_reading.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/quantity.hpp"

namespace edl::controller {
namespace detail::reading {

using kubernetes::field;
using kubernetes::text;
using nlohmann::json;

/// With this bound, the sum over 500 such pods on a node fits in 64 bits.
inline constexpr std::int64_t most = std::int64_t{1} << 54;

inline std::int64_t amount(json const& value) {
  try {
    std::string const written = value.is_string() ? value.get<std::string>() : value.dump();
    return std::int64_t(std::min<std::uint64_t>(thousandths_of(written), std::uint64_t(most)));
  } catch (error const&) {
    return 0;
  }
}

inline autoscaler::resources amounts(json const& map) {
  autoscaler::resources out;
  if (map.is_object())
    for (auto const& [name, value] : map.items())
      if (auto const n = amount(value); n > 0) out[name] = n;
  return out;
}

/// The requests of one container. A limit without a request is also the request.
inline autoscaler::resources requested(json const& given) {
  autoscaler::resources out = amounts(field(given, {"requests"}));
  for (auto const& [name, n] : amounts(field(given, {"limits"}))) out.emplace(name, n);
  return out;
}

inline void add(autoscaler::resources& to, autoscaler::resources const& more) {
  for (auto const& [name, n] : more) to[name] = std::min(most, to[name] + n);
}

inline void raise(autoscaler::resources& to, autoscaler::resources const& least) {
  for (auto const& [name, n] : least) to[name] = std::max(to[name], n);
}

inline autoscaler::resources of_pod(json const& spec) {
  autoscaler::resources sidecars, together, starting;
  if (auto const& first = field(spec, {"initContainers"}); first.is_array())
    for (json const& c : first) {
      autoscaler::resources const its = requested(field(c, {"resources"}));
      if (text(field(c, {"restartPolicy"})) == "Always") {
        add(sidecars, its);
        raise(starting, sidecars);
      } else {
        autoscaler::resources with = sidecars;
        add(with, its);
        raise(starting, with);
      }
    }
  if (auto const& all = field(spec, {"containers"}); all.is_array())
    for (json const& c : all) add(together, requested(field(c, {"resources"})));
  add(together, sidecars);
  raise(together, starting);
  // Requests at pod level replace the sum over the containers.
  for (auto const& [name, n] : requested(field(spec, {"resources"}))) together[name] = n;
  add(together, amounts(field(spec, {"overhead"})));
  return together;
}

inline std::map<std::string, std::string> texts(json const& map) {
  std::map<std::string, std::string> out;
  if (map.is_object())
    for (auto const& [name, value] : map.items()) out[name] = text(value);
  return out;
}

inline bool has(std::string const& in, std::string_view what) { return in.find(what) != in.npos; }

}  // namespace detail::reading

EDL_INLINE autoscaler::pod_shape read_shape(nlohmann::json const& spec, std::string const& space) {
  using namespace detail::reading;
  autoscaler::pod_shape s;
  s.requests = of_pod(spec);
  s.node_selector = texts(field(spec, {"nodeSelector"}));
  auto const& terms = field(spec, {"affinity", "nodeAffinity",
                                   "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (terms.is_array())
    for (json const& term : terms) {
      auto lines = autoscaler::read_requirements(field(term, {"matchExpressions"}));
      std::erase_if(lines, [](auto const& r) { return r.key == "metadata.name"; });  // no label is called so
      std::ranges::move(autoscaler::read_requirements(field(term, {"matchFields"})),
                        std::back_inserter(lines));
      if (!lines.empty()) s.affinity.push_back(std::move(lines));  // an empty term matches nothing
    }
  if (auto const& tolerations = field(spec, {"tolerations"}); tolerations.is_array())
    for (json const& t : tolerations)
      s.tolerations.push_back({.key = text(field(t, {"key"})),
                               .value = text(field(t, {"value"})),
                               .effect = text(field(t, {"effect"})),
                               .exists = text(field(t, {"operator"})) == "Exists"});
  s.apart = autoscaler::read_separations(spec, "podAntiAffinity", space);
  s.together = autoscaler::read_separations(spec, "podAffinity", space);
  return s;
}

EDL_INLINE std::map<std::string, std::string> labels_of(nlohmann::json const& object) {
  return detail::reading::texts(kubernetes::field(object, {"metadata", "labels"}));
}

EDL_INLINE bool lost(nlohmann::json const& object) {
  using namespace detail::reading;
  if (auto const& conditions = field(object, {"status", "conditions"}); conditions.is_array())
    for (json const& c : conditions)
      if (text(field(c, {"type"})) == "Ready") return text(field(c, {"status"})) != "True";
  return true;
}

EDL_INLINE std::string pressure(nlohmann::json const& object) {
  using namespace detail::reading;
  std::string all;
  if (auto const& conditions = field(object, {"status", "conditions"}); conditions.is_array())
    for (json const& c : conditions)
      if (std::string const type = text(field(c, {"type"}));
          type.ends_with("Pressure") && text(field(c, {"status"})) == "True")
        all += (all.empty() ? "" : ", ") + type;
  return all;
}

EDL_INLINE autoscaler::node read_node(nlohmann::json const& object) {
  using namespace detail::reading;
  autoscaler::node n;
  n.name = text(field(object, {"metadata", "name"}));
  n.allocatable = amounts(field(object, {"status", "allocatable"}));
  if (auto const& taints = field(object, {"spec", "taints"}); taints.is_array())
    for (json const& t : taints)
      n.taints.push_back({text(field(t, {"key"})), text(field(t, {"value"})), text(field(t, {"effect"}))});
  n.schedulable = !lost(object) && field(object, {"spec", "unschedulable"}) != true;
  return n;
}

EDL_INLINE bool wants_room(nlohmann::json const& pod) {
  using namespace detail::reading;
  if (!text(field(pod, {"spec", "nodeName"})).empty()) return false;
  if (auto const& gates = field(pod, {"spec", "schedulingGates"}); gates.is_array() && !gates.empty())
    return false;
  if (auto const& conditions = field(pod, {"status", "conditions"}); conditions.is_array())
    for (json const& c : conditions) {
      if (text(field(c, {"type"})) != "PodScheduled" || text(field(c, {"status"})) != "False") continue;
      // The scheduler's message counts the nodes by the reason that excludes them.
      std::string const why = text(field(c, {"message"}));
      return has(why, "Insufficient ") || has(why, "Too many pods");
    }
  return true;  // the scheduler has not tried it yet
}

}  // namespace edl::controller
