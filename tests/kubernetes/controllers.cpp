// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/controllers.hpp"

#include <algorithm>

#include "kubernetes/admission.hpp"
#include "kubernetes/api.hpp"
#include "kubernetes/events.hpp"
#include "kubernetes/quantity.hpp"

namespace edl::testing::kubernetes {
namespace {

bool is_ready(json const& pod) {
  for (json const& c : pod["status"].value("conditions", json::array()))
    if (c["type"] == "Ready") return c["status"] == "True";
  return false;
}

void delete_pod(store& in, json const& pod) {
  bool const at_once = !pod["spec"].contains("nodeName") || is_over(pod);
  api::remove_pod(in, pod, at_once ? 0 : pod["spec"]["terminationGracePeriodSeconds"].get<std::int64_t>());
}

// Ten characters that stand for a template, as in the names of replica sets.
std::string template_hash(json const& pod) {
  static std::string_view const letters = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (std::size_t h = std::hash<std::string>{}(pod.dump()); out.size() < 10; h /= letters.size())
    out += letters[h % letters.size()];
  return out;
}

void keep(store& in, json const& d) {
  type const& pods = in.kind("pods");
  json const& meta = d["metadata"];
  std::string const space = meta["namespace"], name = meta["name"];
  json pod = d["spec"]["template"];
  std::string const hash = template_hash(pod);
  std::vector<object> mine = in.list(pods, space, [&](json const& p) {
    json const owners = p["metadata"].value("ownerReferences", json::array());
    return !owners.empty() && owners[0]["uid"] == meta["uid"] && !is_leaving(p) && !is_over(p);
  });
  auto const current = [&](object const& p) {
    return (*p)["metadata"]["labels"].value("pod-template-hash", "") == hash;
  };
  for (object const& p : mine)
    if (!current(p)) delete_pod(in, *p);
  std::erase_if(mine, [&](object const& p) { return !current(p); });
  std::size_t const wanted = d["spec"]["replicas"];
  // The first to go: who has no node, who is not ready, who is young.
  std::ranges::sort(mine, {}, [](object const& p) {
    return std::tuple(!(*p)["spec"].contains("nodeName"), !is_ready(*p),
                      (*p)["metadata"]["creationTimestamp"].get<std::string>());
  });
  for (; mine.size() > wanted; mine.pop_back()) delete_pod(in, *mine.back());
  pod["kind"] = "Pod";
  pod["apiVersion"] = "v1";
  pod["metadata"]["namespace"] = space;
  pod["metadata"]["generation"] = 1;
  pod["metadata"]["labels"]["pod-template-hash"] = hash;
  pod["metadata"]["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                         {"kind", "Deployment"},
                                         {"name", name},
                                         {"uid", meta["uid"]},
                                         {"controller", true}}};
  try {
    while (mine.size() < wanted) {
      json one = pod;
      one["metadata"]["name"] = fmt::format("{}-{}-{}", name, hash, random_suffix(5));
      admit(in, pods, one, nullptr);
      mine.push_back(in.add(pods, one));
    }
  } catch (refusal const& no) {
    tell_event(in, d, "deployment-controller", "Warning", "FailedCreate",
               "Error creating: " + no.body["message"].get<std::string>());
  }
  auto const ready = std::ranges::count_if(mine, [](object const& p) { return is_ready(*p); });
  in.change_by(in.kind("deployments"), space, name, [&](json& now) {
    now["status"] = {
        {"observedGeneration", now["metadata"]["generation"]},
        {"replicas", mine.size()},
        {"updatedReplicas", mine.size()},
        {"readyReplicas", ready},
        {"availableReplicas", ready},
        {"unavailableReplicas", std::int64_t(mine.size()) - ready},
        {"conditions",
         {{{"type", "Available"}, {"status", ready >= std::int64_t(wanted) ? "True" : "False"}}}}};
  });
}

}  // namespace

void keep_deployments(store& in) {
  auto const held = in.lock();
  for (object const& d : in.list(in.kind("deployments"))) keep(in, *d);
}

}  // namespace edl::testing::kubernetes
