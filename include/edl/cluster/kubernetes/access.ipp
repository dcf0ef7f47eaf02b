// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "edl/cluster/kubernetes/access.hpp"
#include "edl/cluster/kubernetes/errors.hpp"
#include "edl/cluster/kubernetes/exec_plugin.hpp"
#include "edl/cluster/kubernetes/files.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"

namespace edl::kubernetes {
namespace detail {

inline std::string variable(char const* name) {
  char const* const value = std::getenv(name);
  return value ? value : "";
}

// A token becomes part of a header field, where a line break would start another field.
inline std::string checked_token(std::string const& text, std::string const& what) {
  std::string token(trimmed(text));
  if (token.empty()) throw error(what + " is empty");
  for (char c : token)
    if (c <= ' ' || c == 0x7f) throw error(what + " has a blank, a line break or a control character in it");
  return token;
}

// A kubeconfig file, and the directory to which its relative paths refer.
struct kubeconfig_file {
  std::string path;
  YAML::Node root;
};

// An entry of clusters, users or contexts.
struct entry {
  YAML::Node value;
  std::string file, description;  // what: "user 'x' of FILE"
};

inline std::vector<kubeconfig_file> load_kubeconfig(std::string const& paths) {
  std::vector<kubeconfig_file> files;
  bool const list = paths.find(':') != paths.npos;
  for (std::size_t at = 0; at <= paths.size();) {
    auto const end = std::min(paths.find(':', at), paths.size());
    auto const path = paths.substr(at, end - at);
    at = end + 1;
    if (path.empty()) continue;
    // Of several files, missing ones are ignored, as in kubectl.
    if (list && ::access(path.c_str(), F_OK) != 0) continue;
    auto const text = read_text(path, "kubeconfig");
    YAML::Node root;
    try {
      root = YAML::Load(text);
    } catch (YAML::Exception const& e) {
      throw error(fmt::format("kubeconfig {}:{}:{}: it is not YAML: {}", path, e.mark.line + 1,
                              e.mark.column + 1, one_line(e.msg, 200)));
    }
    if (root.IsNull()) continue;
    if (!root.IsMap())
      throw error(fmt::format(
          "kubeconfig {}: it is not a kubeconfig: it has no map of clusters, users and contexts", path));
    files.push_back({path, root});
  }
  if (files.empty())
    throw error(
        fmt::format("kubeconfig {}: it is empty; 'kubectl config view' shows the expected content", paths));
  return files;
}

// node[key] as text; empty if it is absent. Throws if it is not a text.
inline std::string text_of(entry const& e, YAML::Node const& node, char const* key) {
  auto const value = node[key];
  if (!value || value.IsNull()) return {};
  if (!value.IsScalar()) throw error(fmt::format("{}: {} must be a text", e.description, key));
  return value.Scalar();
}

inline bool truth_of(entry const& e, YAML::Node const& node, char const* key) {
  auto const text = text_of(e, node, key);
  if (!text.empty() && text != "true" && text != "false")
    throw error(
        fmt::format("{}: {} must be true or false, not '{}'", e.description, key, one_line(text, 100)));
  return text == "true";
}

inline std::optional<entry> find_entry(std::vector<kubeconfig_file> const& files, char const* list,
                                       std::string const& kind, std::string const& name) {
  for (auto const& f : files) {
    auto const entries = f.root[list];
    if (!entries || entries.IsNull()) continue;
    if (!entries.IsSequence()) throw error(fmt::format("kubeconfig {}: {} must be a list", f.path, list));
    for (auto const& item : entries) {
      if (!item.IsMap() || !item["name"] || !item["name"].IsScalar() || item["name"].Scalar() != name)
        continue;
      entry found{item[kind], f.path, fmt::format("{} '{}' of {}", kind, name, f.path)};
      if (!found.value || found.value.IsNull()) found.value = YAML::Node(YAML::NodeType::Map);
      if (!found.value.IsMap()) throw error(fmt::format("{}: it must be a map", found.description));
      return found;
    }
  }
  return std::nullopt;
}

inline std::string names_in(std::vector<kubeconfig_file> const& files, char const* list) {
  std::string names;
  for (auto const& f : files)
    if (auto const entries = f.root[list]; entries && entries.IsSequence())
      for (auto const& item : entries)
        if (item.IsMap() && item["name"] && item["name"].IsScalar())
          names += (names.empty() ? "" : ", ") + one_line(item["name"].Scalar(), 100);
  return names.empty() ? "none" : names;
}

inline std::string beside(std::string const& file, std::string const& path) {
  return (std::filesystem::absolute(file).parent_path() / path).lexically_normal().string();
}

// A credential that an entry gives inline (KEY-data, base64) or as a file (KEY), which may change.
struct material {
  std::string text;
  std::shared_ptr<watched_file> file;

