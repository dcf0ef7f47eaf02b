// SPDX-License-Identifier: Apache-2.0
// `edl submit`, and the other commands about TrainingJobs.
#include "tools/training_jobs.hpp"

#include <filesystem>
#include <fstream>

#include "command/paddle_examples.hpp"
#include "kubernetes/yaml.hpp"

namespace training_jobs_test {

using namespace edl_command;
using job::has;

namespace {

std::string const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

void define(lab::cluster& c, bool is_seen = true) {
  c.post(definitions, lab::read_yaml(std::string(EDL_DOCS) + "/../k8s/trainingjob-crd.yaml").at(0));
  if (is_seen) REQUIRE(c.wait([&] { return c.get(training_jobs).value("kind", "") == "TrainingJobList"; }));
}

/// A cluster that knows TrainingJobs.
struct common : shell {
  explicit common(lab::options o = usual()) : shell(std::move(o)) { define(cluster); }

  cluster_job::answer submit_job(lines more = {}) {
    lines line{"submit",          "--job_name=j",          "--image_name=tiny:1", "--model_def=tiny",
               "--num_ps_pods=1", "--training_data=/data", "--min_workers=2",     "--max_workers=8"};
    line.insert(line.end(), more.begin(), more.end());
    return edl(line);
  }

  json job(std::string const& name = "j") { return cluster.get(training_jobs + "/" + name); }

