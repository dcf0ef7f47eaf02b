// SPDX-License-Identifier: Apache-2.0
#include "cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/pods.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/version.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
namespace k8s = kubernetes;

k8s::access access_of(command_line const& l) {
  try {
    if (!l.text("kubeconfig").empty()) return k8s::from_kubeconfig(l.text("kubeconfig"), l.text("context"));
    return k8s::find_access(l.truth("force_use_kube_config_file") || l.given("context"), l.text("context"));
  } catch (usage_error const&) {
    throw;
  } catch (error const& bad) {
    throw usage_error(bad.what());
  }
}

}  // namespace

std::string cluster::path(std::string const& kind, std::string const& name) const {
  return "/api/v1/namespaces/" + space + "/" + kind + (name.empty() ? "" : "/" + name);
}

std::string cluster::flags() const {
  return (space == usual_space ? "" : " " + shell_line({"-n", space})) + reach;
}

json cluster::pods_of(std::string const& job) {
  json items = api.get(path("pods"), {{"labelSelector", k8s::job_selector(job)}})["items"];
  std::vector<json> pods(items.begin(), items.end());
  std::ranges::stable_sort(pods, {}, [&](json const& pod) { return order_of(pod); });
  return pods;
}

std::vector<flag> cluster_flags() {
  return {
      {.name = "namespace",
       .help = "namespace of the cluster; without it the context's, or default",
       .aliases = {"n"}},
      {.name = "context", .help = "context of the kubeconfig file; without it its current one"},
      {.name = "kubeconfig", .help = "kubeconfig file; without it $KUBECONFIG, then ~/.kube/config"},
      {.name = "force_use_kube_config_file",
       .fallback = "false",
       .help = "inside a pod: use the kubeconfig file instead of the pod's service account",
       .type = flag::value_type::truth},
      {.name = "request_timeout",
       .fallback = "10",
       .help = "seconds to retry when the cluster does not reply",
       .type = flag::value_type::whole,
       .least = 0,
       .most = 3600},
  };
}

cluster connect(command_line const& line) {
  auto const timeout = std::chrono::seconds(line.number("request_timeout"));
  k8s::access a = access_of(line);
  std::string const usual = line.text("namespace").empty() ? a.user_space : "",
                    space = usual.empty() ? line.text("namespace") : usual;
  return {k8s::client(std::move(a),
                      {.retry_timeout = timeout, .agent = std::string("edl/") + edl::package_version}),
          space, usual, reach_of(line)};
}

std::string reach_of(command_line const& line) {
  words all;
  for (std::string const name : {"context", "kubeconfig"})
    if (!line.text(name).empty()) all.push_back("--" + name + "=" + line.text(name));
  if (line.truth("force_use_kube_config_file")) all.push_back("--force_use_kube_config_file");
  return all.empty() ? "" : " " + shell_line(all);
}

account default_account(cluster& c) {
  try {
    c.api.get(c.path("serviceaccounts", "edl"));
    return {"edl"};
  } catch (k8s::api_error const& bad) {
    if (bad.code() == 404) return {"default"};
    if (bad.code() == 403) return {"edl", false};
    throw;
  }
}

std::string usual_account(cluster& c) {
  account const who = default_account(c);
  if (who.name == "default") return "";
  if (!who.seen)
    note(
        fmt::format("you may not list the service accounts of namespace '{}': the master runs as '{}', "
                    "unless --service_account names another",
                    c.space, who.name));
  return who.name;
}

bool answered(std::function<void()> const& ask, time_point until, bool& announced) {
  std::string away;
  try {
    ask();
    return true;
  } catch (k8s::unreachable const& bad) {
    if (clock::now() >= until) throw;
    away = bad.what();
  } catch (k8s::api_error const& bad) {
    if ((bad.code() < 500 && bad.code() != 429) || clock::now() >= until) throw;
    away = bad.what();
  }
  if (!std::exchange(announced, true)) say(away + "; asking again");
  return false;
}

std::string namespace_of(command_line const& line) {
  if (!line.text("namespace").empty()) return line.text("namespace");
  try {
    return access_of(line).user_space;
  } catch (error const&) {
    return "default";
  }
}

}  // namespace edl::tool
