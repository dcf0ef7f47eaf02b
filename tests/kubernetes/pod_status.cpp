// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/pod_status.hpp"

#include <algorithm>

namespace edl::testing::kubernetes {
namespace {

json condition(json const& before, std::string const& name, bool holds, json const& generation,
               std::string const& reason = "", std::string const& message = "") {
  json c{{"type", name},
         {"status", holds ? "True" : "False"},
         {"observedGeneration", generation},
         {"lastProbeTime", nullptr},
         {"lastTransitionTime", timestamp()}};
  if (!reason.empty()) c["reason"] = reason;
  if (!message.empty()) c["message"] = message;
  for (json const& was : before)
    if (was["type"] == name && was["status"] == c["status"])
      c["lastTransitionTime"] = was["lastTransitionTime"];
  return c;
}

json container_status(container_facts const& c) {
  std::string const image = c.spec["image"];
  json const resources = c.spec.value("resources", json::object());
  json out{{"name", c.spec["name"]},
           {"state", c.state},
           {"lastState", c.last},
           {"ready", c.ready},
           {"restartCount", c.restarts},
           {"image", image},
           {"imageID", ""},
           {"started", c.runs()},
           {"volumeMounts", c.spec.value("volumeMounts", json::array())}};
  for (json& m : out["volumeMounts"])
    if (m.value("readOnly", false)) m["recursiveReadOnly"] = "Disabled";
  if (c.id.empty()) return out;
  if (image.find('/') == image.npos) out["image"] = "docker.io/library/" + image;
  out["imageID"] = fmt::format("sha256:{:064x}", std::hash<std::string>{}(image));
  out["containerID"] = c.id;
  out["allocatedResources"] = resources.value("requests", json::object());
  out["resources"] = resources;
  return out;
}

}  // namespace

json pod_status(json const& pod, std::vector<container_facts const*> const& containers, bool sandbox,
                std::string const& ip, std::string const& phase) {
  json out = pod["status"];
  json const generation = pod["metadata"]["generation"];
  json const before = out.value("conditions", json::array());
  bool const ever_ran = std::ranges::any_of(containers, [](auto c) { return !c->id.empty(); });
  bool const all_done = std::ranges::all_of(containers, [](auto c) { return c->done; });
  bool const failed = std::ranges::any_of(
      containers, [](auto c) { return c->done && c->state["terminated"].value("exitCode", 0) != 0; });
  std::string unready;
  for (auto c : containers)
    if (!c->ready) unready += (unready.empty() ? "" : " ") + c->spec["name"].get<std::string>();

  json mine = json::array();
  for (json const& c : before) {
    static std::vector<std::string> const own{"PodReadyToStartContainers", "Initialized", "Ready",
                                              "ContainersReady", "PodScheduled"};
    if (std::ranges::find(own, c["type"].get<std::string>()) == own.end()) mine.push_back(c);
  }
  bool const ended = all_done && ever_ran;
  std::string const reason = unready.empty() ? ""
                             : !ended        ? "ContainersNotReady"
                             : failed        ? "PodFailed"
                                             : "PodCompleted";
  std::string const message =
      unready.empty() || ended ? "" : fmt::format("containers with unready status: [{}]", unready);
  mine.push_back(condition(before, "PodReadyToStartContainers", sandbox, generation));
  mine.push_back(condition(before, "Initialized", true, generation, ended && !failed ? "PodCompleted" : ""));
  mine.push_back(condition(before, "Ready", unready.empty(), generation, reason, message));
  mine.push_back(condition(before, "ContainersReady", unready.empty(), generation, reason, message));
  mine.push_back(condition(before, "PodScheduled", true, generation));

  out["conditions"] = mine;
  out["observedGeneration"] = generation;
  out["phase"] = !phase.empty() ? phase : ever_ran ? "Running" : "Pending";
  out["hostIP"] = "127.0.0.1";
  out["hostIPs"] = json::array({{{"ip", "127.0.0.1"}}});
  if (!out.contains("startTime")) out["startTime"] = timestamp();
  if (!ip.empty()) out["podIP"] = ip, out["podIPs"] = json::array({{{"ip", ip}}});
  out["containerStatuses"] = json::array();
  for (auto c : containers) out["containerStatuses"].push_back(container_status(*c));
  return out;
}

}  // namespace edl::testing::kubernetes
