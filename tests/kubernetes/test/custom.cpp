// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "kubernetes/test/support.hpp"
#include "kubernetes/yaml.hpp"

// Kinds that a CustomResourceDefinition defines, by the one of TrainingJobs.
namespace edl::testing::kubernetes {
namespace {

std::string const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
std::string const jobs = "/apis/elasticdl.org/v1alpha1/namespaces/default/trainingjobs";

json definition() { return read_yaml(std::string(EDL_MANIFESTS) + "/trainingjob-crd.yaml").at(0); }
json example() { return read_yaml(std::string(EDL_MANIFESTS) + "/trainingjob-example.yaml").at(0); }

void define(cluster& c) {
  REQUIRE(c.post(crds, definition()).value("kind", "") == "CustomResourceDefinition");
}

json owned(std::string const& name, json const& owner, bool blocks = false) {
  return {{"metadata",
           {{"name", name},
            {"ownerReferences",
             {{{"apiVersion", owner["apiVersion"]},
               {"kind", owner["kind"]},
               {"name", owner["metadata"]["name"]},
               {"uid", owner["metadata"]["uid"]},
               {"controller", true},
               {"blockOwnerDeletion", blocks}}}}}}};
}

bool gone(cluster& c, std::string const& path) { return c.get(path).value("code", 0) == 404; }

}  // namespace

TEST_CASE("a definition's kind comes after a while, and goes with the definition") {
  cluster c({.establish_delay = std::chrono::milliseconds(300)});
  define(c);
  json const early = c.get(crds + "/trainingjobs.elasticdl.org");
  CHECK(early["status"].value("conditions", json()).is_null());
  CHECK(c.get(jobs).value("message", "") == "the server could not find the requested resource");
  REQUIRE(c.wait([&] { return c.get(jobs).value("kind", "") == "TrainingJobList"; }));
  json const is = c.get(crds + "/trainingjobs.elasticdl.org")["status"];
  CHECK(is["conditions"][0]["type"] == "NamesAccepted");
  CHECK(is["conditions"][1]["type"] == "Established");
  CHECK(is["acceptedNames"]["shortNames"] == json::array({"tj"}));
  CHECK(c.post(jobs, example())["metadata"]["generation"] == 1);
  json const listed = c.get("/apis/elasticdl.org/v1alpha1")["resources"];
  REQUIRE(listed.size() == 3);
  CHECK(listed[0]["singularName"] == "trainingjob");
  CHECK(listed[0]["categories"] == json::array({"all"}));
  CHECK(listed[0]["shortNames"] == json::array({"tj"}));
  CHECK(listed[1]["name"] == "trainingjobs/status");
  CHECK(listed[2]["kind"] == "Scale");
  c.remove(crds + "/trainingjobs.elasticdl.org");
  CHECK(gone(c, jobs));
  CHECK(gone(c, "/apis/elasticdl.org/v1alpha1"));
  c.post(crds, definition());
  REQUIRE(c.wait([&] { return c.get(jobs).value("kind", "") == "TrainingJobList"; }));
  CHECK(c.get(jobs)["items"].empty());
}

TEST_CASE(
    "spec and status are written by paths of their own, and the generation counts changes of the spec") {
  cluster c;
  define(c);
  json job = example();
  job["status"] = {{"phase", "running"}};
  json const made = c.post(jobs, job);
  CHECK_FALSE(made.contains("status"));
  CHECK(made["metadata"]["generation"] == 1);
  std::string const path = jobs + "/mnist";

  json changed = made;
  changed["status"] = {{"phase", "running"}};
  changed["spec"]["suspend"] = true;
  json const status = c.call("PUT", path + "/status", changed);
  CHECK(status["status"]["phase"] == "running");
  CHECK(status["spec"] == made["spec"]);
  CHECK(status["metadata"]["generation"] == 1);

  CHECK(c.call("PUT", path + "/status", changed)["reason"] == "Conflict");  // its version is not the newest
  changed["metadata"].erase("resourceVersion");
  CHECK(c.call("PUT", path, changed)["message"].get<std::string>().find("must be specified for an update") !=
        std::string::npos);
  changed["metadata"]["resourceVersion"] = status["metadata"]["resourceVersion"];
  changed["status"]["phase"] = "failed";
  json const spec = c.call("PUT", path, changed);
  CHECK(spec["spec"]["suspend"] == true);
  CHECK(spec["status"]["phase"] == "running");
  CHECK(spec["metadata"]["generation"] == 2);
  CHECK(c.call("PATCH", path, {{"metadata", {{"labels", {{"a", "b"}}}}}})["metadata"]["generation"] == 2);
  CHECK(c.call("PATCH", path + "/status", {{"status", {{"phase", nullptr}}}})["status"] == json::object());
}

TEST_CASE("kubectl scale: the subresource is a Scale by the definition's paths") {
  cluster c;
  define(c);
  c.post(jobs, example());
  std::string const path = jobs + "/mnist";
  json const none = c.get(path + "/scale");  // as a server has it where the path has no value
  CHECK(none["code"] == 500);
  CHECK(none["message"] ==
        "Internal error occurred: the spec replicas field \".spec.workers.replicas\" does not exist");
  json const scaled = c.call("PATCH", path + "/scale", {{"spec", {{"replicas", 4}}}});
  CHECK(scaled["kind"] == "Scale");
  CHECK(scaled["apiVersion"] == "autoscaling/v1");
  CHECK(scaled["spec"]["replicas"] == 4);
  json const job = c.get(path);
  CHECK(job["spec"]["workers"]["replicas"] == 4);
  CHECK(job["metadata"]["generation"] == 2);
  c.call("PATCH", path + "/status", {{"status", {{"replicas", 3}, {"selector", "a=b"}}}});
  json scale = c.get(path + "/scale");
  CHECK(scale["status"] == json{{"replicas", 3}, {"selector", "a=b"}});
  scale["spec"]["replicas"] = 5;
  CHECK(c.call("PUT", path + "/scale", scale)["spec"]["replicas"] == 5);
  CHECK(c.call("PUT", path + "/scale", scale)["reason"] == "Conflict");
}

TEST_CASE("what belongs to a job goes with it, before it, or stays, as its deletion says") {
  cluster c;
  define(c);
  std::string const maps = "/api/v1/namespaces/default/configmaps", path = jobs + "/mnist";
  json job = c.post(jobs, example());
  c.post(maps, owned("a", job));
  c.remove(path);
  CHECK(gone(c, path));
  REQUIRE(c.wait([&] { return gone(c, maps + "/a"); }));

  job = c.post(jobs, example());
  json blocking = owned("b", job, true);
  blocking["metadata"]["finalizers"] = {"example.com/held"};
  c.post(maps, blocking);
  c.post(maps, owned("c", job));
  json const leaving = c.call("DELETE", path, {{"propagationPolicy", "Foreground"}});
  CHECK(leaving["metadata"]["finalizers"] == json::array({"foregroundDeletion"}));
  CHECK(leaving["metadata"].contains("deletionTimestamp"));
  REQUIRE(c.wait([&] { return gone(c, maps + "/c"); }));
  CHECK(c.get(path)["metadata"].contains("deletionTimestamp"));
  c.call("PATCH", maps + "/b", {{"metadata", {{"finalizers", nullptr}}}});
  REQUIRE(c.wait([&] { return gone(c, path) && gone(c, maps + "/b"); }));

  job = c.post(jobs, example());
  c.post(maps, owned("d", job));
  c.call("DELETE", path, {{"propagationPolicy", "Orphan"}});
  REQUIRE(c.wait([&] { return gone(c, path); }));
  CHECK_FALSE(c.get(maps + "/d")["metadata"].contains("ownerReferences"));

  // Another job of the same name is another owner.
  c.post(maps, owned("e", job));
  c.post(jobs, example());
  REQUIRE(c.wait([&] { return gone(c, maps + "/e"); }));
}

TEST_CASE("an object with a finalizer stays until the last one is taken away, and gets no new ones") {
  cluster c;
  define(c);
  json job = example();
  job["metadata"]["finalizers"] = {"example.com/held"};
  c.post(jobs, job);
  std::string const path = jobs + "/mnist";
  json const leaving = c.remove(path);
  CHECK(leaving["metadata"]["deletionGracePeriodSeconds"] == 0);
  CHECK(leaving["metadata"]["generation"] == 2);
  CHECK(c.remove(path)["metadata"]["deletionTimestamp"] == leaving["metadata"]["deletionTimestamp"]);
  CHECK(c.call("PATCH", path, {{"metadata", {{"finalizers", {"example.com/held", "other"}}}}})["message"]
            .get<std::string>()
            .find("no new finalizers can be added") != std::string::npos);
  c.call("PATCH", path, {{"metadata", {{"finalizers", json::array()}}}});
  CHECK(gone(c, path));
}

TEST_CASE("a lease is replaced by who has seen its newest version") {
  cluster c;
  std::string const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  json lease = c.post(leases, {{"metadata", {{"name", "l"}}}, {"spec", {{"holderIdentity", "a"}}}});
  lease["spec"]["holderIdentity"] = "b";
  json const taken = c.call("PUT", leases + "/l", lease);
  CHECK(taken["spec"]["holderIdentity"] == "b");
  lease["spec"]["holderIdentity"] = "c";
  CHECK(c.call("PUT", leases + "/l", lease)["reason"] == "Conflict");
  lease["metadata"].erase("resourceVersion");
  CHECK(c.call("PUT", leases + "/l", lease)["code"] == 422);
}

}  // namespace edl::testing::kubernetes
