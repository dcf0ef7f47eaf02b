// SPDX-License-Identifier: Apache-2.0
// The published tutorials' command lines, run as they are printed but for the program's name.
#include "zoo/tutorials.hpp"

#include <unistd.h>

#include <fstream>

#include "tools/edl.hpp"

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
    for (std::string const name : {"python -m elasticdl.python.elasticdl.client", "elasticdl"})
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
