// SPDX-License-Identifier: Apache-2.0
// bench-controller [JOBS [PODS]]: how long edl-controller takes to let in JOBS TrainingJobs that are
// submitted at once, and what memory it needs beside PODS other pods. The API server is the tests' double on
// the same machine, whose pods have no processes.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "kubernetes/double.hpp"
#include "kubernetes/yaml.hpp"

namespace lab = edl::testing::kubernetes;
using nlohmann::json;
using clock_type = std::chrono::steady_clock;

namespace {

double seconds_since(clock_type::time_point then) {
  return std::chrono::duration<double>(clock_type::now() - then).count();
}

/// A line of /proc/PID/status, in MiB.
double memory(pid_t of, std::string const& name) {
  std::ifstream in(fmt::format("/proc/{}/status", of));
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  return 0;
}

json job(int n) {
  json const like =
      R"({"spec": {"containers": [{"name": "main", "image": "m:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}})"_json;
  return {{"apiVersion", "elasticdl.org/v1alpha1"},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", fmt::format("job-{}", n)}, {"namespace", "default"}}},
          {"spec",
           {{"model", "mnist"},
            {"strategy", "AllreduceStrategy"},
            {"master", {{"template", like}}},
            {"workers", {{"min", 1}, {"max", 20}, {"template", like}}}}}};
}

json pod(int n, int nodes) {
  return {{"metadata", {{"name", fmt::format("service-{}", n)}}},
          {"spec",
           {{"nodeName", fmt::format("node-{}", n % nodes)},
            {"containers",
             {{{"name", "main"}, {"image", "m:1"}, {"resources", {{"requests", {{"cpu", "10m"}}}}}}}}}}};
}

void check(json const& answer) {
  if (answer.value("kind", "") == "Status" && answer.value("code", 200) >= 300) {
    fmt::print(stderr, "bench-controller: {}\n", answer.dump());
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int const jobs = argc > 1 ? std::atoi(argv[1]) : 1000, pods = argc > 2 ? std::atoi(argv[2]) : 20'000,
            nodes = 400;
  lab::options o;
  o.nodes.clear();
  for (int n = 0; n < nodes; ++n)
    o.nodes.push_back({.name = fmt::format("node-{}", n), .cpu = "1000", .memory = "4Ti"});
  o.namespaces = {"default", "edl-system"};
  o.history = 200'000;
  o.image_start = std::chrono::hours(10);
  lab::cluster cluster(o);
  check(cluster.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                     lab::read_yaml(EDL_MANIFESTS "/trainingjob-crd.yaml").at(0)));
  check(cluster.post("/api/v1/namespaces/default/serviceaccounts", {{"metadata", {{"name", "edl"}}}}));
  auto began = clock_type::now();
  for (int n = 0; n < pods; ++n) check(cluster.post("/api/v1/namespaces/default/pods", pod(n, nodes)));
  fmt::print("{} pods made in {:.1f} s\n", pods, seconds_since(began));

  std::string const config = "--kubeconfig=" + cluster.kubeconfig();
  char const* const line[] = {EDL_CONTROLLER, config.c_str(), "--metrics_address=127.0.0.1:0",
                              "--requests_per_second=1000", nullptr};
  pid_t controller = 0;
  posix_spawn(&controller, EDL_CONTROLLER, nullptr, nullptr, const_cast<char**>(line), environ);
  auto const lease = "/apis/coordination.k8s.io/v1/namespaces/edl-system/leases/edl-controller";
  while (cluster.get(lease).value("kind", "") != "Lease")
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::this_thread::sleep_for(std::chrono::seconds(10));
  fmt::print("memory with {} pods: {:.0f} MiB, at most {:.0f} MiB\n", pods, memory(controller, "VmRSS"),
             memory(controller, "VmHWM"));
  std::fflush(stdout);

  began = clock_type::now();
  for (int n = 0; n < jobs; ++n)
    check(cluster.post("/apis/elasticdl.org/v1alpha1/namespaces/default/trainingjobs", job(n)));
  fmt::print("{} TrainingJobs submitted in {:.1f} s\n", jobs, seconds_since(began));
  std::fflush(stdout);
  std::size_t there = 0;
  while (there < std::size_t(jobs) && seconds_since(began) < 300) {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    there =
        cluster.get("/api/v1/namespaces/default/pods?labelSelector=elasticdl-replica-type=master")["items"]
            .size();
  }
  double const took = seconds_since(began);
  fmt::print("{} masters' pods {:.1f} s after the first submission ({:.0f} jobs/s)\n", there, took,
             double(there) / took);
  fmt::print("memory with {} pods and {} jobs: {:.0f} MiB, at most {:.0f} MiB\n", pods + int(there), jobs,
             memory(controller, "VmRSS"), memory(controller, "VmHWM"));
  ::kill(controller, SIGTERM);
  int status = 0;
  ::waitpid(controller, &status, 0);
  return there == std::size_t(jobs) && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}
