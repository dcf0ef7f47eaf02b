// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "edl/cluster/kubernetes/annotations.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/pod_template.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/quantity.hpp"

namespace edl::kubernetes {
namespace detail::templates {

using nlohmann::json;

/// Whether a value is present; the API server treats the others as absent.
inline bool says(json const& object, std::string const& key) {
  auto const found = object.find(key);
  return found != object.end() && !found->is_null();
}

inline void fill(json& object, json const& from, std::string const& key) {
  if (!says(object, key)) object[key] = from;
}

inline json& list(json& object, char const* key) {
  json& all = object[key];
  if (!all.is_array()) all = json::array();
  return all;
}

inline bool any(json const& all, char const* key, json const& value) {
  return std::any_of(all.begin(), all.end(),
                     [&](json const& one) { return one.is_object() && one.value(key, json()) == value; });
}

/// The job defines reserved variables; the template's other variables take precedence.
inline void add_variables(json& container, json const& plain) {
  json& all = list(container, "env");
  for (json const& one : plain) {
    auto const same =
        std::find_if(all.begin(), all.end(), [&](json const& o) { return o["name"] == one["name"]; });
    if (same == all.end())
      all.push_back(one);
    else if (reserved_variable(one["name"].get<std::string>()))
      *same = one;
  }
}

inline void add_ports(json& container, json const& plain) {
  json& all = list(container, "ports");
  for (json const& one : plain) {
    if (any(all, "containerPort", one["containerPort"])) continue;
    json port = one;
    if (any(all, "name", port["name"])) port.erase("name");  // the name only helps users
    all.push_back(std::move(port));
  }
}

/// Adds mounts of `plain` where the template mounts nothing, and their volumes.
inline void add_mounts(json& spec, json& container, json const& plain) {
  json& mounts = list(container, "volumeMounts");
  json& volumes = list(spec, "volumes");
  json const theirs = volumes;
  for (json const& one : plain["containers"][0]["volumeMounts"]) {
    if (any(mounts, "mountPath", one["mountPath"])) continue;
    std::string const name = one["name"];
    std::string free = name;
    for (int n = 2; any(theirs, "name", free); ++n) free = fmt::format("{}-{}", name, n);
    json mount = one;
    mount["name"] = free;
    mounts.push_back(std::move(mount));
    if (any(volumes, "name", free)) continue;
    for (json volume : plain["volumes"])
      if (volume["name"] == name) {
        volume["name"] = free;
        volumes.push_back(std::move(volume));
      }
  }
}

/// A quantity, which JSON may give as a number.
inline std::string quantity(json const& amount) {
  return amount.is_string() ? amount.get<std::string>() : amount.dump();
}

inline resources amounts(json const& of) {
  resources all;
  if (of.is_object())
    for (auto const& [name, amount] : of.items())
      if (amount.is_string() || amount.is_number()) all[name] = quantity(amount);
  return all;
}

inline void check_amounts(std::string const& field, resources const& all) {
  for (auto const& [name, amount] : all) try {
      check_amount(name, amount);
    } catch (error const& e) {
      throw usage_error(fmt::format("{}: resources: {}={}: {}", field, name, amount, e.what()));
    }
}

}  // namespace detail::templates

EDL_INLINE void check_pod_template(std::string const& field, std::string const& text) {
  using namespace detail::templates;
  if (text.empty()) return;
  auto const refuse = [&](std::string_view why) { throw usage_error(fmt::format("{}: {}", field, why)); };
  json const like = parse_json(text);
  if (like.is_discarded()) refuse("is " + why_no_json(text));
  if (!like.is_object()) refuse("is not a JSON object");
  for (auto const& [object, key] : {std::pair{"metadata", "labels"}, {"metadata", "annotations"}})
    if (json const& of = kubernetes::field(like, {object, key}); !of.is_null() && !of.is_object())
      refuse("its labels and annotations are not objects");
  json const& all = kubernetes::field(like, {"spec", "containers"});
  if (!all.is_array() || all.empty() || !all[0].is_object())
    refuse("spec.containers is empty: its first must run the model's program");
  if (kubernetes::text(kubernetes::field(all[0], {"image"})).empty())
    refuse("spec.containers[0].image is missing: name the image that holds the model");
  for (char const* key : {"env", "ports", "volumeMounts"})
    if (says(all[0], key)) {
      if (!all[0][key].is_array()) refuse(fmt::format("spec.containers[0].{} is not a list", key).c_str());
      for (json const& one : all[0][key])
        if (!one.is_object() || (std::string_view(key) == "env" && !one.value("name", json()).is_string()))
          refuse(fmt::format("spec.containers[0].{} has an item without a name", key).c_str());
    }
  if (json const& volumes = kubernetes::field(like, {"spec", "volumes"}); !volumes.is_null()) {
    if (!volumes.is_array()) refuse("spec.volumes is not a list");
  }
  // This would end a pod in the middle of the job; the job has its own field for it.
  if (!kubernetes::field(like, {"spec", "activeDeadlineSeconds"}).is_null())
    refuse("spec.activeDeadlineSeconds ends single pods: use spec.activeDeadlineSeconds of the TrainingJob");
  role_spec const requested = role_of_template(text);
  check_amounts(field, requested.request);
  check_amounts(field, requested.limit);
}

EDL_INLINE role_spec role_of_template(std::string const& text) {
  using namespace detail::templates;
  json const like = json::parse(text);
  json const& spec = kubernetes::field(like, {"spec"});
  json const& of = kubernetes::field(first(kubernetes::field(spec, {"containers"})), {"resources"});
  return {amounts(kubernetes::field(of, {"requests"})), amounts(kubernetes::field(of, {"limits"})),
          kubernetes::text(kubernetes::field(spec, {"priorityClassName"}))};
}

EDL_INLINE nlohmann::json by_template(nlohmann::json plain, nlohmann::json const& like,
                                      resources const& request, resources const& limit) {
  using namespace detail::templates;
  json out = plain;
  json& metadata = out["metadata"];
  for (char const* key : {"labels", "annotations"})
    if (json const& theirs = kubernetes::field(like, {"metadata", key}); theirs.is_object())
      for (auto const& [name, value] : theirs.items())
        if (!metadata[key].contains(name) && !name.starts_with(annotation::prefix))
          metadata[key][name] = value;
  if (metadata.contains("annotations") && metadata["annotations"].empty()) metadata.erase("annotations");

  json spec = like.at("spec");
  for (auto const& [key, value] : plain["spec"].items())
    if (key != "containers" && key != "volumes") fill(spec, value, key);
  // The job decides which containers are restarted, and when.
  spec["restartPolicy"] = plain["spec"]["restartPolicy"];

  json& container = spec["containers"][0];
  json const& usual = plain["spec"]["containers"][0];
  for (char const* key : {"restartPolicy", "restartPolicyRules"}) {
    container.erase(key);
    if (usual.contains(key)) container[key] = usual[key];
  }
  for (auto const& [key, value] : usual.items())
    if (key != "imagePullPolicy" && key != "env" && key != "ports" && key != "volumeMounts" &&
        key != "resources" && key != "image")
      fill(container, value, key);
  add_variables(container, usual["env"]);
  add_ports(container, usual["ports"]);
  add_mounts(spec, container, plain["spec"]);
  for (auto const& [key, all] : {std::pair{"requests", &request}, {"limits", &limit}})
    for (auto const& [name, amount] : *all) container["resources"][key][name] = amount;
  out["spec"] = std::move(spec);
  return out;
}

}  // namespace edl::kubernetes