  /// What a controller says of the job.
  void say(json const& status) {
    json const answer = cluster.call("PATCH", training_jobs + "/j/status", {{"status", status}});
    REQUIRE(answer.value("kind", "") == "TrainingJob");
  }
};

}  // namespace

TEST_CASE("a cluster that does not know TrainingJobs: what needs them says so, the rest goes on") {
  shell s;
  auto const no =
      s.edl({"submit", "--job_name=j", "--image_name=i:1", "--model_def=m", "--training_data=/d"});
  CHECK(no.code == 1);
  CHECK(has(no.text, "`edl controller install`"));
  CHECK(s.edl({"get", "jobs"}).code == 0);
  CHECK(has(s.edl({"doctor"}).text, "note  TrainingJobs"));
  CHECK(has(s.edl({"delete", "j"}).text, "no job 'j'"));
}

TEST_CASE("who may not look at TrainingJobs is told so where there may be any, and has plain jobs") {
  lab::options o = usual();
  o.forbidden = {{"list", "trainingjobs"}, {"get", "trainingjobs"}};
  shell s(std::move(o));
  REQUIRE(s.submit({"--detach"}).code == 0);
  CHECK_FALSE(has(s.edl({"get", "jobs"}).text, "TrainingJobs"));
  define(s.cluster, false);
  auto const table = s.edl({"get", "jobs"});
  CAPTURE(table.text);
  CHECK(table.code == 0);
  CHECK(has(table.text, "TrainingJobs are not shown"));
  CHECK(has(table.text, "`edl rbac --users`"));
  CHECK(s.edl({"describe", "j"}).code == 0);
}

TEST_CASE("a TrainingJob is made once, with the account that there is") {
  common s;
  REQUIRE(s.edl({"rbac", "--apply"}).code == 0);
  auto const tried = s.submit_job({"--dry_run=server"});
  CAPTURE(tried.text);
  CHECK(tried.code == 0);
  CHECK(s.job().value("code", 0) == 404);
  CHECK(s.submit_job({"--dry_run=client"}).code == 0);
  CHECK(has(s.submit_job({"--yaml=-"}).text, "kind: TrainingJob"));
  auto const made = s.submit_job({"--detach"});
  CAPTURE(made.text);
  REQUIRE(made.code == 0);
  json const job = s.job();
  CHECK(job["spec"]["workers"]["min"] == 2);
  CHECK(job["spec"]["master"]["template"]["spec"]["serviceAccountName"] == "edl");
  auto const again = s.submit_job();
  CHECK(again.code == 3);
  CHECK(has(again.text, "job 'j' already exists in namespace 'default'"));
  auto const plain = s.submit();
  CHECK(plain.code == 3);
  CHECK(has(plain.text, "TrainingJob 'j' already exists"));
  CHECK(s.names("pods").empty());
  CHECK(has(s.edl({"__complete", "suspend", ""}).text, "j\n"));
}

TEST_CASE("a plain job's name is taken for a TrainingJob, too") {
  common s;
  REQUIRE(s.submit({"--detach"}).code == 0);
  auto const no = s.submit_job();
  CHECK(no.code == 3);
  CHECK(has(no.text, "of `edl train`"));
  auto const asleep = s.edl({"suspend", "j"});
  CHECK(asleep.code == 1);
  CHECK(has(asleep.text, "is not a TrainingJob"));
  CHECK(s.edl({"scale", "j", "--num_workers=auto"}).code == 2);
}

TEST_CASE("what is wrong is said before a cluster sees it, by its field") {
  common s;
  std::string const file = s.cluster.directory() + "/job.yaml";
  REQUIRE(s.submit_job({"--yaml=" + file}).code == 0);
  std::string const good = job::slurp(file);
  auto const with = [&](std::string const& what, std::string const& instead) {
    std::string text = good;
    auto const at = text.find(what);
    REQUIRE(at != text.npos);
    std::ofstream(file) << text.replace(at, what.size(), instead);
    return s.edl({"submit", "-f", file});
  };
  auto const bounds = with("max: 8", "max: 1");
  CHECK(bounds.code == 2);
  CHECK(has(bounds.text, "spec.workers.min"));
  auto const unknown = with("max: 8", "maximum: 8");
  CHECK(unknown.code == 2);
  CHECK(has(unknown.text, "spec.workers.maximum"));
  auto const flag = with("--training_data", "--trainig_data");
  CHECK(flag.code == 2);
  CHECK(has(flag.text, "did you mean --training_data?"));
  CHECK(job::count(flag.text, "\n") == 1);
  std::ofstream(file) << good;
  auto const beside = s.edl({"submit", "-f", file, "--num_epochs=2"});
  CHECK(beside.code == 2);
  CHECK(has(beside.text, "change it there"));
  CHECK(s.edl({"submit", "-f", file, "--detach"}).code == 0);
  CHECK(s.job()["spec"]["workers"]["max"] == 8);
}

TEST_CASE("a waiting job says why, in the table, described and explained") {
  common s;
  REQUIRE(s.submit_job({"--detach"}).code == 0);
  CHECK(has(s.edl({"get", "jobs"}).text, "no controller has read it yet"));
  s.say({{"observedGeneration", 1},
         {"conditions",
          {{{"type", "Admitted"},
            {"status", "False"},
            {"reason", "NoRoom"},
            {"message", "it needs 3 cores"},
            {"lastTransitionTime", "2026-11-22T10:00:00Z"}}}}});
  auto const late =
      s.edl({"submit", "--job_name=j", "--image_name=i:1", "--model_def=m", "--training_data=/d"});
  CHECK(late.code == 3);
  auto const table = s.edl({"get", "jobs"});
  CAPTURE(table.text);
  CHECK(has(table.text, "Pending"));
  CHECK(has(table.text, "2-8"));
  CHECK(has(table.text, "NoRoom: it needs 3 cores"));
  CHECK(has(s.edl({"explain", "j"}).text, "NoRoom: it needs 3 cores"));
  s.say({{"observedGeneration", 1},
         {"startTime", "2026-11-22T10:01:00Z"},
         {"attempts", 1},
         {"workers", {{"desired", 4}, {"running", 3}, {"pending", 1}}},
         {"progress", {{"records", 1024}, {"totalRecords", 4096}, {"epoch", 0}, {"epochs", 1}}},
         {"scaleRecords",
          {{{"time", "2026-11-22T10:02:00Z"},
            {"from", 2},
            {"to", 4},
            {"reason", "There is room for 4 workers."}}}},
         {"speeds", {{{"workers", 2}, {"recordsPerSecond", 930.5}}}},
         {"conditions",
          {{{"type", "Admitted"},
            {"status", "True"},
            {"reason", "Room"},
            {"message", "It has its room."},
            {"lastTransitionTime", "2026-11-22T10:01:00Z"}},
           {{"type", "Running"},
            {"status", "True"},
            {"reason", "Up"},
            {"message", ""},
            {"lastTransitionTime", "2026-11-22T10:01:00Z"}}}}});
  auto const described = s.edl({"describe", "j"});
  CAPTURE(described.text);
  for (char const* part :
       {"Running", "3 running of 4 (from 2 to 8, as the autoscaler decides)", "1024 of 4096 records",
        "It has its room.", "2 to 4", "There is room for 4 workers.", "930.5", "tiny (train"})
    CHECK(has(described.text, part));
  json const all = json::parse(s.edl({"get", "jobs", "-o", "json"}).text);
  REQUIRE(all.size() == 1);
  CHECK(all[0]["kind"] == "TrainingJob");
  CHECK(all[0]["workers"] == json{{"running", 3}, {"wanted", 4}});
  CHECK(has(s.edl({"explain", "j"}).text, "its workers became 4 instead of 2: There is room for 4 workers."));
}

TEST_CASE("it is scaled within its bounds, given back, suspended, resumed and deleted") {
  common s;
  played_controller const plays(s.cluster);
  REQUIRE(s.submit_job().code == 0);
  auto const scaled = s.edl({"scale", "j", "--num_workers=5"});
  CAPTURE(scaled.text);
  CHECK(scaled.code == 0);
  CHECK(has(scaled.text, "workers=5"));
  CHECK(s.job()["spec"]["workers"]["replicas"] == 5);
  CHECK(has(s.edl({"describe", "j"}).text, "(5 by hand, from 2 to 8)"));
  auto const above = s.edl({"scale", "j", "--num_workers=9"});
  CHECK(above.code == 2);
  CHECK(has(above.text, "may have 2 to 8 workers"));
  auto const servers = s.edl({"scale", "j", "--num_ps_pods=2"});
  CHECK(servers.code == 2);
  CHECK(has(servers.text, "a TrainingJob keeps its servers"));
  auto const back = s.edl({"scale", "j", "--num_workers=auto"});
  CHECK(back.code == 0);
  CHECK(has(back.text, "the autoscaler decides from 2 to 8"));
  CHECK_FALSE(s.job()["spec"]["workers"].contains("replicas"));
  auto const asleep = s.edl({"suspend", "j", "--wait"});
  CAPTURE(asleep.text);
  CHECK(asleep.code == 0);
  CHECK(has(asleep.text, "is suspended"));
  CHECK(has(s.edl({"get", "jobs"}).text, "Suspended"));
  CHECK(has(s.edl({"explain", "j"}).text, "`edl resume j`"));
  CHECK(has(s.edl({"explain", "j", "-n", "default"}).text, "`edl resume j -n default`"));
  CHECK(s.edl({"resume", "j", "--wait"}).code == 0);
  CHECK(has(s.edl({"get", "jobs"}).text, "Running"));
  for (char const* command : {"delete", "suspend", "scale"}) {  // without a name the path is that of all
    auto const none = s.edl({command, ""});
    CHECK(none.code == 2);
    CHECK(has(none.text, "an argument is empty"));
  }
  CHECK(s.job().contains("spec"));
  auto const gone = s.edl({"delete", "j", "--wait"});
  CHECK(gone.code == 0);
  CHECK(s.job().value("code", 0) == 404);
  CHECK(s.edl({"suspend", "j"}).code == 1);
}

TEST_CASE("a job that would lose what it has done is suspended only by who says so") {
  common s;
  REQUIRE(s.submit_job({"--detach"}).code == 0);
  CHECK(s.edl({"suspend", "j"}).code == 0);  // it has done nothing yet
  CHECK(s.edl({"resume", "j"}).code == 0);
  s.say({{"observedGeneration", 1}, {"startTime", "2026-11-22T10:01:00Z"}, {"conditions", json::array()}});
  auto const no = s.edl({"suspend", "j"});
  CAPTURE(no.text);
  CHECK(no.code == 2);
  CHECK(has(no.text, "no --checkpoint_dir"));
  CHECK(has(no.text, "`edl suspend j --lose_progress`"));
  CHECK(has(s.edl({"suspend", "j", "-n", "default"}).text, "`edl suspend j -n default --lose_progress`"));
  CHECK_FALSE(s.job()["spec"].value("suspend", false));
  auto const yes = s.edl({"suspend", "j", "--lose_progress"});
  CHECK(yes.code == 0);
  CHECK(has(yes.text, "lets it begin anew"));
  CHECK(s.job()["spec"]["suspend"] == true);
}

TEST_CASE("a size request that no controller reads is said to stay") {
  common s;
  REQUIRE(s.submit_job({"--detach"}).code == 0);
  auto const alone = s.edl({"scale", "j", "--num_workers=3", "--timeout=1"});
  CHECK(alone.code == 1);
  CHECK(has(alone.text, "no controller has read it; `edl doctor`"));
  CHECK(s.job()["spec"]["workers"]["replicas"] == 3);
}

TEST_CASE("with --wait the command ends as the TrainingJob does") {
  common s;
  for (bool const well : {true, false}) {
    CAPTURE(well);
    job::run waits(
        {"submit", "--job_name=j", "--image_name=i:1", "--model_def=m", "--training_data=/d", "--wait"},
        s.with());
    REQUIRE(waits.says("job j is submitted"));
    s.say({{"observedGeneration", 1},
           {"conditions",
            {{{"type", well ? "Succeeded" : "Failed"},
              {"status", "True"},
              {"reason", "Ended"},
              {"message", "all records are trained"},
              {"lastTransitionTime", "2026-11-22T10:00:00Z"}}}}});
    CHECK(waits.wait(60s) == (well ? 0 : 1));
    INFO(waits.log());
    CHECK(has(waits.log(), well ? "job j is done" : "job 'j' failed: Ended: all records are trained"));
    REQUIRE(s.edl({"delete", "j", "--wait"}).code == 0);
  }
}

TEST_CASE("a job of PaddlePaddle is a TrainingJob where the cluster knows them, and a plain job elsewhere") {
  std::string text = paddle::example_job;
  auto const replace = [&](std::string const& what, std::string const& by) {
    auto const at = text.find(what);
    REQUIRE(at != text.npos);
    text.replace(at, what.size(), by);
  };
  replace("paddlepaddle/paddlecloud-job", "tiny:1");
  replace("passes: 50", "passes: 1");
  replace("  trainer:\n", "  volumes: [{name: d, hostPath: {path: \"" +
                              std::filesystem::path(job::data().training).parent_path().string() +
                              "\"}}]\n  VolumeMounts: [{name: d, mountPath: /data}]\n  trainer:\n");
  shell s;
  std::string const file = s.cluster.directory() + "/paddle.yaml";
  std::ofstream(file) << text;
  lines const line{"train", "-f", file, "--training_data=/data/train", "--image_pull_policy=Never"};
  auto const nameless = s.edl(line);
  CHECK(nameless.code == 2);
  CHECK(has(nameless.text, "--model_def names it"));
  lines named = line;
  named.insert(named.end(), {"--model_def=tiny", "--wait"});
  auto const plain = s.edl(named, 180s);
  CAPTURE(plain.text);
  CHECK(plain.code == 0);
  CHECK(has(plain.text, "a plain job of 2 workers"));
  CHECK(has(plain.text, "job example is done"));
  CHECK(has(s.cluster.log("default", "elasticdl-example-master"), "counted once"));
  REQUIRE(s.edl({"delete", "example", "--wait"}).code == 0);

  define(s.cluster);
  named.back() = "--detach";
  auto const shared = s.edl(named);
  CAPTURE(shared.text);
  CHECK(shared.code == 0);
  json const made = s.cluster.get(training_jobs + "/example");
  CHECK(made["spec"]["workers"]["max"] == 10);
  CHECK(s.names("pods").empty());
}

TEST_CASE("doctor says whether anybody looks after TrainingJobs") {
  common s;
  auto const ill = s.edl({"doctor"});
  CAPTURE(ill.text);
  CHECK(has(ill.text, "ok    TrainingJobs"));
  CHECK(has(ill.text, "controller"));
}

TEST_CASE("the resource and its controller are installed, and installed again") {
  lab::options o = usual();
  o.establish_delay = 500ms;
  shell s(std::move(o));
  CHECK(s.edl({"controller", "install", "--dry_run=server"}).code == 0);
  CHECK(s.cluster.get(definitions + "/trainingjobs.elasticdl.org").value("code", 0) == 404);
  for (int i = 0; i < 2; ++i) {
    auto const made = s.edl({"controller", "install"});
    CAPTURE(made.text);
    CHECK(made.code == 0);
    CHECK(has(made.text, "CustomResourceDefinition trainingjobs.elasticdl.org exists"));
    CHECK(s.cluster.get(training_jobs).value("kind", "") == "TrainingJobList");  // at once
  }
  CHECK(has(s.edl({"controller", "install", "--yaml=-"}).text, "kind: CustomResourceDefinition"));
}

}  // namespace training_jobs_test
