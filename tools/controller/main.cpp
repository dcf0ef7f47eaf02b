// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "answers.hpp"
#include "edl/app/signals.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/cli/program.hpp"
#include "edl/cluster/controller/controller.hpp"
#include "edl/core/names.hpp"
#include "edl/version.hpp"

namespace {

using namespace edl;
using cli::words;
using milliseconds = std::chrono::milliseconds;

std::string policy_help() {
  std::string all = "Which job gets free room:";
  for (autoscaler::policy const& p : autoscaler::policies()) all += fmt::format(" {} ({});", p.name, p.help);
  all.pop_back();
  return all;
}

std::string shown(double value) { return fmt::format("{}", value); }

std::vector<cli::flag> flags() {
  using enum cli::flag::value_type;
  controller::controller_options const defaults;
  words policies;
  for (autoscaler::policy const& p : autoscaler::policies()) policies.emplace_back(p.name);
  return {
      {.name = "namespace", .help = "only TrainingJobs of this namespace; without it: all"},
      {.name = "policy", .fallback = "fair", .help = policy_help(), .choices = policies},
      {.name = "max_load",
       .fallback = shown(defaults.planning.max_load),
       .help = "share of the cluster's cpu and memory that jobs may fill; the rest is headroom for services",
       .type = number,
       .lowest = 0.01,
       .highest = 1},
      {.name = "change_share",
       .fallback = shown(defaults.planning.change_share),
       .help = "share of its time, at most, that a job may stand still because its size changes",
       .type = number,
       .lowest = 0.001,
       .highest = 1},
      {.name = "patience",
       .fallback = shown(defaults.planning.starvation_timeout),
       .help = "seconds that a job waits before no later one is admitted",
       .type = number,
       .lowest = 0,
       .highest = 1e6},
      {.name = "plan_interval",
       .fallback = "0.05",
       .help = "seconds between two plans, at least",
       .type = number,
       .lowest = 0.001,
       .highest = 60},
      {.name = "suspend_patience",
       .fallback = shown(defaults.reconciling.suspend_timeout),
       .help = "seconds that a master has to suspend its job, before its pod is deleted",
       .type = number,
       .lowest = 1,
       .highest = 86400},
      {.name = "node_patience",
       .fallback = shown(defaults.reconciling.node_timeout),
       .help = "seconds until the pods of a node that no longer exists are removed",
       .type = number,
       .lowest = 0,
       .highest = 86400},
      {.name = "prices",
       .help = "file of the present prices of node pools, for spec.spot, as {\"us-east-1a\": 0.92}: USD per "
               "hour of "
               "one worker's machine; read again when it changes; without it, the prices of the jobs' specs "
               "apply"},
      {.name = "pod_groups",
       .help = "servers and the least workers of a job are placed together or not at all, by a PodGroup "
               "(scheduling.k8s.io) that the cluster's scheduler knows",
       .type = truth},
      {.name = "workers",
       .fallback = "8",
       .help = "jobs that are worked on at once",
       .type = whole,
       .least = 1,
       .most = 256},
      {.name = "requests_per_second",
       .fallback = shown(defaults.requests_per_s),
       .help = "requests to the API server a second, at most",
       .type = number,
       .lowest = 1,
       .highest = 1e5},
      {.name = "metrics_address",
       .fallback = "0.0.0.0:8080",
       .help = "HOST:PORT of /healthz, /readyz and /metrics; port 0: any"},
      {.name = "lease_name",
       .fallback = defaults.lease,
       .help = "name of the Lease that the acting controller holds; without it, with --namespace: "
               "edl-controller-NAMESPACE"},
      {.name = "lease_namespace",
       .fallback = defaults.lease_space,
       .help = "its namespace; without it, in a pod: the pod's own"},
      {.name = "lease_duration",
       .fallback = "10",
       .help = "seconds after which another controller takes over from a silent one",
       .type = number,
       .lowest = 0,
       .highest = 1e6},
      {.name = "lease_renew_deadline",
       .fallback = "5",
       .help = "seconds after which a controller that cannot renew the lease stops",
       .type = number,
       .lowest = 0,
       .highest = 1e6},
      {.name = "lease_retry",
       .fallback = "1",
       .help = "seconds between tries to renew the lease, or to take it",
       .type = number,
       .lowest = 0,
       .highest = 1e6},
      {.name = "identity", .help = "name in the Lease; without it: the pod's and random digits"},
      {.name = "kubeconfig",
       .help =
           "kubeconfig file of the cluster; without it: a pod's own account, or the file that kubectl uses"},
      {.name = "context", .help = "context of the kubeconfig; without it: the current one"},
      {.name = "log_level",
       .fallback = "INFO",
       .help = "lowest severity that is logged",
       .choices = {"DEBUG", "INFO", "WARNING", "ERROR"}}};
}

milliseconds from_seconds(double s) { return milliseconds(std::int64_t(s * 1000)); }

std::string own_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "edl-controller";
  return name;
}

