// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/double.hpp"

namespace edl::testing::kubernetes {

using json = nlohmann::json;

inline std::string const pods = "/api/v1/namespaces/default/pods";

/// A pod that runs a shell's command; `fields`: variables and the fields of the pod that they show.
inline json pod(std::string const& name, std::string const& script,
                std::vector<std::pair<std::string, std::string>> const& fields = {}) {
  json env = json::array();
  for (auto const& [variable, path] : fields)
    env.push_back({{"name", variable}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}});
  json const main{
      {"name", "main"}, {"image", "debian:bookworm"}, {"command", {"sh", "-c", script}}, {"env", env}};
  return {
      {"kind", "Pod"},
      {"apiVersion", "v1"},
      {"metadata", {{"name", name}}},
      {"spec", {{"restartPolicy", "Never"}, {"terminationGracePeriodSeconds", 2}, {"containers", {main}}}}};
}

inline json status(cluster& c, std::string const& name) {
  return c.get(pods + "/" + name).value("status", json::object());
}

inline std::string phase(cluster& c, std::string const& name) {
  json const is = status(c, name);
  return is.is_object() ? is.value("phase", "") : "";
}

inline json container(cluster& c, std::string const& name) {
  json const all = status(c, name).value("containerStatuses", json::array());
  return all.empty() ? json::object() : all[0];
}

}  // namespace edl::testing::kubernetes
