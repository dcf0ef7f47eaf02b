// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/custom.hpp"

#include <doctest/doctest.h>

#include "kubernetes/table.hpp"
#include "kubernetes/test/support.hpp"
#include "kubernetes/test/transcript.hpp"
#include "kubernetes/yaml.hpp"

// Kinds that a CustomResourceDefinition defines, by the one of TrainingJobs.
namespace edl::testing::kubernetes {
namespace {

std::string const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
std::string const jobs = "/apis/elasticdl.org/v1alpha1/namespaces/default/trainingjobs";

json definition() { return read_yaml(std::string(EDL_MANIFESTS) + "/trainingjob-crd.yaml").at(0); }
json example() { return read_yaml(std::string(EDL_MANIFESTS) + "/trainingjob-example.yaml").at(0); }

void define(cluster& c) {
  json const made = c.post(crds, definition());
  INFO(made.value("message", ""));
  REQUIRE(made.value("kind", "") == "CustomResourceDefinition");
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

TEST_CASE("TrainingJobs are shaped and checked by the schema and the rules of their definition") {
  cluster c;
  define(c);
  json job = example();
  job["spec"]["workrs"] = 1;
  json const strict = c.post(jobs + "?fieldValidation=Strict", job);
  CHECK(strict["code"] == 400);
  CHECK(
      strict["message"].get<std::string>().ends_with("strict decoding error: unknown field \"spec.workrs\""));
  job["spec"]["workers"]["template"]["spec"]["hostname"] = "kept";
  json const made = c.post(jobs, job);
  CHECK_FALSE(made["spec"].contains("workrs"));
  CHECK(made["spec"]["workers"]["template"]["spec"]["hostname"] == "kept");
  CHECK(made["spec"]["command"] == "train");
  CHECK(made["spec"]["managedBy"] == "elasticdl.org/edl-controller");
  CHECK(made["spec"]["backoffLimit"] == 3);
  CHECK(made["spec"]["suspend"] == false);
  std::string const path = jobs + "/mnist";

  auto const refused = [&](json const& answer) {
    CHECK(answer.value("code", 0) == 422);
    return answer.value("message", answer.dump());
  };
  std::string const invalid = "TrainingJob.elasticdl.org \"mnist\" is invalid: ";
  auto const patched = [&](json const& spec) { return refused(c.call("PATCH", path, {{"spec", spec}})); };
  CHECK(patched({{"workers", {{"min", 11}}}}) == invalid +
                                                     "spec.workers.min: Invalid value: \"object\": "
                                                     "workers.min is greater than workers.max: lower min or "
                                                     "raise max");
  CHECK(
      refused(c.call("PATCH", path + "/scale", {{"spec", {{"replicas", 11}}}})) ==
      invalid +
          "spec.workers.replicas: Invalid value: \"object\": workers.replicas is outside of workers.min and "
          "workers.max: choose a size between them");
  CHECK(patched({{"model", "other"}})
            .starts_with(invalid + "spec.model: Invalid value: \"string\": model is immutable"));
  CHECK(patched({{"managedBy", nullptr}, {"command", "predict"}}).find("command is immutable") !=
        std::string::npos);
  CHECK(patched({{"flags", json::array()}}).find("flags are immutable") != std::string::npos);
  CHECK(patched({{"strategy", nullptr}}).find("strategy is immutable") != std::string::npos);
  CHECK(patched({{"servers", {{"replicas", 5}}}}).find("servers.replicas is immutable") != std::string::npos);
  CHECK(patched({{"servers", {{"replicas", 0}}}}).find("ParameterServerStrategy needs servers") !=
        std::string::npos);
  CHECK(
      patched({{"servers", {{"template", nullptr}}}}) ==
      invalid +
          "spec.servers.template: Required value: servers.template is missing: servers need a pod template");
  CHECK(patched({{"workers", {{"min", 0}}}}).find("greater than or equal to 1") != std::string::npos);
  CHECK(patched({{"workers", {{"max", nullptr}}}}).find("spec.workers.max: Required value") !=
        std::string::npos);
  CHECK(patched({{"workers", {{"template", {{"spec", {{"overhead", {{"cpu", "much"}}}}}}}}}})
            .find("spec.workers.template.spec.overhead.cpu in body should match") != std::string::npos);
  CHECK(refused(c.call("PATCH", path + "/status", {{"status", {{"phase", "odd"}}}}))
            .find("Unsupported value") != std::string::npos);
  CHECK(c.call("PATCH", path, {{"spec", {{"workers", {{"max", 20}}}}}})["metadata"]["generation"] == 2);

  for (auto const& [name, said] :
       {std::pair{std::string(41, 'a'), "room for 40 characters"}, {"a.b", "has a dot"}}) {
    job["metadata"]["name"] = name;
    CHECK(refused(c.post(jobs, job)).find(said) != std::string::npos);
  }
  json local = example();
  local["metadata"]["name"] = "local";
  local["spec"]["strategy"] = "Local";
  std::string const both = refused(c.post(jobs, local));
  CHECK(both.find("this strategy has no servers") != std::string::npos);
  CHECK(both.find("Local is a job of one worker") != std::string::npos);
  local["spec"].erase("servers");
  local["spec"]["workers"].update({{"min", 1}, {"max", 1}});
  CHECK(c.post(jobs, local)["kind"] == "TrainingJob");
  json broken = definition();
  broken["metadata"]["name"] = "others.elasticdl.org";
  CHECK(refused(c.post(crds, broken)).find("must be spec.names.plural") != std::string::npos);
}

TEST_CASE("the greatest size of a job whose batch follows from it stays") {
  cluster c;
  define(c);
  json job = example();
  job["spec"]["flags"].push_back("--fixed_global_batch");
  REQUIRE(c.post(jobs, job).value("kind", "") == "TrainingJob");
  auto const patched = [&](json const& spec) {
    return c.call("PATCH", jobs + "/mnist", {{"spec", spec}}).value("message", "");
  };
  CHECK(patched({{"workers", {{"max", 12}}}}).find("workers.max is immutable with --fixed_global_batch") !=
        std::string::npos);
  CHECK(patched({{"workers", {{"min", 1}}}}).empty());
}

TEST_CASE("jobs are listed by page over all namespaces, by label and name, and as a table") {
  cluster c({.namespaces = {"default", "team"}});
  define(c);
  std::string const everywhere = "/apis/elasticdl.org/v1alpha1/trainingjobs";
  for (int i = 0; i < 5; ++i) {
    json job = example();
    job["metadata"]["name"] = fmt::format("job-{}", i);
    job["metadata"]["labels"]["parity"] = i % 2 ? "odd" : "even";
    std::string const space = i < 2 ? "default" : "team";
    REQUIRE(c.post("/apis/elasticdl.org/v1alpha1/namespaces/" + space + "/trainingjobs", job)["kind"] ==
            "TrainingJob");
  }
  std::vector<std::string> names;
  std::string next;
  do {
    json const page = c.get(everywhere + "?limit=2&continue=" + next);
    REQUIRE(page["kind"] == "TrainingJobList");
    for (json const& j : page["items"]) names.push_back(j["metadata"]["name"]);
    next = page["metadata"].value("continue", "");
  } while (!next.empty());
  CHECK(names == std::vector<std::string>{"job-0", "job-1", "job-2", "job-3", "job-4"});
  CHECK(c.get(everywhere + "?labelSelector=parity%3Dodd")["items"].size() == 2);
  CHECK(c.get(everywhere + "?fieldSelector=metadata.name%3Djob-3")["items"].size() == 1);
  CHECK(c.get(everywhere + "?fieldSelector=spec.model%3Dmnist")["message"] ==
        "field label not supported: spec.model");
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

TEST_CASE("kubectl get shows the columns of the definition") {
  json job = example();
  job["metadata"].update({{"creationTimestamp", timestamp()}, {"resourceVersion", "1"}});
  job["status"] = {{"phase", "running"},
                   {"replicas", 3},
                   {"workers", {{"desired", 4}}},
                   {"progress", {{"estimatedEnd", "2200-01-01T00:00:00Z"}}},
                   {"spot", {{"pool", "us-east-1a"}}},
                   {"scaleRecords", {{{"reason", "There is room."}}}}};
  json const t = table(defined_by(definition()), {std::make_shared<json const>(job)});
  std::vector<std::string> names;
  for (json const& c : t["columnDefinitions"])
    if (c["priority"] == 0) names.push_back(c["name"]);
  CHECK(names == std::vector<std::string>{"Name", "Phase", "Workers", "Desired", "Min", "Max", "Records",
                                          "Total", "Age"});
  json cells = t["rows"][0]["cells"];
  CHECK(cells[8].get<std::string>().ends_with('s'));  // its age
  cells.erase(8);
  CHECK(cells == json{"mnist", "running", 3, 4, 2, 10, nullptr, nullptr, "mnist", "2200-01-01T00:00:00Z",
                      "us-east-1a", "There is room."});
}

}  // namespace edl::testing::kubernetes