  bool renew(std::string& now) const {
    if (!file || file->text() == now) return false;
    now = file->text();
    return true;
  }
};

inline material material_of(entry const& e, std::string const& key) {
  if (auto const data = text_of(e, e.value, (key + "-data").c_str()); !data.empty())
    return {base64_decoded(data, fmt::format("{}: {}-data", e.description, key)), nullptr};
  auto const path = text_of(e, e.value, key.c_str());
  if (path.empty()) return {};
  auto file = std::make_shared<watched_file>(beside(e.file, path), fmt::format("{}: {}", e.description, key));
  auto text = file->text();
  return {std::move(text), std::move(file)};
}

inline nlohmann::json to_json(YAML::Node const& node) {
  if (node.IsSequence()) {
    auto out = nlohmann::json::array();
    for (auto const& item : node) out.push_back(to_json(item));
    return out;
  }
  if (node.IsMap()) {
    auto out = nlohmann::json::object();
    for (auto const& item : node) out[item.first.Scalar()] = to_json(item.second);
    return out;
  }
  if (!node.IsScalar()) return nullptr;
  if (node.Tag() == "!") return node.Scalar();  // a quoted scalar
  if (bool b; YAML::convert<bool>::decode(node, b)) return b;
  if (std::int64_t i; YAML::convert<std::int64_t>::decode(node, i)) return i;
  if (double d; YAML::convert<double>::decode(node, d)) return d;
  return node.Scalar();
}

// The description of the cluster that a plugin gets.
inline std::string cluster_info(entry const& cluster, std::string const& ca) {
  nlohmann::json info{{"server", text_of(cluster, cluster.value, "server")}};
  if (!ca.empty()) info["certificate-authority-data"] = base64_encoded(ca);
  if (auto const name = text_of(cluster, cluster.value, "tls-server-name"); !name.empty())
    info["tls-server-name"] = name;
  if (truth_of(cluster, cluster.value, "insecure-skip-tls-verify")) info["insecure-skip-tls-verify"] = true;
  if (auto const extensions = cluster.value["extensions"]; extensions && extensions.IsSequence())
    for (auto const& e : extensions)
      if (e.IsMap() && e["name"] && e["name"].IsScalar() &&
          e["name"].Scalar() == "client.authentication.k8s.io/exec")
        info["config"] = to_json(e["extension"]);
  return info.dump();
}

inline exec_plugin plugin_of(entry const& user, entry const& cluster, std::string const& ca) {
  auto const node = user.value["exec"];
  entry const e{node, user.file, user.description + ": exec"};
  if (!node.IsMap()) throw error(e.description + " must be a map");
  exec_plugin p;
  p.origin = e.description;
  auto const version = text_of(e, node, "apiVersion");
  for (char const* known : {"v1", "v1beta1"})
    if (version == std::string("client.authentication.k8s.io/") + known) p.version = known;
  if (p.version.empty())
    throw error(
        fmt::format("{}: unknown apiVersion '{}': expected client.authentication.k8s.io/v1 or v1beta1, which "
                    "a current version of the plugin's own tool writes",
                    e.description, one_line(version, 100)));
  p.command = text_of(e, node, "command");
  if (p.command.empty()) throw error(e.description + ": it has no command");
  if (p.command.find('/') != p.command.npos) p.command = beside(e.file, p.command);
  if (auto const args = node["args"]; args && args.IsSequence())
    for (auto const& a : args)
      if (a.IsScalar()) p.arguments.push_back(a.Scalar());
  if (auto const env = node["env"]; env && env.IsSequence())
    for (auto const& v : env)
      if (v.IsMap()) p.variables.emplace_back(text_of(e, v, "name"), text_of(e, v, "value"));
  p.install_hint = text_of(e, node, "installHint");
  if (auto const mode = text_of(e, node, "interactiveMode"); !mode.empty()) p.interactive = mode;
  if (p.interactive != "Never" && p.interactive != "IfAvailable" && p.interactive != "Always")
    throw error(fmt::format("{}: interactiveMode must be Never, IfAvailable or Always, not '{}'",
                            e.description, one_line(p.interactive, 100)));
  if (truth_of(e, node, "provideClusterInfo")) p.cluster = cluster_info(cluster, ca);
  return p;
}

inline void refuse_outdated(entry const& user) {
  if (user.value["username"] || user.value["password"])
    throw error(
        fmt::format("{}: API servers no longer accept username and password: use a token, a client "
                    "certificate or an exec plugin",
                    user.description));
  if (user.value["auth-provider"])
    throw error(
        fmt::format("{}: auth-provider was removed from Kubernetes: use an exec plugin", user.description));
  for (char const* key : {"as", "as-uid", "as-groups", "as-user-extra"})
    if (user.value[key])
      throw error(fmt::format("{}: {}: edl does not act as another user: give it that user's own credentials",
                              user.description, key));
}

inline void set_user(access& a, entry const& user, entry const& cluster) {
  refuse_outdated(user);
  auto const ca = material_of(cluster, "certificate-authority");
  auto const certificate = material_of(user, "client-certificate"), key = material_of(user, "client-key");
  a.ca = ca.text;
  a.certificate = certificate.text;
  a.key = key.text;
  a.renew = [ca, certificate, key](access& now) {
    bool changed = ca.renew(now.ca);
    changed |= certificate.renew(now.certificate);
    changed |= key.renew(now.key);
    return changed;
  };
  if (auto const path = text_of(user, user.value, "tokenFile"); !path.empty()) {
    auto const what = user.description + ": tokenFile";
    auto const file = std::make_shared<watched_file>(beside(user.file, path), what);
    checked_token(file->text(), what);
    a.token = [file, what](bool) { return checked_token(file->text(), what); };
  } else if (auto const token = text_of(user, user.value, "token"); !token.empty()) {
    a.token = [token = checked_token(token, user.description + ": token")](bool) { return token; };
  } else if (user.value["exec"] && a.certificate.empty()) {
    auto const given = std::make_shared<exec_credentials>(plugin_of(user, cluster, a.ca));
    a.token = [given](bool refused) { return given->get(refused, std::time(nullptr)).token; };
    a.renew = [given, ca](access& now) {
      auto const& c = given->get(false, std::time(nullptr));
      bool const renewed = ca.renew(now.ca);
      bool const changed = renewed || c.certificate != now.certificate || c.key != now.key;
      now.certificate = c.certificate;
      now.key = c.key;
      return changed;
    };
  }
}

}  // namespace detail

EDL_INLINE access in_cluster(std::string const& root) {
  auto const host = detail::variable("KUBERNETES_SERVICE_HOST"),
             port = detail::variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty())
    throw error(
        "this process is not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
        "outside of a cluster a kubeconfig is needed");
  access a;
  a.origin = "the pod's service account";
  a.server = fmt::format("https://{}:{}", host.find(':') == host.npos ? host : "[" + host + "]", port);
  auto const token = std::make_shared<watched_file>(root + "/token", a.origin);
  auto const ca = std::make_shared<watched_file>(root + "/ca.crt", a.origin);
  auto const mounted = [&](watched_file& f) {
    try {
      return f.text();
    } catch (error const& e) {
      throw error(fmt::format("{}; does the pod have automountServiceAccountToken: false?", e.what()));
    }
  };
  detail::checked_token(mounted(*token), root + "/token");
  a.ca = mounted(*ca);
  a.token = [token, root](bool) { return detail::checked_token(token->text(), root + "/token"); };
  a.renew = [ca](access& now) {
    auto const& text = ca->text();
    if (text == now.ca) return false;
    now.ca = text;
    return true;
  };
  if (::access((root + "/namespace").c_str(), F_OK) == 0)
    a.user_space = trimmed(read_text(root + "/namespace", a.origin));
  return a;
}