kubernetes::access access_of(std::string const& kubeconfig, std::string const& context) {
  namespace k8s = kubernetes;
  if (!kubeconfig.empty()) return k8s::from_kubeconfig(kubeconfig, context);
  return k8s::find_access(!context.empty(), context);
}

controller::controller_options options_of(cli::command_line const& l) {
  auto const value = [&](char const* name) { return cli::parse_number<double>(l.text(name)); };
  auto const seconds = [&](char const* name) { return from_seconds(value(name)); };
  controller::controller_options o;
  o.space = l.text("namespace");
  o.planning.max_load = value("max_load");
  o.planning.change_share = value("change_share");
  o.planning.starvation_timeout = value("patience");
  o.planning.who = autoscaler::policy_called(l.text("policy"));
  o.reconciling.suspend_timeout = value("suspend_patience");
  o.reconciling.node_timeout = value("node_patience");
  o.prices = l.text("prices");
  o.reconciling.pod_groups = l.truth("pod_groups");
  o.requests_per_s = value("requests_per_second");
  o.workers = unsigned(l.number("workers"));
  o.plan_interval = seconds("plan_interval");
  o.times = {seconds("lease_duration"), seconds("lease_renew_deadline"), seconds("lease_retry")};
  o.identity = l.text("identity");
  if (o.identity.empty()) o.identity = own_name() + "_" + net::token::random().secret().substr(0, 12);
  o.lease = l.text("lease_name");
  o.lease_space = l.text("lease_namespace");
  // Controllers of two namespaces both act.
  if (!l.given("lease_name") && !o.space.empty()) o.lease += "-" + o.space;
  char const* const pod_space = std::getenv("POD_NAMESPACE");
  if (!l.given("lease_namespace") && pod_space && *pod_space) o.lease_space = pod_space;
  return o;
}

int run(cli::command_line const& l) {
  app::signals const ends({SIGTERM, SIGINT, SIGHUP});
  logger const log(value_of<severity>(l.text("log_level")).value());
  controller::controller_options const options = options_of(l);
  controller::controller c(access_of(l.text("kubeconfig"), l.text("context")), options, log);
  tool::answers const web(
      l.text("metrics_address"),
      {.healthy =
           [&] {
             std::string why;
             c.healthy(why);
             return why;
           },
       .ready = [&] { return c.ready() ? std::string() : "not everything has been listed yet"; },
       .metrics = [&] { return c.metrics_text(); }});
  log.info(fmt::format("edl-controller {} as {}: probes and metrics on port {}, policy {}, --max_load={}",
                       edl::package_version, options.identity, web.port(), l.text("policy"),
                       options.planning.max_load));
  while (!ends.wait(std::chrono::hours(1))) {
  }
  log.info("shutting down: released the lease");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return cli::run_program(
      {.command = "edl-controller", .flags = flags()},
      "Runs the TrainingJobs of a Kubernetes cluster: admits them, creates and replaces their masters, and "
      "gives\ntheir workers the available room. See docs/controller.md.",
      {argv + 1, argv + argc}, run);
}
