// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/types.hpp"

#include <map>
#include <set>

namespace edl::testing::kubernetes {

void define_types(store& into) {
  std::string const apps = "apps", rbac = "rbac.authorization.k8s.io", v1 = "v1", core;
  for (type& t : std::vector<type>{
           {core, v1, "pods", "Pod", true, true, true, {"status", "log", "eviction", "resize"}, {"po"}},
           {core, v1, "services", "Service", true, true, true, {"status"}, {"svc"}},
           {core, v1, "secrets", "Secret"},
           {core, v1, "configmaps", "ConfigMap", true, false, false, {}, {"cm"}},
           {core, v1, "events", "Event", true, false, false, {}, {"ev"}},
           {core, v1, "namespaces", "Namespace", false, true, true, {"status"}, {"ns"}},
           {core, v1, "nodes", "Node", false, false, true, {"status"}, {"no"}},
           {core,
            v1,
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            true,
            true,
            true,
            {"status"},
            {"pvc"}},
           {core, v1, "serviceaccounts", "ServiceAccount", true, true, false, {}, {"sa"}},
           {core, v1, "resourcequotas", "ResourceQuota", true, true, true, {"status"}, {"quota"}},
           {"scheduling.k8s.io", v1, "priorityclasses", "PriorityClass", false, false, false, {}, {"pc"}},
           {apps, v1, "deployments", "Deployment", true, false, true, {"status", "scale"}, {"deploy"}},
           {"networking.k8s.io", v1, "networkpolicies", "NetworkPolicy", true, false, false, {}, {"netpol"}},
           {"policy",
            v1,
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            true,
            true,
            false,
            {"status"},
            {"pdb"}},
           {"coordination.k8s.io", v1, "leases", "Lease", true, false, false, {}, {}, {}, true},
           {rbac, v1, "roles", "Role"},
           {rbac, v1, "rolebindings", "RoleBinding"},
           {rbac, v1, "clusterroles", "ClusterRole", false},
           {rbac, v1, "clusterrolebindings", "ClusterRoleBinding", false},
           {"authorization.k8s.io", v1, "selfsubjectaccessreviews", "SelfSubjectAccessReview", false},
           {"authorization.k8s.io", v1, "localsubjectaccessreviews", "LocalSubjectAccessReview", true},
           {"apiextensions.k8s.io",
            v1,
            "customresourcedefinitions",
            "CustomResourceDefinition",
            false,
            true,
            true,
            {"status"},
            {"crd", "crds"}}})
    into.define(t);
}

namespace {

json resources(store const& of, std::string const& api_version) {
  json list = json::array();
  for (type const* t : of.types()) {
    if (t->api_version() != api_version) continue;
    json one{{"name", t->plural},
             {"singularName", t->singular.empty() ? t->kind : t->singular},
             {"namespaced", t->namespaced},
             {"kind", t->kind},
             {"verbs", {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}}};
    for (auto& c : one["singularName"].get_ref<std::string&>()) c = char(std::tolower(c));
    if (!t->short_names.empty()) one["shortNames"] = t->short_names;
    if (!t->categories.empty()) one["categories"] = t->categories;
    if (t->group.empty() && (t->plural == "pods" || t->plural == "services")) one["categories"] = {"all"};
    if (t->group == "apps") one["categories"] = {"all"};
    if (t->plural.ends_with("subjectaccessreviews")) one["verbs"] = {"create"};
    list.push_back(one);
    for (std::string const& sub : t->subresources) {
      json s{{"name", t->plural + "/" + sub},
             {"singularName", ""},
             {"namespaced", t->namespaced},
             {"kind", t->kind},
             {"verbs", {"get", "patch", "update"}}};
      if (sub == "scale") s.update({{"group", "autoscaling"}, {"version", "v1"}, {"kind", "Scale"}});
      if (sub == "eviction")
        s.update({{"group", "policy"}, {"version", "v1"}, {"kind", "Eviction"}, {"verbs", {"create"}}});
      list.push_back(s);
    }
  }
  if (list.empty()) return nullptr;
  return {
      {"kind", "APIResourceList"}, {"apiVersion", "v1"}, {"groupVersion", api_version}, {"resources", list}};
}

// Of the schemas no more than kubectl reads before it sends an object: that the server checks fields itself.
json openapi(store const& of, std::string const& path) {
  json paths = json::object();
  for (type const* t : of.types()) {
    std::string const at = (t->group.empty() ? "api/" : "apis/") + t->api_version();
    if (path == "/openapi/v3") paths[at] = {{"serverRelativeURL", "/openapi/v3/" + at}};
    if (path != "/openapi/v3/" + at) continue;
    json const patch{{"x-kubernetes-group-version-kind",
                      {{"group", t->group}, {"version", t->version}, {"kind", t->kind}}},
                     {"parameters", {{{"name", "fieldValidation"}, {"in", "query"}}}},
                     {"responses", json::object()}};
    paths[fmt::format("/{}/{}/{{name}}", at, t->plural)] = {{"patch", patch}};
  }
  if (paths.empty()) return nullptr;
  return {
      {"openapi", "3.0.0"}, {"info", {{"title", "Kubernetes"}, {"version", "v1.36.0"}}}, {"paths", paths}};
}

}  // namespace

json discovery(store const& of, std::string const& path, int minor) {
  if (path == "/version")
    return {{"major", "1"},
            {"minor", std::to_string(minor)},
            {"gitVersion", fmt::format("v1.{}.0", minor)},
            {"platform", "linux/amd64"}};
  if (path.starts_with("/openapi/v3")) return openapi(of, path);
  if (path == "/api") return {{"kind", "APIVersions"}, {"versions", {"v1"}}};
  if (path == "/api/v1") return resources(of, "v1");
  if (path == "/apis") {
    std::map<std::string, std::string> groups;
    for (type const* t : of.types())
      if (!t->group.empty()) groups[t->group] = t->version;
    json list = json::array();
    for (auto const& [group, version] : groups) {
      json const v{{"groupVersion", group + "/" + version}, {"version", version}};
      list.push_back({{"name", group}, {"versions", {v}}, {"preferredVersion", v}});
    }
    return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", list}};
  }
  if (path.starts_with("/apis/")) return resources(of, path.substr(6));
  return nullptr;
}

}  // namespace edl::testing::kubernetes
