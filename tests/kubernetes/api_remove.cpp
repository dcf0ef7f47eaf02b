// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kubernetes/api.hpp"
#include "kubernetes/custom.hpp"
#include "kubernetes/quantity.hpp"

namespace edl::testing::kubernetes {
namespace {

json success(int code, json const& details = {}) {
  json s{{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", json::object()}, {"status", "Success"}};
  if (code) s["code"] = code;
  if (!details.is_null()) s["details"] = details;
  return s;
}

}  // namespace

void api::remove_pod(store& in, json const& pod, std::int64_t grace) {
  type const& pods = in.kind("pods");
  std::string const space = pod["metadata"]["namespace"], name = pod["metadata"]["name"];
  in.change_by(pods, space, name, [&](json& p) {
    json& meta = p["metadata"];
    bool const again = meta.contains("deletionTimestamp");
    if (again && meta["deletionGracePeriodSeconds"] <= grace) return;
    meta["deletionTimestamp"] = timestamp(std::chrono::system_clock::now() + std::chrono::seconds(grace));
    meta["deletionGracePeriodSeconds"] = grace;
    if (!again) meta["generation"] = meta["generation"].get<int>() + 1;
  });
  if (grace == 0) in.remove(pods, space, name);
}

// Marks an object that has finalizers, or gets one because it is to go after its dependents; null: it may go
// at once.
object api::begin_deletion(target const& t, json const& how) {
  std::string const policy = how.value("propagationPolicy", "");
  bool const orphan = policy == "Orphan" || how.value("orphanDependents", false);
  if (!policy.empty() && policy != "Orphan" && policy != "Foreground" && policy != "Background")
    throw refusal{422,
                  failure(422, "Invalid",
                          fmt::format("DeleteOptions \"\" is invalid: propagationPolicy: Unsupported value: "
                                      "\"{}\": supported values: \"Background\", \"Foreground\", "
                                      "\"Orphan\"",
                                      policy))};
  object const is = find(t);
  json finalizers = is->at("metadata").value("finalizers", json::array());
  for (auto const& [wanted, finalizer] :
       {std::pair{policy == "Foreground", "foregroundDeletion"}, {orphan, "orphan"}}) {
    auto const at = std::ranges::find(finalizers, finalizer);
    if (wanted && at == finalizers.end()) finalizers.push_back(finalizer);
    if (!wanted && !policy.empty() && at != finalizers.end()) finalizers.erase(at);
  }
  if (finalizers.empty() || t.resource->plural == "pods") return nullptr;
  return store_.change_by(*t.resource, t.space, t.name, [&](json& o) {
    json& meta = o["metadata"];
    meta["finalizers"] = finalizers;
    if (meta.contains("deletionTimestamp")) return;
    meta["deletionTimestamp"] = timestamp();
    meta["deletionGracePeriodSeconds"] = 0;
    if (meta.contains("generation")) meta["generation"] = meta["generation"].get<int>() + 1;
  });
}

json api::remove_one(target const& t, json const& how, bool dry) {
  object const o = find(t);
  json const meta = (*o)["metadata"], want = how.value("preconditions", json::object());
  for (auto const& [field, of_name] : {std::pair{"uid", "UID"}, {"resourceVersion", "ResourceVersion"}})
    if (std::string const w = want.value(field, ""); !w.empty() && meta[field] != w)
      throw conflict(
          *t.resource, t.name,
          fmt::format("the {0} in the precondition ({1}) does not match the {0} in record ({2}). The object "
                      "might have been deleted and then recreated",
                      of_name, w, meta[field].get<std::string>()));
  json details = t.resource->details(t.name);
  details["uid"] = meta["uid"];
  if (dry) return t.resource->answers_deleted ? *o : success(0, details);
  std::string const crd = t.resource->plural == "customresourcedefinitions" ? t.name : "";
  if (object const waits = begin_deletion(t, how)) return *waits;
  if (t.resource->plural == "pods") {
    json const& spec = (*o)["spec"];
    std::string const phase = (*o)["status"].value("phase", "");
    std::int64_t grace = spec["terminationGracePeriodSeconds"];
    if (how.contains("gracePeriodSeconds") && how["gracePeriodSeconds"].is_number())
      grace = how["gracePeriodSeconds"];
    if (!spec.contains("nodeName") || phase == "Succeeded" || phase == "Failed") grace = 0;
    remove_pod(store_, *o, std::max<std::int64_t>(grace, 0));
    object const left = store_.find(*t.resource, t.space, t.name);
    return left ? *left : *o;
  }
  if (t.resource->plural == "namespaces")
    for (type const* each : store_.types())
      for (object const& inside : store_.list(*each, t.name))
        remove_one({each, t.name, (*inside)["metadata"]["name"], ""}, json::object(), false);
  store_.remove(*t.resource, t.space, t.name);
  if (!crd.empty() && is_established(*o)) {
    type const gone = defined_by(*o);
    store_.undefine(gone.group, gone.plural);
  }
  return t.resource->answers_deleted ? *o : success(0, details);
}

answer api::remove(request const& r, target const& t) {
  json const how = r.body.empty() ? json::object() : r.object();
  return {200, remove_one(t, how, r.is_dry() || how.contains("dryRun")).dump()};
}

answer api::remove_all(request const& r, target const& t) {
  json const how = r.body.empty() ? json::object() : r.object();
  answer const before = list(r, t);
  for (object const& o : store_.list(*t.resource, t.space, r.selector()))
    remove_one({t.resource, (*o)["metadata"].value("namespace", ""), (*o)["metadata"]["name"], ""}, how,
               r.is_dry());
  return before;
}

namespace {

/// Refuses what leaves less of a budget's pods ready than it wants.
void check_budgets(store const& all, json const& pod) {
  std::string const space = pod["metadata"]["namespace"];
  for (object const& budget : all.list(all.kind("poddisruptionbudgets"), space)) {
    json const wanted = (*budget)["spec"]["selector"].value("matchLabels", json::object());
    json const labels = pod["metadata"].value("labels", json::object());
    if (!has_labels(labels, wanted)) continue;
    int there = 0, healthy = 0;
    for (object const& other : all.list(all.kind("pods"), space)) {
      if (!has_labels((*other)["metadata"].value("labels", json::object()), wanted) || is_over(*other))
        continue;
      ++there;
      if ((*other)["metadata"].contains("deletionTimestamp")) continue;
      for (json const& c : (*other)["status"].value("conditions", json::array()))
        healthy += c["type"] == "Ready" && c["status"] == "True";
    }
    int const least = there - (*budget)["spec"].value("maxUnavailable", 1);
    if (healthy - 1 >= least) continue;
    std::string const name = (*budget)["metadata"]["name"];
    throw refusal{
        429,
        failure(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
                {{"causes",
                  {{{"reason", "DisruptionBudget"},
                    {"message", fmt::format("The disruption budget {} needs {} healthy pods and has {} "
                                            "currently",
                                            name, least, healthy)}}}}})};
  }
}

}  // namespace

answer api::post_to(request const& r, target const& t) {
  if (t.subresource != "eviction") throw no_such_path();
  object const o = find(t);
  if (!is_over(*o) && !(*o)["metadata"].contains("deletionTimestamp")) check_budgets(store_, *o);
  json const how = r.object().value("deleteOptions", json::object());
  if (!r.is_dry() && !is_over(*o) && !(*o)["metadata"].contains("deletionTimestamp"))
    store_.change_by(*t.resource, t.space, t.name, [](json& p) {
      p["status"]["conditions"].push_back({{"type", "DisruptionTarget"},
                                           {"status", "True"},
                                           {"lastProbeTime", nullptr},
                                           {"lastTransitionTime", timestamp()},
                                           {"reason", "EvictionByEvictionAPI"},
                                           {"message", "Eviction API: evicting"}});
    });
  remove_one(t, how, r.is_dry());
  return {201, success(201).dump()};
}

}  // namespace edl::testing::kubernetes
