// SPDX-License-Identifier: Apache-2.0
// What a master shows of itself on its own pod, as an API server keeps it.
#include "base/platform/quiet_observer.hpp"
#include "cluster_job.hpp"
#include "edl/cluster/kubernetes/cluster.hpp"

namespace waits_test {

using namespace cluster_job;
namespace k8s = edl::kubernetes;

TEST_CASE("what a job waits for stands on the master's pod, and goes when the wait is over") {
  lab::cluster server;
  std::string const pods = "/api/v1/namespaces/default/pods";
  json const made = server.post(
      pods,
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata",
        {{"name", "elasticdl-j-master"},
         {"annotations", {{"kept", "yes"}}},
         {"labels", {{"elasticdl-job-name", "j"}, {"elasticdl-replica-type", "master"}}}}},
       {"spec", {{"containers", {{{"name", "main"}, {"image", "i"}, {"command", {"sleep", "600"}}}}}}}});
  REQUIRE(made.value("kind", "") == "Pod");
  k8s::access via;
  via.server = server.url();
  via.ca = job::slurp(server.ca_file());
  via.origin = "a test";
  via.token = [&server](bool) { return server.token(); };
  edl::net::node node({.job = "j",
                       .secret = edl::net::token("a secret of some length"),
                       .log = edl::logger(edl::severity::critical)});
  quiet_observer hears;
  auto const shown = [&] {
    return server.get(pods + "/elasticdl-j-master")["metadata"].value("annotations", json::object());
  };
  {
    k8s::cluster it(node, via, {.name = "j", .num_workers = 1},
                    {"elasticdl-j-master", made["metadata"]["uid"]}, hears,
                    edl::logger(edl::severity::critical));
    it.waits("for 2 workers since 40 s");
    CHECK(server.wait([&] { return shown().value("elasticdl/waits", "") == "for 2 workers since 40 s"; }));
    it.waits("");
    CHECK(server.wait([&] { return !shown().contains("elasticdl/waits"); }));
    CHECK(shown().value("kept", "") == "yes");
    node.stop();
  }
}

}  // namespace waits_test
