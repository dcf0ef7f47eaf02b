// SPDX-License-Identifier: Apache-2.0
// The published tutorials' command lines, run as they are printed but for the program's name.
#include "command/tutorials.hpp"

#include <unistd.h>

#include <fstream>

#include "command/paddle_examples.hpp"
#include "tools/training_jobs.hpp"

namespace tutorials_test {

using namespace edl_command;
using job::has;

namespace {

/// A user's folder with a model zoo, the small model under the names of the tutorials' programs, the common
/// records where the tutorials have MNIST, and an engine that notes what it is told.
struct desk {
  job::scratch dir;

  desk() {
    for (char const* folder : {"bin", "zoo/model_zoo", "zoo/elasticdl/python/examples", "data/mnist"})
      std::filesystem::create_directories(dir / folder);
    for (char const* program : {"mnist_functional_api", "mnist_subclass"})
      std::filesystem::create_symlink(EDL_TINY, dir / ("bin/" + std::string(program)));
    std::filesystem::create_symlink(job::data().training, dir / "data/mnist/train");
    std::filesystem::create_symlink(job::data().validation, dir / "data/mnist/test");
    std::ofstream(dir / "bin/engine") << "#!/bin/sh\necho \"$@\" >> " << (dir / "engine.log") << "\n";
    std::filesystem::permissions(dir / "bin/engine", std::filesystem::perms::owner_all);
  }

  lab::options options() const {
    // Every image is there, and holds what is in PATH.
    return {.nodes = {{.name = "lab-node", .cpu = "64", .memory = "256Gi"}},
            .claims = {{"fileserver-claim", dir / "data"}},
            .environment = {{"PATH", (dir / "bin") + ":" + std::getenv("PATH")}}};
  }

  /// Runs a line of a tutorial in the user's folder; `edl` stands for the program's name.
  cluster_job::answer type(shell& s, std::string line, std::string const& more = "") const {
    for (std::string const name : {"python -m elasticdl.python.elasticdl.client", "elasticdl", "edl"})
      if (line.starts_with(name)) {
        line = EDL_TOOL + line.substr(name.size());
        break;
      }
    job::run command({"-c", "cd " + (dir / "zoo") + " && exec " + line + " " + more},
                     {.env = {{"KUBECONFIG", s.cluster.kubeconfig()},
                              {"PROJECT_ID", "project"},
                              {"MNIST_DATA_DIR", "/data/mnist"},
                              {"EDL_DOCKER", dir / "bin/engine"}},
                      .program = "/bin/sh"});
    int const code = command.wait(180s);
    return {code, command.log()};
  }
};

/// The command lines of a page that begin with `edl`, in order, each as it is printed.
lines commands_of(std::string const& page) {
  std::string const text = job::slurp(std::string(EDL_DOCS) + "/tutorials/" + page);
  lines all;
  for (auto open = text.find("```sh\n"); open != text.npos; open = text.find("```sh\n", open + 6)) {
    auto const close = text.find("```", open + 6);
    for (auto at = open + 6; at < close;) {
      auto end = text.find('\n', at);
      while (text[end - 1] == '\\') end = text.find('\n', end + 1);
      if (std::string const line = text.substr(at, end - at); line.starts_with("edl ")) all.push_back(line);
      at = end + 1;
    }
  }
  return all;
}

void make_class(shell& s, std::string const& name, int value) {
  s.cluster.post("/apis/scheduling.k8s.io/v1/priorityclasses", {{"apiVersion", "scheduling.k8s.io/v1"},
                                                                {"kind", "PriorityClass"},
                                                                {"metadata", {{"name", name}}},
                                                                {"value", value}});
}

}  // namespace

TEST_CASE("on one node, with a parameter server and with all-reduce") {
  desk const d;
  shell s(d.options());
  for (char const* printed : {tutorials::minikube_ps, tutorials::minikube_allreduce}) {
    std::string line = printed;
    std::string const node = "host_path=/data";  // the node's directory, which is this machine's
    line.replace(line.find(node), node.size(), "host_path=" + (d.dir / "data"));
    auto const ran = d.type(s, line, "--wait");
    CAPTURE(ran.text);
    CHECK(ran.code == 0);
    CHECK(has(ran.text, "is done"));
  }
  CHECK(has(s.cluster.log("default", "elasticdl-test-mnist-master"),
            "Evaluation metrics[v=50]: {'accuracy': "));
  CHECK(has(s.cluster.log("default", "elasticdl-test-mnist-allreduce-worker-0"), "Loss = "));
}

TEST_CASE("in a cloud: the image is made, built and pushed when the job is submitted") {
  desk const d;
  shell s(d.options());
  make_class(s, "high", 1'000'000);
  make_class(s, "low", 1000);
  auto const ran = d.type(s, tutorials::gke_2020, "--wait");
  CAPTURE(ran.text);
  CHECK(ran.code == 0);
  std::string const engine = job::slurp(d.dir / "engine.log");
  CHECK(has(engine, "build"));
  CHECK(has(engine, "gcr.io/project/test-mnist:"));
  CHECK(has(engine, "push gcr.io/project/test-mnist:"));
  CHECK(has(job::slurp(d.dir / "zoo/Dockerfile"), "FROM elasticdl:ci"));
  json const master = s.cluster.get(pods + "/elasticdl-test-mnist-master");
  CHECK(master["spec"]["priorityClassName"] == "high");
  CHECK(s.cluster.get(pods + "/elasticdl-test-mnist-worker-0")["spec"]["priorityClassName"] == "low");
  CHECK(has(engine, master["spec"]["containers"][0]["image"].get<std::string>()));
}

TEST_CASE("in a cloud, as it was written a year earlier") {
  desk const d;
  shell s(d.options());
  make_class(s, "high-priority", 1'000'000);
  make_class(s, "low-priority", 1000);
  auto const ran = d.type(s, tutorials::gke_2019, "--wait");
  CAPTURE(ran.text);
  CHECK(ran.code == 0);
  CHECK(has(ran.text, "--checkpoint_steps=2"));
  json const found = s.cluster.get(pods + "?labelSelector=elasticdl_job_name=low-prio-job");
  CHECK(found["items"].size() >= 3);
}

TEST_CASE("many jobs in one cluster: PaddlePaddle's steps, as the page prints them") {
  desk const d;
  shell s(d.options());
  played_controller const plays(s.cluster);
  std::ofstream(d.dir / "zoo/examplejob.yaml") << paddle::example_job;
  lines const page = commands_of("many-jobs.md");
  REQUIRE(page.size() > 15);
  for (std::string const& line : page) {
    auto const ran = d.type(s, line);
    CAPTURE(line);
    CAPTURE(ran.text);
    // The controller here is played, so no Deployment of it is ready.
    CHECK(ran.code == (line == "edl doctor" ? 1 : 0));
    if (line.starts_with("edl convert")) CHECK(has(ran.text, "spec.trainer.entrypoint"));
    if (line == "edl get jobs") CHECK(has(ran.text, "2-10"));
  }
  CHECK(s.cluster.get(training_jobs)["items"].empty());
}

}  // namespace tutorials_test
