// SPDX-License-Identifier: Apache-2.0
#include "cluster/rbac.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cluster/cluster.hpp"
#include "common/yaml.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

constexpr char const* group = "rbac.authorization.k8s.io";

/// `space` empty: that of whoever applies it.
json object(std::string const& version, std::string const& kind, std::string const& name,
            std::string const& space) {
  json o{{"apiVersion", version},
         {"kind", kind},
         {"metadata", {{"name", name}, {"labels", {{"app", "elasticdl"}}}}}};
  if (!space.empty()) o["metadata"]["namespace"] = space;
  return o;
}

json role_object(std::string const& space, std::string const& name, std::vector<permission> const& rules) {
  json o = object(std::string(group) + "/v1", "Role", name, space);
  for (permission const& p : rules)
    o["rules"].push_back(
        {{"apiGroups", words{p.group}}, {"resources", words{p.resource}}, {"verbs", p.verbs}});
  return o;
}

std::string path_of(json const& o, std::string const& space) {
  std::string const kind = o.at("kind"), name = o.at("metadata").at("name");
  if (kind == "ServiceAccount") return fmt::format("/api/v1/namespaces/{}/serviceaccounts/{}", space, name);
  return fmt::format("/apis/{}/v1/namespaces/{}/{}/{}", group, space,
                     kind == "Role" ? "roles" : "rolebindings", name);
}

}  // namespace

std::vector<permission> const& master_permissions() {
  static std::vector<permission> const all{
      {"", "pods", {"create", "get", "list", "watch", "patch", "delete"}},
      {"", "pods/resize", {"patch"}},
      {"", "pods/finalizers", {"update"}},
      {"", "events", {"create", "patch"}},
  };
  return all;
}

std::vector<permission> const& user_permissions() {
  static std::vector<permission> const all{
      {"", "pods", {"create", "get", "list", "watch", "patch", "delete"}},
      {"", "pods/log", {"get"}},
      {"", "services", {"create", "patch", "delete"}},
      {"", "secrets", {"create", "patch", "delete"}},
      {"", "events", {"list"}},
      {"", "serviceaccounts", {"get"}},
  };
  return all;
}

std::vector<permission> const& training_job_permissions() {
  static std::vector<permission> const all{
      {"elasticdl.org", "trainingjobs", {"create", "get", "list", "watch", "patch", "delete"}},
      {"elasticdl.org", "trainingjobs/scale", {"get", "patch"}},
  };
  return all;
}

std::vector<permission> const& examiner_permissions() {
  static std::vector<permission> const all{{"authorization.k8s.io", "localsubjectaccessreviews", {"create"}}};
  return all;
}

json rbac_objects(std::string const& space, std::string const& account, bool users) {
  json all = json::array();
  if (account != "default") {  // which every namespace has
    all.push_back(object("v1", "ServiceAccount", account, space));
    all.back()["automountServiceAccountToken"] = false;
  }
  all.push_back(role_object(space, "edl", master_permissions()));
  json binding = object(std::string(group) + "/v1", "RoleBinding", "edl", space);
  binding["subjects"] = json::array({json{{"kind", "ServiceAccount"}, {"name", account}}});
  if (!space.empty()) binding["subjects"][0]["namespace"] = space;
  binding["roleRef"] = {{"apiGroup", group}, {"kind", "Role"}, {"name", "edl"}};
  all.push_back(binding);
  if (users) {
    auto rules = user_permissions();
    for (auto const* more : {&training_job_permissions(), &examiner_permissions()})
      rules.insert(rules.end(), more->begin(), more->end());
    all.push_back(role_object(space, "edl-user", rules));
  }
  return all;
}

std::vector<flag> rbac_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "apply",
                 .fallback = "false",
                 .help = "make or change the objects in the cluster instead of printing them",
                 .type = flag::value_type::truth});
  all.push_back({.name = "service_account", .fallback = "edl", .help = "account of the masters' pods"});
  all.push_back({.name = "users",
                 .fallback = "false",
                 .help = "also the role edl-user, for users without administrator rights to submit jobs",
                 .type = flag::value_type::truth});
  return all;
}

int rbac(words const& line) {
  command_line const l("rbac", rbac_flags(), line);
  std::string const& account = l.text("service_account");
  if (!l.truth("apply")) {
    std::string text = fmt::format(
        "# Jobs need the service account of their masters (`edl train --service_account={}`), with its "
        "permissions.\n",
        account);
    for (json const& o : rbac_objects(l.text("namespace"), account, l.truth("users")))
      text += "---\n" + to_yaml(o);
    fmt::print("{}", text);
    return done;
  }
  cluster c = connect(l);
  for (json const& o : rbac_objects(c.space, account, l.truth("users"))) {
    c.api.patch(path_of(o, c.space), o, "apply", {{"fieldManager", "edl"}, {"force", "true"}});
    fmt::print("{} {} is in namespace {}\n", text_at(o, "/kind"), text_at(o, "/metadata/name"), c.space);
  }
  return done;
}

}  // namespace edl::tool