EDL_INLINE access from_kubeconfig(std::string const& path, std::string const& context) try {
  auto const files = detail::load_kubeconfig(path);
  auto name = context;
  for (auto const& f : files)
    if (name.empty())
      name = detail::text_of({f.root, f.path, "kubeconfig " + f.path}, f.root, "current-context");
  if (name.empty())
    throw error(
        fmt::format("kubeconfig {}: it has no current-context: 'kubectl config use-context NAME' sets it; "
                    "its contexts: {}",
                    path, detail::names_in(files, "contexts")));
  auto const chosen = detail::find_entry(files, "contexts", "context", name);
  if (!chosen)
    throw error(fmt::format("kubeconfig {}: no context '{}'; it has: {}", path, one_line(name, 100),
                            detail::names_in(files, "contexts")));
  auto const of_context = [&](char const* key, char const* list) {
    auto const wanted = detail::text_of(*chosen, chosen->value, key);
    auto found = detail::find_entry(files, list, key, wanted);
    if (!found)
      throw error(fmt::format("{}: no {} '{}'; it has: {}", chosen->description, key, one_line(wanted, 100),
                              detail::names_in(files, list)));
    return *found;
  };
  access a;
  a.origin = chosen->description;
  auto const cluster = of_context("cluster", "clusters");
  a.server = detail::text_of(cluster, cluster.value, "server");
  if (a.server.empty())
    throw error(cluster.description + ": it has no server: add its address, as https://host:port");
  if (!detail::text_of(cluster, cluster.value, "proxy-url").empty())
    throw error(cluster.description +
                ": edl does not use a proxy-url: name a server that it can reach itself");
  a.server_name = detail::text_of(cluster, cluster.value, "tls-server-name");
  a.insecure = detail::truth_of(cluster, cluster.value, "insecure-skip-tls-verify");
  // Without a user, requests are anonymous.
  bool const somebody = !detail::text_of(*chosen, chosen->value, "user").empty();
  detail::set_user(
      a, somebody ? of_context("user", "users") : detail::entry{YAML::Node(YAML::NodeType::Map), "", ""},
      cluster);
  if (a.insecure && !a.ca.empty())
    throw error(cluster.description +
                ": insecure-skip-tls-verify contradicts certificate-authority: remove one of them");
  if (auto const space = detail::text_of(*chosen, chosen->value, "namespace"); !space.empty())
    a.user_space = space;
  return a;
} catch (YAML::Exception const& e) {
  throw error(fmt::format("kubeconfig {}: an entry has the wrong form: {}", one_line(path, 300),
                          one_line(e.msg, 200)));
}

EDL_INLINE access find_access(bool force_kubeconfig, std::string const& context) {
  bool const in_pod = !detail::variable("KUBERNETES_SERVICE_HOST").empty();
  auto path = detail::variable("KUBECONFIG");
  // In a pod a kubeconfig is used only on request, which includes its variable.
  if (in_pod && !force_kubeconfig && context.empty() && path.empty()) return in_cluster();
  if (path.empty()) {
    path = detail::variable("HOME") + "/.kube/config";
    if (::access(path.c_str(), F_OK) != 0)
      throw error(
          fmt::format("no cluster is known: this process is not in a pod, KUBECONFIG is not set, and {} does "
                      "not exist: name the cluster's file with KUBECONFIG",
                      path));
  }
  return from_kubeconfig(path, context);
}

}  // namespace edl::kubernetes
