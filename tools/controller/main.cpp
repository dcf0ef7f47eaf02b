// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>

#include "answers.hpp"
#include "edl/app/signals.hpp"
#include "edl/controller/controller.hpp"
#include "edl/core/error.hpp"
#include "edl/net/token.hpp"
#include "edl/version.hpp"

namespace {

using namespace edl;
using milliseconds = std::chrono::milliseconds;

struct settings {
  controller::controller_options run{};
  std::string policy = "fair", kubeconfig{}, context{}, metrics_address = "0.0.0.0:8080", log_level = "INFO",
              identity{};
  double duration = 15, renew_deadline = 10, retry = 2, plan_interval = 0.05;
  unsigned workers = 8;
};

std::string policy_help() {
  std::string all = "Who is given room that is left:";
  for (controller::policy const& p : controller::policies()) all += fmt::format(" {} ({});", p.name, p.help);
  all.pop_back();
  return all;
}

void add_flags(CLI::App& app, settings& s) {
  app.add_option("--namespace", s.run.space, "Only TrainingJobs of this namespace; all, where none is given");
  app.add_option("--policy", s.policy, policy_help())->capture_default_str();
  app.add_option(
         "--max_load", s.run.planning.max_load,
         "Share of the cluster's cpu and memory that jobs may fill; the rest is headroom for services")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  app.add_option("--change_share", s.run.planning.change_share,
                 "Share of its time, at most, that a job may stand still because its size changes")
      ->check(CLI::Range(0.001, 1.0))
      ->capture_default_str();
  app.add_option("--patience", s.run.planning.patience,
                 "Seconds that a job waits before none behind it is let in")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--plan_interval", s.plan_interval, "Seconds between two plans, at least")
      ->check(CLI::Range(0.001, 60.0))
      ->capture_default_str();
  app.add_option("--suspend_patience", s.run.reconciling.suspend_patience,
                 "Seconds that a master has to suspend its job, before its pod is deleted")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  app.add_option("--node_patience", s.run.reconciling.node_patience,
                 "Seconds until the pods of a node that does not exist any more are removed")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_flag("--pod_groups", s.run.reconciling.pod_groups,
               "Servers and the least workers of a job are placed together or not at all, by a PodGroup "
               "(scheduling.k8s.io) that the cluster's scheduler knows");
  app.add_option("--workers", s.workers, "Jobs that are worked on at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--requests_per_second", s.run.requests_per_s,
                 "Requests to the API server a second, at most")
      ->check(CLI::Range(1.0, 1e5))
      ->capture_default_str();
  app.add_option("--metrics_address", s.metrics_address,
                 "HOST:PORT of /healthz, /readyz and /metrics; port 0: any")
      ->capture_default_str();
  app.add_option("--lease_name", s.run.lease,
                 "Name of the Lease that says which controller acts; with --namespace, "
                 "edl-controller-NAMESPACE where "
                 "none is given")
      ->capture_default_str();
  app.add_option("--lease_namespace", s.run.lease_space,
                 "Its namespace; in a pod, the pod's own where none is given")
      ->capture_default_str();
  app.add_option("--lease_duration", s.duration,
                 "Seconds after which another controller takes over from a silent one")
      ->capture_default_str();
  app.add_option("--lease_renew_deadline", s.renew_deadline,
                 "Seconds after which a controller stops that cannot renew")
      ->capture_default_str();
  app.add_option("--lease_retry", s.retry, "Seconds between tries to renew the lease, or to take it")
      ->capture_default_str();
  app.add_option("--identity", s.identity,
                 "Name in the Lease; the pod's and random digits, where none is given");
  app.add_option("--kubeconfig", s.kubeconfig,
                 "File that says where the cluster is; a pod's own account, or as kubectl, without");
  app.add_option("--context", s.context, "Context of the kubeconfig; the current one, where none is given");
  app.add_option("--log_level", s.log_level, "DEBUG, INFO, WARNING or ERROR")
      ->check(CLI::IsMember({"DEBUG", "INFO", "WARNING", "ERROR"}))
      ->capture_default_str();
  app.set_version_flag("--version", std::string("edl-controller ") + edl::package_version);
}

milliseconds from_seconds(double s) {
  return milliseconds(std::int64_t(std::min(std::max(s, 0.0), 1e6) * 1000));
}

std::string own_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0) return "edl-controller";
  return name;
}

platform::kubernetes::access access_of(settings const& s) {
  namespace k8s = platform::kubernetes;
  if (!s.kubeconfig.empty()) return k8s::from_kubeconfig(s.kubeconfig, s.context);
  return k8s::find_access(!s.context.empty(), s.context);
}

severity level_of(std::string const& name) {
  return name == "DEBUG"     ? severity::debug
         : name == "WARNING" ? severity::warning
         : name == "ERROR"   ? severity::error
                             : severity::info;
}

int run(settings& s, bool lease_given, bool lease_space_given) {
  app::signals const ends({SIGTERM, SIGINT});
  logger const log(level_of(s.log_level));
  s.run.planning.who = controller::policy_called(s.policy);
  s.run.workers = s.workers;
  s.run.plan_interval = from_seconds(s.plan_interval);
  s.run.times = {from_seconds(s.duration), from_seconds(s.renew_deadline), from_seconds(s.retry)};
  s.run.identity =
      s.identity.empty() ? own_name() + "_" + net::token::random().secret().substr(0, 12) : s.identity;
  char const* const pod_space = std::getenv("POD_NAMESPACE");
  // Controllers of two namespaces both act.
  if (!lease_given && !s.run.space.empty()) s.run.lease += "-" + s.run.space;
  if (!lease_space_given && pod_space && *pod_space) s.run.lease_space = pod_space;
  controller::controller c(access_of(s), s.run, log);
  tool::answers const web(
      s.metrics_address,
      {.healthy =
           [&] {
             std::string why;
             c.healthy(why);
             return why;
           },
       .ready = [&] { return c.ready() ? std::string() : "not everything has been listed yet"; },
       .metrics = [&] { return c.metrics_text(); }});
  log.info(fmt::format("edl-controller {} as {}: probes and metrics on port {}, policy {}, --max_load={}",
                       edl::package_version, s.run.identity, web.port(), s.policy, s.run.planning.max_load));
  while (!ends.wait(std::chrono::hours(1))) {
  }
  log.info("told to end: the lease is given back");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Keeps the TrainingJobs of a Kubernetes cluster: lets them in, makes and replaces their masters, and "
      "gives their workers what room "
      "there is. docs/controller.md says how.",
      "edl-controller");
  settings s;
  add_flags(app, s);
  try {
    app.parse(argc, argv);
    return run(s, app.count("--lease_name") > 0, app.count("--lease_namespace") > 0);
  } catch (CLI::ParseError const& e) {
    int const code = app.exit(e);
    return code == 0 ? 0 : 2;
  } catch (usage_error const& e) {
    fmt::print(stderr, "edl-controller: {}\n", e.what());
    return 2;
  } catch (std::exception const& e) {
    fmt::print(stderr, "edl-controller: {}\n", e.what());
    return 1;
  }
}
