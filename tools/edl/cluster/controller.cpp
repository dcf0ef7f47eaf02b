// SPDX-License-Identifier: Apache-2.0
#include "cluster/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "cluster/cluster.hpp"
#include "cluster/manifests.hpp"
#include "cluster/pods.hpp"
#include "common/text_file.hpp"
#include "common/yaml.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using namespace std::chrono_literals;
namespace k8s = kubernetes;

constexpr char const* definition = "CustomResourceDefinition";

/// The kinds of the manifests that belong to no namespace.
bool is_of_cluster(std::string const& kind) {
  static std::set<std::string> const all{definition, "Namespace", "ClusterRole", "ClusterRoleBinding",
                                         "PriorityClass"};
  return all.contains(kind);
}

/// "deployments", "networkpolicies", "priorityclasses".
std::string plural_of(std::string kind) {
  for (char& c : kind) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  if (kind.ends_with('y')) return kind.substr(0, kind.size() - 1) + "ies";
  return kind + (kind.ends_with('s') ? "es" : "s");
}

std::string path_of(json const& o) {
  std::string const version = text_at(o, "/apiVersion"), kind = text_at(o, "/kind");
  return fmt::format("/{}/{}{}/{}/{}", version == "v1" ? "api" : "apis", version,
                     is_of_cluster(kind) ? "" : "/namespaces/" + text_at(o, "/metadata/namespace"),
                     plural_of(kind), text_at(o, "/metadata/name"));
}

void move_to(json& o, std::string const& space) {
  if (text_at(o, "/kind") == "Namespace") o["metadata"]["name"] = space;
  if (o["metadata"].contains("namespace")) o["metadata"]["namespace"] = space;
  if (o.contains("subjects"))
    for (json& subject : o["subjects"])
      if (subject.contains("namespace")) subject["namespace"] = space;
}

/// A kind is not there at once when its definition is.
void await_established(cluster& c, std::string const& path) {
  auto const until = clock::now() + 30s;
  for (;; std::this_thread::sleep_for(200ms)) {
    json const now = c.api.get(path);
    for (json const& condition : now.value("/status/conditions"_json_pointer, json::array()))
      if (text_at(condition, "/type") == "Established" && text_at(condition, "/status") == "True") return;
    if (clock::now() > until)
      throw error(fmt::format("{} is not established after 30 s: `kubectl describe crd{}` shows why",
                              text_at(now, "/metadata/name"), c.reach_of_kubectl()));
  }
}

}  // namespace

std::vector<json> controller_objects(std::string const& space, std::string const& image) {
  std::vector<json> all;
  for (manifest_file const& file : manifests())
    for (json& o : from_yaml_documents(file.text, file.name)) {
      if (!space.empty()) move_to(o, space);
      if (!image.empty() && text_at(o, "/kind") == "Deployment")
        for (json& container : o.at("spec").at("template").at("spec").at("containers"))
          container["image"] = image;
      all.push_back(std::move(o));
    }
  return all;
}

controller_place place_of_controller() {
  controller_place place;
  for (json const& o : controller_objects("", ""))
    if (text_at(o, "/kind") == "Deployment") {
      place.space = text_at(o, "/metadata/namespace", place.space);
      place.name = text_at(o, "/metadata/name", place.name);
      for (std::string const& word : command_of(o.at("spec").at("template")))
        if (word.starts_with("--lease_name=")) place.lease = word.substr(word.find('=') + 1);
    }
  return place;
}

std::vector<flag> install_controller_flags() {
  auto all = cluster_flags();
  for (flag& f : all)
    if (f.name == "namespace")
      f.help = "namespace of the controller; without it " + place_of_controller().space;
  all.push_back({.name = "image", .help = "image of the controller; without it that of k8s/controller.yaml"});
  all.push_back(
      {.name = "yaml", .help = "print the objects into this file and change nothing; - for standard output"});
  all.push_back({.name = "dry_run",
                 .help = "change nothing, and let the API server check the objects",
                 .choices = {"server"}});
  return all;
}

int install_controller(words const& line) {
  command_line const l("controller install", install_controller_flags(), line);
  auto const objects = controller_objects(l.text("namespace"), l.text("image"));
  if (!l.text("yaml").empty()) {
    std::string text;
    for (json const& o : objects) text += "---\n" + to_yaml(o);
    write_output("--yaml", l.text("yaml"), text, false);
    return done;
  }
  bool const try_only = l.text("dry_run") == "server";
  cluster c = connect(l);
  for (json const& o : objects) {
    k8s::query q{{"fieldManager", "edl"}, {"force", "true"}};
    if (try_only) q.emplace_back("dryRun", "All");
    std::string const kind = text_at(o, "/kind"), path = path_of(o),
                      space = text_at(o, "/metadata/namespace");
    try {
      c.api.patch(path, o, "apply", q);
    } catch (k8s::api_error const& e) {
      // Trying makes no namespace, so that nothing can be tried in one that is still to be made.
      if (!try_only || e.code() != 404 || space.empty()) throw;
      fmt::print("{} {} can be checked once namespace {} exists\n", kind, text_at(o, "/metadata/name"),
                 space);
      continue;
    }
    if (kind == definition && !try_only) await_established(c, path);
    fmt::print("{} {}{}{}\n", kind, text_at(o, "/metadata/name"),
               space.empty() ? "" : " in namespace " + space, try_only ? " would be accepted" : " exists");
  }
  return done;
}

}  // namespace edl::tool
