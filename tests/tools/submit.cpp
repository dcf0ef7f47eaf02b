// SPDX-License-Identifier: Apache-2.0
// `edl train`, `get`, `describe`, `delete`, and what they say when something is wrong.
#include <filesystem>
#include <fstream>

#include "tools/edl.hpp"

namespace submit_test {

using namespace edl_command;
using namespace nlohmann::literals;
using job::has;

TEST_CASE("a job is submitted, runs, is listed and described, and goes as a whole") {
  shell s;
  auto const submitted = s.submit({"--num_epochs=1000"}, 2000);
  CAPTURE(submitted.text);
  REQUIRE(submitted.code == 0);
  CHECK(has(submitted.text, "edl logs j -f"));
  for (char const* pod : {"ps-0", "worker-0", "worker-1"}) REQUIRE(s.runs(pod));

  json const master = s.cluster.get(pods + "/elasticdl-j-master");
  for (char const* path : {"/api/v1/namespaces/default/services/elasticdl-j-master",
                           "/api/v1/namespaces/default/secrets/elasticdl-j"}) {
    json const owned = s.cluster.get(path);
    CHECK(owned["metadata"]["ownerReferences"][0]["uid"] == master["metadata"]["uid"]);
  }

  auto const table = s.edl({"get", "jobs"});
  CHECK(table.code == 0);
  CHECK(has(table.text, "Running   2/2       1/1"));
  auto const listed = s.edl({"get", "jobs", "-A", "-o", "json"});
  json const list = json::parse(listed.text);
  REQUIRE(list.size() == 1);
  CHECK(list[0]["name"] == "j");
  CHECK(list[0]["namespace"] == "default");
  CHECK(list[0]["workers"] == json{{"running", 2}, {"wanted", 2}});
  auto const described = s.edl({"describe", "j"});
  for (char const* part :
       {"elasticdl-j-ps-0", "elasticdl-j-worker-1", "tiny train --job_name=j", "cpu=1,memory=128Mi"})
    CHECK(has(described.text, part));
  CHECK(json::parse(s.edl({"describe", "j", "-o", "json"}).text)["pods"].size() == 4);

  auto const again = s.submit();
  CHECK(again.code == 3);
  CHECK(has(again.text, "job 'j' already exists in namespace 'default'"));
  CHECK(has(again.text, "edl delete j"));
  CHECK(s.runs("master"));  // it has lost nothing

  auto const gone = s.edl({"delete", "j", "--wait"});
  CHECK(gone.code == 0);
  CHECK(s.names("pods").empty());
  CHECK(s.names("services").empty());
  CHECK(s.names("secrets").empty());
  auto const none = s.edl({"delete", "j"});
  CHECK(none.code == 1);
  CHECK(has(none.text, "no job 'j' in namespace 'default'"));
}

TEST_CASE("with --wait the command ends as the job does") {
  shell s;
  auto const good = s.submit({"--wait"});
  CAPTURE(good.text);
  CHECK(good.code == 0);
  CHECK(has(good.text, "job j is done"));
  auto const bad = s.submit({"--job_name=k", "--wait", "--training_data=/data/none"});
  CAPTURE(bad.text);
  CHECK(bad.code == 1);
  CHECK(has(bad.text, "none"));
}

TEST_CASE("with --wait a server that is away before the master starts is waited for") {
  lab::options o = usual();
  o.image_start = 2s;
  shell s(std::move(o));
  job::run waits(
      {"train", "--job_name=j", "--image_name=tiny:1", "--model_def=tiny", "--image_pull_policy=Never",
       "--training_data=/data/train", "--num_ps_pods=1", "--num_workers=1", "--request_timeout=1", "--wait",
       "--volume=host_path=" + std::filesystem::path(job::data().training).parent_path().string() +
           ",mount_path=/data"},
      s.with());
  REQUIRE(waits.says("job j is submitted"));
  s.cluster.close();
  CHECK(waits.says("asking again"));
  s.cluster.open();
  CHECK(waits.wait(120s) == 0);
  INFO(waits.log());
  CHECK(has(waits.log(), "job j is done"));
}

TEST_CASE("a job is submitted again while the one of its name is being removed") {
  shell s;
  REQUIRE(s.submit({"--num_epochs=20"}, 2000).code == 0);
  REQUIRE(s.runs("worker-1"));
  REQUIRE(s.edl({"delete", "j"}).code == 0);
  auto const again = s.submit({"--num_epochs=1", "--wait"});
  CAPTURE(again.text);
  CHECK(again.code == 0);
  CHECK(has(again.text, "job 'j' is being removed: waiting until its name is free"));
  // Nothing of the first one is told of the second.
  auto const why = s.edl({"explain", "j", "--all"});
  CAPTURE(why.text);
  CHECK_FALSE(has(why.text, "is shutting down"));
}

TEST_CASE("a job whose master is away is not said to run") {
  shell s;
  REQUIRE(s.submit({"--num_epochs=20"}, 2000).code == 0);
  REQUIRE(s.runs("worker-1"));
  auto const restarts = [&] {
    json const status = s.cluster.get(pods + "/elasticdl-j-master")["status"];
    return status.value("/containerStatuses/0/restartCount"_json_pointer, 0);
  };
  s.cluster.kill("default", "elasticdl-j-master", 9);
  REQUIRE(s.cluster.wait([&] { return restarts() == 1; }));
  s.cluster.kill("default", "elasticdl-j-master", 9);  // which a kubelet answers with a pause
  REQUIRE(s.cluster.wait([&] {
    json const status = s.cluster.get(pods + "/elasticdl-j-master")["status"];
    return status.value("/containerStatuses/0/state/waiting/reason"_json_pointer, "") == "CrashLoopBackOff";
  }));
  auto const table = s.edl({"get", "jobs"});
  CAPTURE(table.text);
  CHECK(has(table.text, "Restarting"));
  CHECK(has(table.text, "CrashLoopBackOff"));
  CHECK_FALSE(has(table.text, "Running"));
}

TEST_CASE("a user who may not look at service accounts is told which one is taken") {
  lab::options o = usual();
  o.forbidden = {{"get", "serviceaccounts"}};
  shell s(std::move(o));
  auto const none = s.submit();
  CAPTURE(none.text);
  CHECK(none.code == 3);
  CHECK(has(none.text, "the master runs as 'edl', unless --service_account names another"));
  CHECK(has(none.text, "serviceaccount \"edl\" not found"));
  CHECK(has(none.text, "`edl rbac --apply -n default`"));
  REQUIRE(s.edl({"rbac", "--apply"}).code == 0);
  REQUIRE(s.submit().code == 0);
  CHECK(s.cluster.get(pods + "/elasticdl-j-master")["spec"]["serviceAccountName"] == "edl");
}

TEST_CASE("what is only tried leaves nothing") {
  shell s;
  auto const server = s.submit({"--dry_run=server"});
  CAPTURE(server.text);
  CHECK(server.code == 0);
  CHECK(s.submit({"--dry-run=client"}).code == 0);
  auto const printed = s.submit({"--yaml=-"});
  CHECK(printed.code == 0);
  CHECK(has(printed.text, "kind: Secret"));
  CHECK(has(printed.text, "kind: Service"));
  CHECK(has(printed.text, "kind: Pod"));
  CHECK(s.names("pods").empty());
  CHECK(s.names("secrets").empty());
}

TEST_CASE("what no time mends ends at once, in the cluster's words, and leaves nothing") {
  shell s;
  auto const never = s.submit({"--image_name=tiny:2"});
  CHECK(never.code == 1);
  CHECK(has(never.text, "Container image \"tiny:2\" is not present with pull policy of Never"));
  CHECK(has(never.text, "--image_pull_policy=IfNotPresent"));
  CHECK(s.cluster.wait([&] { return s.names("pods").empty(); }));
  CHECK(s.names("secrets").empty());

  auto const program = s.submit({"--model_def=gigantic"});
  CHECK(program.code == 1);
  CHECK(has(program.text, "executable file not found"));
}

TEST_CASE("a job that finds no room stays and waits, and explain says for what") {
  lab::options o = usual();
  o.nodes = {{.name = "small", .cpu = "2", .memory = "4Gi"}};
  shell s(std::move(o));
  auto const waits = s.submit({"--master_resource_request=cpu=3,memory=64Mi", "--start_timeout=1"});
  CHECK(waits.code == 1);
  CHECK(has(waits.text, "Insufficient cpu"));
  CHECK(has(waits.text, "the job stays"));
  auto const why = s.edl({"explain", "j"});
  CHECK(why.code == 0);
  CHECK(has(why.text, "waits for room"));
  CHECK(has(why.text, "Insufficient cpu"));
  CHECK(has(s.edl({"get", "jobs"}).text, "Pending"));
}

TEST_CASE("a refusal is the server's own words, exit code 3, and nothing is left") {
  lab::options o = usual();
  o.forbidden = {{"create", "pods"}};
  shell s(std::move(o));
  auto const forbidden = s.submit();
  CAPTURE(forbidden.text);
  CHECK(forbidden.code == 3);
  CHECK(has(forbidden.text, "forbidden"));
  CHECK(has(forbidden.text, "cannot create resource \"pods\""));
  CHECK(s.names("secrets").empty());
  CHECK(s.names("services").empty());

  auto const priority = s.submit({"--master_pod_priority=no-such"});
  CHECK(priority.code == 3);
  auto const space = s.edl({"get", "jobs", "-n", "default", "--context=none"});
  CHECK(space.code == 2);
  CHECK(has(space.text, "none"));
  std::string const nobody = s.cluster.directory() + "/nobody";
  std::string config = job::slurp(s.cluster.kubeconfig());
  auto const token = config.find("tokenFile:");
  REQUIRE(token != config.npos);
  std::ofstream(nobody) << config.replace(token, config.find('}', token) - token, "token: nobody");
  auto const unknown = s.edl({"get", "jobs", "--kubeconfig=" + nobody});
  CHECK(unknown.code == 3);
  CHECK(has(unknown.text, "Unauthorized"));
}

TEST_CASE("a server that is not there is exit code 4; a kubeconfig that is wrong is 2") {
  shell s;
  s.cluster.close();
  auto const away = s.edl({"get", "jobs", "--request_timeout=1"});
  CAPTURE(away.text);
  CHECK(away.code == 4);
  CHECK(has(away.text, "127.0.0.1"));

  job::scratch const dir;
  auto const with = [&](std::string const& content) {
    std::ofstream(dir / "config") << content;
    return s.edl({"get", "jobs", "--kubeconfig=" + (dir / "config")});
  };
  for (std::string const& content : {std::string("{"), std::string("apiVersion: v1\nkind: Config\n"),
                                     std::string("apiVersion: v1\nkind: Config\ncurrent-context: "
                                                 "a\ncontexts: [{name: a, context: {cluster: c}}]\n")}) {
    auto const wrong = with(content);
    CAPTURE(wrong.text);
    CHECK(wrong.code == 2);
    CHECK(has(wrong.text, "config"));
    CHECK(job::count(wrong.text, "\n") == 1);
  }
  CHECK(s.edl({"get", "jobs", "--kubeconfig=/no/such"}).code == 2);
}

TEST_CASE("wrong usage is exit code 2 and one line") {
  shell s;
  for (auto const& [line, part] : std::vector<std::pair<lines, std::string>>{
           {{"trian"}, "did you mean train?"},
           {{"get", "pods"}, "expected jobs"},
           {{"get"}, "kind of object"},
           {{"logs"}, "the job's name is missing"},
           {{"logs", "j", "--folow"}, "did you mean --follow?"},
           {{"logs", "j", "--role=boss"}, "expected master, ps, worker"},
           {{"scale", "j"}, "give the new size"},
           {{"scale", "j", "--num_workers=0"}, "--num_workers=0"},
           {{"data", "inspct", "x"}, "did you mean inspect?"},
           {{"completion", "tcsh"}, "expected bash, zsh or fish"},
           {{"get", "jobs", "-o", "xml"}, "expected table, json, yaml"},
       }) {
    auto const a = s.edl(line);
    CAPTURE(a.text);
    CHECK(a.code == 2);
    CHECK(has(a.text, part));
    CHECK(job::count(a.text, "\n") == 1);
  }
  CHECK(s.edl({}).code == 2);
  CHECK(s.edl({"--help"}).code == 0);
  CHECK(has(s.edl({"--version"}).text, "edl "));
}

}  // namespace submit_test
