// SPDX-License-Identifier: Apache-2.0
#include "rbac.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cluster.hpp"
#include "submission_flags.hpp"
#include "yaml.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

constexpr char const* group = "rbac.authorization.k8s.io";

json role(std::string const& space, std::string const& name, std::vector<permission> const& rules) {
  json list = json::array();
  for (permission const& p : rules)
    list.push_back({{"apiGroups", {p.group}}, {"resources", {p.resource}}, {"verbs", p.verbs}});
  return {{"apiVersion", std::string(group) + "/v1"},
          {"kind", "Role"},
          {"metadata", {{"name", name}, {"namespace", space}}},
          {"rules", list}};
}

std::string plural(std::string const& kind) { return kind == "Role" ? "roles" : "rolebindings"; }

}  // namespace

std::vector<permission> const& master_permissions() {
  static std::vector<permission> const all{
      {"", "pods", {"get", "list", "watch", "create", "patch", "delete"}},
      {"", "services", {"get", "create", "patch", "delete"}},
      {"", "events", {"create", "patch"}},
  };
  return all;
}

std::vector<permission> const& user_permissions() {
  static std::vector<permission> const all{
      {"", "pods", {"get", "list", "watch", "create", "patch", "delete"}},
      {"", "pods/log", {"get"}},
      {"", "services", {"create", "patch", "delete"}},
      {"", "secrets", {"create", "patch", "delete"}},
      {"", "events", {"list"}},
  };
  return all;
}

json rbac_objects(std::string const& space, std::string const& service_account) {
  json const master = role(space, "edl-master", master_permissions());
  json const binding{
      {"apiVersion", std::string(group) + "/v1"},
      {"kind", "RoleBinding"},
      {"metadata", {{"name", "edl-master"}, {"namespace", space}}},
      {"subjects", {{{"kind", "ServiceAccount"}, {"name", service_account}, {"namespace", space}}}},
      {"roleRef", {{"apiGroup", group}, {"kind", "Role"}, {"name", "edl-master"}}}};
  return json::array({master, binding, role(space, "edl-user", user_permissions())});
}

std::vector<flag> rbac_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "apply",
                 .fallback = "false",
                 .help = "make or change the objects in the cluster instead of printing them",
                 .what = flag::kind::truth});
  all.push_back({.name = "service_account", .fallback = "default", .help = "of the masters' pods"});
  return all;
}

int rbac(words const& line) {
  command_line const l("rbac", rbac_flags(), line);
  std::string const& account = l.text("service_account");
  if (!l.truth("apply")) {
    std::string text =
        "# What jobs need in a namespace: edl-master for the pods of masters, bound to their service "
        "account;\n"
        "# edl-user for who submits jobs: bind it to people who are no administrators.\n";
    for (json const& object : rbac_objects(namespace_of(l), account)) text += "---\n" + to_yaml(object);
    fmt::print("{}", text);
    return done;
  }
  cluster c = connect(l);
  for (json const& object : rbac_objects(c.space, account)) {
    std::string const kind = object.at("kind"), name = object.at("metadata").at("name");
    c.api.patch(fmt::format("/apis/{}/v1/namespaces/{}/{}/{}", group, c.space, plural(kind), name), object,
                "apply", {{"fieldManager", "edl"}, {"force", "true"}});
    fmt::print("{} {} is in namespace {}\n", kind, name, c.space);
  }
  return done;
}

}  // namespace edl::tool
