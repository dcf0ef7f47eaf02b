// SPDX-License-Identifier: Apache-2.0
#include "submit/sweep_jobs.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "command/tool.hpp"
#include "submit/submission_flags.hpp"

namespace sweep_jobs_test {

using namespace edl::tool;
using nlohmann::json;
using support::has;
using tool_test::refusal;

namespace {

words line(words const& more) {
  words all{"--job_name=rates",        "--image_name=i:1",    "--model_def=m",
            "--training_data=/data/a", "--by=accuracy",       "--validation_data=/d/b",
            "--max_step=800",          "--grid=rate=0.1,0.2", "--grid=depth=1,2,3"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

words commanded(submission const& s) { return s.spec.command; }

bool says(submission const& s, std::string const& word) {
  return std::ranges::count(commanded(s), word) == 1;
}

json pod(std::string const& phase, json const& report = nullptr) {
  json p{{"metadata", {{"labels", {{"elasticdl-job-name", "rates-0"}}}}}, {"status", {{"phase", phase}}}};
  if (!report.is_null()) p["metadata"]["annotations"]["elasticdl/report"] = report.dump();
  return p;
}

edl::monitor const by{"accuracy", true};

}  // namespace

TEST_CASE("each trial is a job with its values, its folder and a name of its own") {
  cluster_sweep const s = read_sweep(line({"--checkpoint_dir=/d/out/", "--volume=claim_name=c,mount_path=/d",
                                           "--set=width=8", "--num_workers=3", "--parallel=7"}));
  CHECK(s.all.size() == 6);
  CHECK(s.parallel == 7);
  CHECK(s.output == "rates");
  submission const job = job_of(s, 4, {});
  CHECK(job.spec.name == "rates-4");
  CHECK(job.spec.num_workers == 3);
  for (char const* word :
       {"--set=rate=0.2;depth=2", "--set=width=8", "--max_step=800", "--checkpoint_dir=/d/out/trial-4",
        "--save_best=accuracy:max", "--num_epochs=0", "--validation_data=/d/b"})
    CHECK(says(job, word));
  for (std::string const& word : commanded(job)) {
    CHECK_FALSE(word.starts_with("--grid"));
    CHECK_FALSE(word.starts_with("--parallel"));
  }
  // How they run is another matter than what they compute.
  json object{{"metadata", {{"annotations", annotations_of(s, 4, {})}}}};
  CHECK(turn_of(object, s, 4, 0) == trial_turn{});
  CHECK_FALSE(turn_of(object, s, 3, 0));
  words const same{"--checkpoint_dir=/d/out/", "--volume=claim_name=c,mount_path=/d", "--set=width=8",
                   "--num_workers=3"};
  auto const with = [&](char const* more) {
    words all = same;
    all.push_back(more);
    return turn_of(object, read_sweep(line(all)), 4, 0).has_value();
  };
  CHECK(with("--worker_resource_request=cpu=2,memory=8Gi"));
  CHECK(with("--request_timeout=3"));
  CHECK_FALSE(with("--minibatch_size=7"));
  CHECK_FALSE(turn_of(json{{"metadata", json::object()}}, s, 4, 3));
}

TEST_CASE("each round is a job of its own, which goes on under the trial's name in its folder") {
  cluster_sweep const s = read_sweep(line({"--halving=2", "--checkpoint_dir=/d/out"}));
  CHECK(s.rounds == std::vector<std::uint64_t>{100, 200, 400, 800});
  submission const job = job_of(s, 5, {.round = 2});
  CHECK(job.spec.name == "rates-5");
  CHECK(says(job, "--max_step=400"));
  CHECK(says(job, "--checkpoint_dir=/d/out/trial-5"));
  for (std::size_t round : {0, 3}) {
    trial_turn const turn{.round = round};
    CHECK(turn_of(json{{"metadata", {{"annotations", annotations_of(s, 5, turn)}}}}, s, 5, 0) == turn);
  }
}

TEST_CASE("a trial that begins anew does so in a folder without the checkpoints of its later rounds") {
  cluster_sweep const s = read_sweep(line({"--halving=2", "--checkpoint_dir=/d/out"}));
  CHECK(folder_of(s, 5, 0) == "/d/out/trial-5");
  submission const job = job_of(s, 5, {.round = 1, .attempt = 2});
  CHECK(job.spec.name == "rates-5");
  CHECK(says(job, "--max_step=200"));
  CHECK(says(job, "--checkpoint_dir=/d/out/trial-5-attempt-2"));
  trial_turn const turn{.round = 1, .attempt = 2};
  json const object{{"metadata", {{"annotations", annotations_of(s, 5, turn)}}}};
  CHECK(turn_of(object, s, 5, 2) == turn);
  CHECK(turn_of(object, s, 5, 4) == turn);
  CHECK_FALSE(turn_of(object, s, 5, 1));
}

TEST_CASE("one image is built for all jobs") {
  cluster_sweep const s = read_sweep(
      {"--job_name=rates", "--docker_image_repository=r.example.com/p", "--model_def=m", "--model_zoo=zoo",
       "--training_data=/d/a", "--validation_split=0.1", "--by=loss", "--max_step=8", "--grid=rate=1,2"});
  REQUIRE(s.base.build);
  CHECK(s.base.spec.image.starts_with("r.example.com/p/rates:"));
  submission const job = job_of(s, 1, {});
  CHECK(job.spec.image == s.base.spec.image);
  CHECK_FALSE(job.build);
}

TEST_CASE("a file may say all of it, also a list of what is searched") {
  support::scratch const dir;
  std::ofstream(dir / "job.yaml") << "job_name: rates\nimage_name: i:1\nmodel_def: m\ntraining_data: /d/a\n"
                                     "validation_data: /d/b\nby: loss\nmax_step: 8\ngrid:\n"
                                     "  - rate=0.1,0.2\n  - depth=1,2\nparallel: 3\n";
  cluster_sweep const s = read_sweep({"--file=" + (dir / "job.yaml"), "--parallel=2"});
  CHECK(s.all.size() == 4);
  CHECK(s.parallel == 2);
  CHECK_FALSE(s.by.higher);
  for (std::string const& word : commanded(job_of(s, 0, {}))) CHECK_FALSE(word.starts_with("--file"));
}

TEST_CASE("whole numbers are drawn where the line asks for them") {
  cluster_sweep const s =
      read_sweep({"--job_name=r", "--image_name=i", "--model_def=m", "--training_data=/d/a", "--by=loss",
                  "--validation_split=0.1", "--max_step=8", "--random=depth=1:9:whole", "--trials=20"});
  REQUIRE(s.all.size() == 20);
  for (auto const& t : s.all) CHECK(t.values[0].second.size() == 1);
}

TEST_CASE("a sweep that cannot be is refused with the way out") {
  auto const refused = [](words const& more) { return refusal([&] { read_sweep(line(more)); }); };
  CHECK(refused({}) == "accepted");
  CHECK(has(refused({"--halving=2"}), "--checkpoint_dir"));
  for (char const* name : {"save_best", "keep_checkpoint_max"}) {
    std::string const flag = std::string("--") + name;
    CHECK(refused({flag + "=1"}) == flag + " is set by the sweep, for each trial; leave it out");
  }
  CHECK(has(refused({"--early_stopping=loss"}), "--early_stopping is not for a sweep"));
  CHECK(has(refused({"--yaml=-"}), "--yaml is not for a sweep; --dry_run"));
  for (char const* flag : {"--wait", "--follow", "--detach", "--start_timeout=3"})
    CHECK(has(refused({flag}), "is for one job, but a sweep runs many"));
  CHECK(has(refused({"--paralel=3"}), "did you mean --parallel?"));
  support::scratch const dir;
  std::ofstream(dir / "job.yaml") << "save_best: loss\n";
  CHECK(has(refused({"--file=" + dir / "job.yaml"}), "--save_best is set by the sweep"));
  CHECK(has(refused({"--halving=1", "--checkpoint_dir=/d"}), "--halving=1"));
  CHECK(has(refused({"--random=x=1:2:odd", "--trials=2"}), ":whole"));
  CHECK(has(refused({"--parallel=0"}), "--parallel=0"));
  words const all = line({});
  auto const without = [&](std::string const& name) {
    return refusal([&] {
      words some = all;
      std::erase_if(some, [&](std::string const& word) { return word.starts_with("--" + name + "="); });
      read_sweep(some);
    });
  };
  for (char const* name : {"job_name", "by", "max_step", "grid", "image_name", "model_def"}) {
    CAPTURE(name);
    CHECK(has(without(name), std::string("--") + name));
  }
  CHECK(has(without("validation_data"), "--validation_split"));
  words long_name = all;
  long_name[0] = "--job_name=" + std::string(39, 'a');
  CHECK(has(refusal([&] { read_sweep(long_name); }), "at most 38 characters"));
}

TEST_CASE("a trial's result is read from its master's pod") {
  using enum trial_state::phase;
  json const good{{"over", true},
                  {"evaluation", {{"version", 8}, {"metrics", {{"accuracy", 0.75}, {"loss", nullptr}}}}}};
  trial_state const best = state_of_trial(pod("Succeeded", good), by);
  CHECK(best.state == trial_state::phase::done);
  CHECK(best.value == 0.75);
  CHECK(has(state_of_trial(pod("Succeeded", good), {"auc", true}).why,
            "the model's metrics are accuracy, loss"));
  CHECK(state_of_trial(pod("Succeeded", good), {"loss", false}).why == "loss is not a number");
  json early = good;
  early.erase("over");  // not its last word
  CHECK(state_of_trial(pod("Succeeded", early), by).state == unread);
  CHECK(state_of_trial(pod("Succeeded"), by).state == unread);
  CHECK(state_of_trial(pod("Succeeded", {{"over", true}}), by).why == "it has evaluated nothing");
  for (json const& odd : {json::array(), json("text"), json{{"over", true}, {"evaluation", 3}},
                          json{{"over", true}, {"evaluation", {{"metrics", 3}}}}})
    CHECK_FALSE(state_of_trial(pod("Succeeded", odd), by).value);
  CHECK(state_of_trial(pod("Running", good), by).state == under_way);
  CHECK(state_of_trial(pod("Failed", good), by).state == trial_state::phase::failed);
  json leaves = pod("Running");
  leaves["metadata"]["deletionTimestamp"] = "2026-11-25T10:00:00Z";
  CHECK(state_of_trial(leaves, by).state == leaving);
  json never = pod("Pending");
  never["status"]["containerStatuses"] = {
      {{"state", {{"waiting", {{"reason", "ErrImageNeverPull"}, {"message", "no image"}}}}}}};
  CHECK(state_of_trial(never, by).state == hopeless);
  never["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] = "ImagePullBackOff";
  CHECK(state_of_trial(never, by).state == under_way);
  CHECK(has(state_of_trial(never, by).why, "no image"));
}

}  // namespace sweep_jobs_test
