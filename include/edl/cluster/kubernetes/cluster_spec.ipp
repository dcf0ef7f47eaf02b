// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "edl/cluster/kubernetes/cluster_spec.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"

namespace edl::kubernetes {
namespace detail::customs {

using nlohmann::json;
using kind = json::value_t;

inline constexpr std::size_t longest_text = std::size_t{64} << 10;  // bytes

enum class how { labelled, appended, in_containers, merged, replaced };

struct field {
  how done;
  kind type;
};

inline std::map<std::string, field, std::less<>> const& fields() {
  static std::map<std::string, field, std::less<>> const table{
      {"labels", {how::labelled, kind::object}},
      {"annotations", {how::labelled, kind::object}},
      {"tolerations", {how::appended, kind::array}},
      {"volumes", {how::appended, kind::array}},
      {"initContainers", {how::appended, kind::array}},
      {"imagePullSecrets", {how::appended, kind::array}},
      {"env", {how::in_containers, kind::array}},
      {"volumeMounts", {how::in_containers, kind::array}},
      {"container", {how::merged, kind::object}},
      {"securityContext", {how::merged, kind::object}},
      {"affinity", {how::replaced, kind::object}},
      {"nodeSelector", {how::replaced, kind::object}},
      {"topologySpreadConstraints", {how::replaced, kind::array}},
      {"runtimeClassName", {how::replaced, kind::string}},
      {"schedulerName", {how::replaced, kind::string}},
      {"serviceAccountName", {how::replaced, kind::string}},
      {"automountServiceAccountToken", {how::replaced, kind::boolean}},
      {"preemptionPolicy", {how::replaced, kind::string}},
      {"activeDeadlineSeconds", {how::replaced, kind::number_unsigned}},
      {"dnsPolicy", {how::replaced, kind::string}},
      {"dnsConfig", {how::replaced, kind::object}},
      {"hostAliases", {how::replaced, kind::array}},
      {"hostNetwork", {how::replaced, kind::boolean}},
      {"hostUsers", {how::replaced, kind::boolean}},
      {"resourceClaims", {how::replaced, kind::array}},
      {"schedulingGates", {how::replaced, kind::array}}};
  return table;
}

[[noreturn]] inline void refuse(std::string const& where, std::string const& what) {
  throw usage_error(fmt::format("--cluster_spec: {}{}{}", where, where.empty() ? "" : ": ", what));
}

inline char const* name_of(kind k) {
  switch (k) {
    case kind::object:
      return "an object";
    case kind::array:
      return "a list";
    case kind::string:
      return "a text";
    case kind::boolean:
      return "true or false";
    default:
      return "a number, 0 or more";
  }
}

/// Labels that identify a job's pods.
inline bool own_label(std::string_view name) {
  return name == "app" || name == "status" || name.starts_with("elasticdl-") ||
         name.starts_with("elasticdl_");
}

/// The key that identifies an item of a list whose items must be unique.
inline char const* id_of(std::string_view key) {
  if (key == "volumeMounts") return "mountPath";
  if (key == "tolerations" || key == "topologySpreadConstraints" || key == "hostAliases") return nullptr;
  return "name";
}

inline void check_value(std::string const& where, std::string const& key, json const& value) {
  std::string const place = where + "." + key;
  bool const texts = key == "labels" || key == "annotations" || key == "nodeSelector";
  if (texts)
    for (auto const& [name, text] : value.items()) {
      if (!text.is_string()) refuse(place, fmt::format("'{}' is not a string: put it into quotes", name));
      if (key == "labels" && own_label(name))
        refuse(place, fmt::format("'{}' is the job's own: leave it out", name));
    }
  if (value.is_string() && value.get_ref<std::string const&>().empty())
    refuse(place, "is empty: leave it out");
  if (!value.is_array()) return;
  char const* const id = id_of(key);
  for (json const& item : value) {
    if (!item.is_object()) refuse(place, "expected a list of objects");
    if (id && (!item.contains(id) || !item[id].is_string()))
      refuse(place, fmt::format("an item has no '{}'", id));
    if (key == "env" && reserved_variable(item[id].get<std::string>()))
      refuse(place, fmt::format("{} is set by the job itself: leave it out", item[id].get<std::string>()));
  }
}

inline void check_pod(std::string const& where, json const& overrides) {
  if (!overrides.is_object()) refuse(where, "expected an object");
  for (auto const& [key, value] : overrides.items()) {
    auto const known = fields().find(key);
    if (known == fields().end()) {
      std::string all;
      for (auto const& [name, f] : fields()) all += (all.empty() ? "" : ", ") + name;
      refuse(where, fmt::format("unknown field '{}': expected one of {}", key, all));
    }
    if (value.type() != known->second.type)
      refuse(where, fmt::format("'{}': expected {}", key, name_of(known->second.type)));
    check_value(where, key, value);
  }
  if (!overrides.contains("container")) return;
  for (char const* key : {"name", "env", "volumeMounts", "command", "args", "image", "ports", "resources"})
    if (overrides["container"].contains(key))
      refuse(where + ".container", fmt::format("'{}' is set elsewhere: leave it out", key));
}

inline json parsed(std::string const& text) {
  if (text.empty()) return json::object();
  if (text.size() > longest_text)
    refuse("", fmt::format("{} bytes are more than {}", text.size(), longest_text));
  json const all = parse_json(text);
  if (all.is_discarded())
    refuse("", fmt::format("is {}; expected {{\"pod_spec\": {{…}}}}", why_no_json(text)));
  if (!all.is_object()) refuse("", "expected an object, as {\"pod_spec\": {…}}");
  return all;
}

/// Appends `items` to `list`, replacing items with the same `id`.
inline void append(json& list, json const& items, char const* id) {
  if (list.is_null()) list = json::array();
  for (json const& item : items) {
    if (id)
      list.erase(std::remove_if(list.begin(), list.end(), [&](json const& o) { return o[id] == item[id]; }),
                 list.end());
    list.push_back(item);
  }
}

inline void apply(json& pod, json const& overrides) {
  json& spec = pod["spec"];
  for (auto const& [key, value] : overrides.items()) {
    if (value.empty() && !value.is_primitive()) continue;
    switch (fields().at(key).done) {
      case how::labelled:
        pod["metadata"][key].update(value);
        break;
      case how::appended:
        append(spec[key], value, id_of(key));
        break;
      case how::in_containers:
        for (json& c : spec["containers"]) append(c[key], value, id_of(key));
        break;
      case how::merged:
        if (key == "container") {
          for (json& c : spec["containers"]) c.merge_patch(value);
        } else {
          spec[key].merge_patch(value);
          if (spec[key].empty()) spec.erase(key);
        }
        break;
      case how::replaced:
        spec[key] = value;
        break;
    }
  }
}

}  // namespace detail::customs

EDL_INLINE void check_cluster_spec(std::string const& text) {
  using namespace detail::customs;
  json const all = parsed(text);
  for (auto const& [key, value] : all.items()) {
    if (key == "service_spec") {
      if (!value.is_object()) refuse(key, "expected an object");
      if (value.contains("selector")) refuse(key, "'selector' is the job's own: leave it out");
    } else if (key == "pod_spec" || key == "master_pod_spec" || key == "ps_pod_spec" ||
               key == "worker_pod_spec") {
      check_pod(key, value);
    } else {
      refuse("",
             fmt::format("'{}' is unknown; expected pod_spec, master_pod_spec, ps_pod_spec, worker_pod_spec "
                         "or service_spec",
                         key));
    }
  }
}

EDL_INLINE void customise_pod(nlohmann::json& pod, std::string const& text, role of) {
  using namespace detail::customs;
  json const all = parsed(text);
  char const* const own = of == role::master   ? "master_pod_spec"
                          : of == role::server ? "ps_pod_spec"
                                               : "worker_pod_spec";
  for (char const* key : {"pod_spec", own})
    if (auto const found = all.find(key); found != all.end()) apply(pod, *found);
}

EDL_INLINE void customise_service(nlohmann::json& service, std::string const& text) {
  auto const all = detail::customs::parsed(text);
  if (auto const found = all.find("service_spec"); found != all.end()) service["spec"].merge_patch(*found);
}

}  // namespace edl::kubernetes
