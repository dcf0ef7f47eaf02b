// SPDX-License-Identifier: Apache-2.0
// `edl sweep`: jobs of a cluster whose masters are played, and once whole ones.
#include <filesystem>
#include <fstream>

#include "edl/app/sweep_plan.hpp"
#include "tools/edl.hpp"

namespace sweep_test {

using namespace edl_command;
using job::has;

namespace {

lab::options played() {
  lab::options o = usual();
  o.run_pods = false;
  return o;
}

/// A folder of a user, and a cluster.
struct sweeper : shell {
  explicit sweeper(lab::options o = played()) : shell(std::move(o)) {}

  job::scratch dir;

  lines line(lines const& more) const {
    lines all{"sweep",
              "--job_name=s",
              "--image_name=tiny:1",
              "--model_def=tiny",
              "--image_pull_policy=Never",
              "--training_data=/data/train",
              "--validation_data=/data/test",
              "--num_workers=1",
              "--minibatch_size=32",
              "--num_minibatches_per_task=4",
              "--max_step=48",
              "--by=accuracy",
              "--request_timeout=1",
              "--output=" + dir / "sweep"};
    for (std::string const& one : more)
      if (auto const at = one.find('='); at != one.npos)
        std::erase_if(all,
                      [&](std::string const& usual) { return usual.starts_with(one.substr(0, at + 1)); });
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  std::string master(std::string const& of) const {
    return edl_command::pods + "/elasticdl-" + of + "-master";
  }
  bool is_there(std::string const& of) { return cluster.get(master(of)).value("kind", "") == "Pod"; }
  bool comes(std::string const& of) {
    return cluster.wait([&] { return is_there(of); }, 60s);
  }
  bool goes(std::string const& of) {
    return cluster.wait([&] { return !is_there(of); }, 60s);
  }
  std::string uid(std::string const& of) { return cluster.get(master(of)).at("metadata").at("uid"); }

  void report(std::string const& of, double accuracy) {
    json const text{{"version", 48},
                    {"evaluation", {{"version", 48}, {"metrics", {{"accuracy", accuracy}}}}},
                    {"over", true}};
    cluster.call("PATCH", master(of), {{"metadata", {{"annotations", {{"elasticdl/report", text.dump()}}}}}});
  }
  void set_phase(std::string const& of, std::string const& phase, json const& state = nullptr) {
    json status{{"phase", phase}};
    if (!state.is_null())
      status["containerStatuses"] = {
          {{"name", "elasticdl-" + of + "-master"}, {"ready", false}, {"restartCount", 0}, {"state", state}}};
    cluster.call("PATCH", master(of) + "/status", {{"status", status}});
  }
  void end_well(std::string const& of, double accuracy) {
    report(of, accuracy);
    set_phase(of, "Succeeded");
  }

  std::vector<edl::app::trial> trials() const {
    return edl::app::list_from_json(job::slurp(dir / "sweep/sweep.json"), "list").trials;
  }
};

char const* const three = "--grid=rate=0.1,0.2,0.3";

}  // namespace

TEST_CASE("a sweep has at most so many jobs at once, removes those that are done, and tells the best") {
  sweeper s;
  job::run sweep(s.line({three, "--parallel=2"}), s.with());
  CAPTURE(sweep.log());
  REQUIRE(s.comes("s-0"));
  REQUIRE(s.comes("s-1"));
  json const pod = s.cluster.get(s.master("s-1"));
  CHECK(pod["metadata"]["labels"]["elasticdl-sweep"] == "s");
  CHECK(has(pod["spec"]["containers"][0].dump(), "--set=rate=0.2"));
  CHECK(has(pod["spec"]["containers"][0].dump(), "--max_step=48"));
  s.end_well("s-0", 0.5);
  REQUIRE(s.comes("s-2"));
  CHECK(s.goes("s-0"));
  s.end_well("s-1", 0.9);
  CHECK(s.goes("s-1"));
  s.end_well("s-2", 0.7);
  CHECK(sweep.wait() == 0);
  CHECK(has(sweep.log(), "the best is trial 1: --set \"rate=0.2\""));
  CHECK(s.cluster.wait([&] { return s.names("pods").empty() && s.names("secrets").empty(); }));
  auto const all = s.trials();
  REQUIRE(all.size() == 3);
  CHECK(all[1].value == 0.9);
  CHECK(all[2].steps == 48);

  auto const again = s.edl(s.line({three, "--parallel=2"}));
  CHECK(again.code == 0);
  CHECK(has(again.text, "the best is trial 1"));
  CHECK(s.names("pods").empty());
  auto const other = s.edl(s.line({"--grid=rate=0.5"}));
  CHECK(other.code == 2);
  CHECK(has(other.text, "holds another sweep"));
}

TEST_CASE("a sweep that was interrupted says what goes on, finds it again, and makes nothing twice") {
  sweeper s;
  lines const line = s.line({three, "--parallel=2", "--keep_jobs"});
  {
    job::run sweep(line, s.with());
    REQUIRE(sweep.says("job s-1 is submitted"));
    ::kill(sweep.pid(), SIGINT);
    CHECK(sweep.wait() == 128 + SIGINT);
    CHECK(has(sweep.log(), "2 of its jobs go on in the cluster: s-0, s-1"));
    CHECK(has(sweep.log(), "`edl delete s-0 s-1 -n default` removes them"));
  }
  std::string const first = s.uid("s-0"), second = s.uid("s-1");
  s.end_well("s-0", 0.5);  // while nobody looks
  job::run sweep(line, s.with());
  CHECK(sweep.says("job s-1 exists already; waiting for it"));
  CHECK(sweep.says("trial 0 (rate=0.1), 48 steps: accuracy 0.5"));
  REQUIRE(s.comes("s-2"));
  CHECK(s.uid("s-0") == first);
  CHECK(s.uid("s-1") == second);
  auto const beside = s.edl(line);  // in the same directory
  CHECK(beside.code == 1);
  CHECK(has(beside.text, "sweep s"));
  s.end_well("s-1", 0.9);
  s.end_well("s-2", 0.7);
  CHECK(sweep.wait() == 0);
  CHECK(s.names("pods").size() == 3);
}

TEST_CASE("the next round of a trial takes the place of the last, also of one that stayed") {
  sweeper s;
  job::run sweep(s.line({three, "--parallel=3", "--halving=3", "--first_steps=16", "--keep_jobs",
                         "--checkpoint_dir=/out/s", "--volume=claim_name=c,mount_path=/out"}),
                 s.with());
  REQUIRE(sweep.says("job s-2 is submitted"));
  std::string const first = s.uid("s-1");
  s.end_well("s-0", 0.5);
  s.end_well("s-1", 0.9);
  s.end_well("s-2", 0.7);
  REQUIRE(sweep.says("job s-1 is submitted", 2));
  CHECK(s.uid("s-1") != first);
  CHECK(has(s.cluster.get(s.master("s-1"))["spec"]["containers"][0].dump(), "--max_step=48"));
  s.end_well("s-1", 0.95);
  CHECK(sweep.wait() == 0);
  CHECK(has(sweep.log(), "trial 1 (rate=0.2), 48 steps: accuracy 0.95"));
  CHECK(s.names("pods").size() == 3);
  CHECK(s.trials()[0].steps == 16);
}

TEST_CASE("a job that fails, cannot start or is deleted is a row that says so, and runs again another day") {
  sweeper s;
  lines const line = s.line({"--grid=rate=0.1,0.2,0.3,0.4", "--parallel=4"});
  {
    job::run sweep(line, s.with());
    REQUIRE(sweep.says("job s-3 is submitted"));
    s.set_phase("s-0", "Failed", {{"terminated", {{"exitCode", 137}, {"reason", "OOMKilled"}}}});
    s.cluster.remove(s.master("s-1"));
    s.set_phase(
        "s-2", "Pending",
        {{"waiting", {{"reason", "ErrImageNeverPull"}, {"message", "image \"tiny:1\" is not there"}}}});
    s.end_well("s-3", 0.4);
    CHECK(sweep.wait() == 0);
    CAPTURE(sweep.log());
    CHECK(has(sweep.log(), "trial 0 (rate=0.1), 48 steps: failed (OOMKilled"));
    CHECK(has(sweep.log(), "see `edl logs s-0`"));
    CHECK(has(sweep.log(), "trial 1 (rate=0.2), 48 steps: failed (somebody has deleted its job)"));
    CHECK(has(sweep.log(), "image \"tiny:1\" is not there"));
    CHECK(has(sweep.log(), "the best is trial 3"));
  }
  CHECK(s.trials()[1].failure == "somebody has deleted its job");
  CHECK(s.cluster.wait([&] { return s.names("pods") == lines{"elasticdl-s-0-master"}; }));
  std::string const failed = s.uid("s-0");
  job::run again(line, s.with());
  REQUIRE(again.says("job s-2 is submitted"));
  REQUIRE(again.says("job s-0 is submitted"));
  CHECK(s.uid("s-0") != failed);
  for (char const* name : {"s-0", "s-1", "s-2"}) s.end_well(name, 0.6);
  CHECK(again.wait() == 0);
  CHECK(has(again.log(), "the best is trial 0"));
  CHECK_FALSE(has(again.log(), "s-3"));
}

TEST_CASE("a trial that fails in a later round begins anew in an empty folder, from the first round") {
  sweeper s;
  lines const line = s.line({"--grid=rate=0.1,0.2", "--parallel=2", "--halving=2", "--first_steps=24",
                             "--checkpoint_dir=/out/s", "--volume=claim_name=c,mount_path=/out"});
  auto const command = [&](char const* name) {
    return s.cluster.get(s.master(name))["spec"]["containers"][0].dump();
  };
  {
    job::run sweep(line, s.with());
    REQUIRE(sweep.says("job s-1 is submitted"));
    s.end_well("s-0", 0.5);
    s.end_well("s-1", 0.9);
    REQUIRE(sweep.says("job s-1 is submitted", 2));
    CHECK(has(command("s-1"), "--checkpoint_dir=/out/s/trial-1\""));
    s.set_phase("s-1", "Failed", {{"terminated", {{"exitCode", 137}, {"reason", "OOMKilled"}}}});
    CHECK(sweep.wait() == 0);
  }
  job::run again(line, s.with());
  CAPTURE(again.log());
  REQUIRE(again.says("job s-1 is submitted"));
  CHECK(has(command("s-1"), "--max_step=24"));
  CHECK(has(command("s-1"), "--checkpoint_dir=/out/s/trial-1-attempt-1\""));
  s.end_well("s-1", 0.8);
  REQUIRE(again.says("job s-1 is submitted", 2));
  CHECK(has(command("s-1"), "--max_step=48"));
  CHECK(has(command("s-1"), "--checkpoint_dir=/out/s/trial-1-attempt-1\""));
  s.end_well("s-1", 0.95);
  CHECK(again.wait() == 0);
  CHECK(has(again.log(), "its model: /out/s/trial-1-attempt-1/best"));
  CHECK(s.trials()[1].attempt == 1);
}

TEST_CASE("a directory that cannot be made is told with its flag, before any job is submitted") {
  sweeper s;
  std::ofstream(s.dir / "file") << "no directory";
  auto const refused = s.edl(s.line({three, "--output=" + s.dir / "file/sweep"}));
  CHECK(refused.code == 2);
  CHECK(has(refused.text, "--output=" + s.dir / "file/sweep" +
                              ": cannot create this directory: Not a directory; name a writable one"));
  CHECK(s.names("pods").empty());
}

TEST_CASE("where every trial fails, so does the sweep; a metric that is not the model's is named") {
  sweeper s;
  job::run sweep(s.line({"--grid=rate=0.1", "--by=auc"}), s.with());
  REQUIRE(s.comes("s-0"));
  s.end_well("s-0", 0.5);
  CHECK(sweep.wait() == 1);
  CHECK(has(sweep.log(), "--by=auc: the model's metrics are accuracy"));
  CHECK(has(sweep.log(), "every trial failed"));
}

TEST_CASE("no round follows one in which every trial has failed") {
  sweeper s;
  job::run sweep(s.line({"--grid=rate=0.1,0.2", "--halving=2", "--first_steps=24", "--checkpoint_dir=/out/s",
                         "--volume=claim_name=c,mount_path=/out", "--by=auc"}),
                 s.with());
  for (char const* name : {"s-0", "s-1"}) {
    REQUIRE(s.comes(name));
    s.end_well(name, 0.5);
  }
  CHECK(sweep.wait() == 1);
  CHECK(has(sweep.log(), "every trial failed"));
  CHECK_FALSE(has(sweep.log(), "round 2"));
}

TEST_CASE("what the sweep searches cannot be set besides, and no job is submitted") {
  sweeper s;
  for (char const* flag : {"--set=rate=0.3", "--model_params=depth=1;rate=0.3"}) {
    auto const refused = s.edl(s.line({three, flag}));
    CHECK(refused.code == 2);
    CHECK(has(refused.text, "--set rate=0.3: the sweep searches rate; give one of the two"));
  }
  CHECK(s.names("pods").empty());
}

TEST_CASE("a name that another has is refused; what a broken submission left behind is replaced") {
  sweeper s;
  REQUIRE(s.submit({"--job_name=s-1", "--detach"}).code == 0);
  job::run refused(s.line({three, "--parallel=2"}), s.with());
  CHECK(refused.wait() == 3);
  CAPTURE(refused.log());
  CHECK(has(refused.log(), "job 's-1' in namespace 'default' does not belong to this sweep"));
  CHECK(has(refused.log(), "1 of its jobs go on in the cluster: s-0"));
  CHECK(s.is_there("s-1"));
  REQUIRE(s.edl({"delete", "s-1", "--wait"}).code == 0);

  // The secret of a submission that ended before it made a pod: nothing owns it.
  json secret = s.cluster.get("/api/v1/namespaces/default/secrets/elasticdl-s-0");
  REQUIRE(s.edl({"delete", "s-0", "--wait"}).code == 0);
  for (char const* field : {"uid", "resourceVersion", "ownerReferences", "creationTimestamp"})
    secret["metadata"].erase(field);
  std::string const token = secret["data"]["token"];
  REQUIRE(s.cluster.post("/api/v1/namespaces/default/secrets", secret).value("kind", "") == "Secret");
  job::run sweep(s.line({"--grid=rate=0.1,0.2,0.3", "--parallel=1"}), s.with());
  REQUIRE(sweep.says("job s-0 is submitted"));
  CHECK(s.cluster.get("/api/v1/namespaces/default/secrets/elasticdl-s-0")["data"]["token"] != token);

  // And one that lost its secret cannot start: it is made anew.
  std::string const before = s.uid("s-0");
  ::kill(sweep.pid(), SIGTERM);
  CHECK(sweep.wait() == 128 + SIGTERM);
  s.cluster.remove("/api/v1/namespaces/default/secrets/elasticdl-s-0");
  job::run anew(s.line({"--grid=rate=0.1,0.2,0.3", "--parallel=1"}), s.with());
  REQUIRE(anew.says("job s-0 is submitted"));
  CHECK(s.uid("s-0") != before);
}

TEST_CASE("an API server that refuses, goes away and tells late ends no sweep") {
  sweeper s;
  s.cluster.fail_path("/secrets", 4, 503);
  s.cluster.fail_path("/pods", 6, 429);
  job::run sweep(s.line({three, "--parallel=3", "--request_timeout=0"}), s.with());
  REQUIRE(sweep.says("job s-2 is submitted"));
  CHECK(has(sweep.log(), "asking again"));
  std::string const uid = s.uid("s-0");
  std::size_t const before = job::count(sweep.log(), "asking again");
  s.cluster.close();
  CHECK(sweep.says("asking again", before + 1));
  s.cluster.open();
  s.set_phase("s-0", "Succeeded");  // its report comes late
  s.end_well("s-1", 0.9);
  REQUIRE(sweep.says("accuracy 0.9"));
  s.report("s-0", 0.5);
  REQUIRE(sweep.says("accuracy 0.5"));
  s.end_well("s-2", 0.7);
  CHECK(sweep.wait() == 0);
  CHECK(has(sweep.log(), "the best is trial 1"));
}

TEST_CASE("what the cluster does not allow ends the sweep with its words") {
  lab::options o = played();
  o.forbidden = {{"create", "pods"}};
  sweeper s(std::move(o));
  auto const no = s.edl(s.line({three}));
  CHECK(no.code == 3);
  CHECK(has(no.text, "cannot create resource \"pods\""));
  CHECK(s.names("secrets").empty());
}

TEST_CASE("a namespace whose quota is used up lets a trial wait for another, and a sweep without any end") {
  sweeper s;
  auto const quota = [&](char const* most) {
    json const made =
        s.cluster.post("/api/v1/namespaces/default/resourcequotas", {{"apiVersion", "v1"},
                                                                     {"kind", "ResourceQuota"},
                                                                     {"metadata", {{"name", "few"}}},
                                                                     {"spec", {{"hard", {{"pods", most}}}}}});
    REQUIRE(made.value("kind", "") == "ResourceQuota");
  };
  quota("1");
  job::run sweep(s.line({"--grid=rate=0.1,0.2", "--parallel=2"}), s.with());
  CAPTURE(sweep.log());
  REQUIRE(sweep.says("edl: job s-1 waits: "));
  CHECK(has(sweep.log(), "exceeded quota: few, requested: pods="));
  CHECK(sweep.says("job s-0 is submitted"));
  CHECK_FALSE(s.is_there("s-1"));
  s.end_well("s-0", 0.5);
  REQUIRE(sweep.says("job s-1 is submitted"));
  s.end_well("s-1", 0.9);
  CHECK(sweep.wait() == 0);
  CHECK(job::count(sweep.log(), "job s-1 waits: ") == 1);  // it is said once
  CHECK(has(sweep.log(), "the best is trial 1"));
  CHECK(s.cluster.wait([&] { return s.names("secrets").empty(); }));

  // Nobody is there to be waited for.
  s.cluster.remove("/api/v1/namespaces/default/resourcequotas/few");
  quota("0");
  auto const none = s.edl(s.line({"--grid=rate=0.1,0.2,0.3", "--output=" + s.dir / "none"}));
  CHECK(none.code == 3);
  CHECK(has(none.text, "exceeded quota: few"));
  CHECK(s.names("secrets").empty());
}

TEST_CASE("a job that ends well and never tells its result is a failed trial, and stays to be looked at") {
  sweeper s;
  job::run sweep(s.line({"--grid=rate=0.1,0.2", "--parallel=2"}), s.with());
  CAPTURE(sweep.log());
  REQUIRE(sweep.says("job s-1 is submitted"));
  auto const ended = std::chrono::steady_clock::now();
  s.set_phase("s-0", "Succeeded");
  s.end_well("s-1", 0.9);
  CHECK(sweep.wait() == 0);
  CHECK(std::chrono::steady_clock::now() - ended > 9s);  // its report may come late
  CHECK(has(sweep.log(),
            "trial 0 (rate=0.1), 48 steps: failed (its master could not report the result: the API server "
            "did not reply); see `edl logs s-0`"));
  CHECK(has(sweep.log(), "the best is trial 1"));
  CHECK(s.is_there("s-0"));
  CHECK_FALSE(s.trials()[0].value);
}

TEST_CASE("--dry_run prints the objects of the first jobs and makes nothing") {
  sweeper s;
  auto const printed = s.edl(s.line({three, "--dry_run", "--halving=2",
                                     "--volume=claim_name=c,mount_path=/out", "--checkpoint_dir=/out/s"}));
  CHECK(printed.code == 0);
  CHECK(job::count(printed.text, "kind: Pod") == 3);
  CHECK(has(printed.text, "# Trial 2 (rate=0.3): job s-2"));
  CHECK(has(printed.text, "--max_step=6"));
  CHECK(has(printed.text, "--checkpoint_dir=/out/s/trial-2"));
  CHECK(has(printed.text, "elasticdl-sweep: s"));
  CHECK(s.names("pods").empty());
  CHECK_FALSE(std::filesystem::exists(s.dir / "sweep"));
}

TEST_CASE("whole jobs: halving goes on from the checkpoints of the best, and leaves its model") {
  sweeper s(usual());
  std::filesystem::create_directories(s.dir / "out");
  job::run sweep(
      s.line({"--grid=rate=0,0.05", "--parallel=2", "--halving=2", "--first_steps=24",
              "--worker_resource_request=cpu=1,memory=128Mi", "--deterministic", "--checkpoint_dir=/out/s",
              "--volume=host_path=" + std::filesystem::path(job::data().training).parent_path().string() +
                  ",mount_path=/data;host_path=" + s.dir / "out" + ",mount_path=/out"}),
      s.with());
  CHECK(sweep.wait(240s) == 0);
  CAPTURE(sweep.log());
  CHECK(has(sweep.log(), "round 2 of 2: 1 job up to step 48"));
  CHECK(has(sweep.log(), "job s-1 is submitted"));
  CHECK(has(sweep.log(), "the best is trial 1: --set \"rate=0.05\""));
  CHECK(has(sweep.log(), "its model: /out/s/trial-1/best"));
  CHECK(std::filesystem::exists(s.dir / "out/s/trial-1/best/model.safetensors"));
  auto const all = s.trials();
  REQUIRE(all.size() == 2);
  CHECK(all[0].steps == 24);
  CHECK(all[1].steps == 48);
  CHECK(s.cluster.wait([&] { return s.names("pods").empty(); }));
}

}  // namespace sweep_test
