// SPDX-License-Identifier: Apache-2.0
// Whole jobs whose records, models and predictions lie in a bucket of a store that is not always kind.
#include <atomic>
#include <map>

#include "app/tiny_job.hpp"
#include "base/bucket/unkind_store.hpp"
#include "edl/app/sweep_plan.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "job/train/files.hpp"

namespace buckets_test {

using namespace tiny;
using test::request, test::unkind_store, test::wire;

namespace {

/// Refuses every fifth request in pairs, cuts every seventh reading, and loses replies to writes that took
/// place.
struct bucket {
  std::atomic<int> n{0}, reads{0}, writes{0}, roles{0};
  int lost = 2;  // of so many writes one loses its reply
  unkind_store store{[this](request const& r, wire& w) {
    int const i = n++;
    if (r.target == "/") return roles++ % 3 == 0 ? w.cut() : grant(r, w), true;
    if (i % 10 == 3 || i % 10 == 4) return unkind_store::refuse(w, 503, "SlowDown"), true;
    bool const write = r.method != "GET";
    if (write && writes++ % lost == 0) return store.serve_silently(r, w), true;
    return !write && reads++ % 7 == 2 && (w.cut(), true);
  }};

  bucket() {
    put(job::data().training, "data/train/");
    put(job::data().validation, "data/test/");
  }

  void put(std::string const& directory, std::string const& prefix) {
    std::lock_guard const lock(store.mutex);
    for (auto const& file : std::filesystem::recursive_directory_iterator(directory))
      if (file.is_regular_file())
        store.objects[prefix + std::filesystem::relative(file, directory).string()] = job::slurp(file.path());
  }

  std::string at(std::string const& key) {
    std::lock_guard const lock(store.mutex);
    auto const it = store.objects.find(key);
    return it == store.objects.end() ? "" : it->second;
  }

  /// What a token service replies to a pod.
  static void grant(request const& r, wire& w) {
    bool const right = r.body.ends_with("&WebIdentityToken=of-a-pod");
    w.json(right ? 200 : 403,
           right ? "<AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey><SessionToken>T"
                   "</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration>"
                 : "<Code>AccessDenied</Code>");
  }

  /// The environment of a pod whose service account has a role.
  job::options in_pod(std::string const& token) const {
    return {.env = {{"AWS_ACCESS_KEY_ID", ""},
                    {"AWS_WEB_IDENTITY_TOKEN_FILE", token},
                    {"AWS_ROLE_ARN", "arn:aws:iam::1:role/train"},
                    {"AWS_ENDPOINT_URL", store.url()}}};
  }

  job::options with(job::options o = {}) const {
    for (auto const& [name, value] : job::environment{{"AWS_ACCESS_KEY_ID", "A"},
                                                      {"AWS_SECRET_ACCESS_KEY", "secret"},
                                                      {"AWS_ENDPOINT_URL", store.url()}})
      o.env.emplace_back(name, value);
    return o;
  }
};

}  // namespace

TEST_CASE("a job trains on objects and leaves its model in a bucket, though a worker is killed") {
  bucket b;
  job::scratch const dir;
  for (bool const servers : {true, false}) {
    std::string const checkpoints = dir / (servers ? "servers" : "replicas");
    lines const flags{"--training_data=s3://box/data/train/", "--validation_data=s3://box/data/test/",
                      "--num_epochs=2", "--output=s3://box/out/model", "--checkpoint_dir=" + checkpoints};
    job::run j(servers ? cluster(1, 2, flags) : replicas(2, flags), b.with(slow));
    reach_middle(j);
    pid_t const victim = j.find("worker", 1);
    REQUIRE(victim);
    ::kill(victim, SIGKILL);
    CHECK(j.wait(120s) == 0);
    std::string const log = j.log();
    CAPTURE(log);
    check_account(log, 2);
    check_ledgers(checkpoints, 2);
    CHECK(has(log, "model written to s3://box/out/model/model.safetensors"));
    CHECK_FALSE(b.at("out/model/model.safetensors").empty());
  }

  // What the model says is the same, wherever it lies and whoever reads it.
  std::ofstream(dir / "model.safetensors", std::ios::binary) << b.at("out/model/model.safetensors");
  edl::checkpoint::safetensors_file const file(dir / "model.safetensors");
  std::string map;
  for (auto const& t : file.tensors())
    map += (map.empty() ? "" : ", ") + ("\"" + t.name + "\": \"m.safetensors\"");
  {
    std::lock_guard const lock(b.store.mutex);
    b.store.objects["out/parts/m.safetensors"] = b.store.objects.at("out/model/model.safetensors");
    b.store.objects["out/parts/model.safetensors.index.json"] = R"({"weight_map": {)" + map + "}}";
  }
  std::string told;
  for (lines const& processes : {lines{}, lines{"--num_workers=2", "--num_ps_pods=1"}})
    for (std::string const& model :
         {dir / "model.safetensors", std::string("s3://box/out/model"), std::string("s3://box/out/parts"),
          std::string("s3://box/out/model/model.safetensors")}) {
      bool const remote = model.starts_with("s3://");
      std::string const to = remote ? "s3://box/predicted" : dir / "predicted";
      lines line{"predict", "--prediction_data=s3://box/data/test/part-*",
                 "--checkpoint_dir_for_init=" + model, "--prediction_outputs=" + to,
                 "--num_minibatches_per_task=2"};
      line.insert(line.end(), processes.begin(), processes.end());
      job::run j(line, b.with());
      CHECK(j.wait(120s) == 0);
      CAPTURE(j.log());
      CHECK(has(j.log(), "the predictions are in " + to + "/predictions.csv"));
      std::string const now =
          remote ? b.at("predicted/predictions.csv") : job::slurp(to + "/predictions.csv");
      CHECK(count(now, "\n") == 1 + job::data_set::validation_records);
      if (told.empty()) told = now;
      CHECK(now == told);
      std::lock_guard const lock(b.store.mutex);
      for (auto const& [key, text] : b.store.objects) CHECK_FALSE(has(key, "predicted/part-"));
    }
  std::lock_guard const lock(b.store.mutex);
  for (auto const& [id, begun] : b.store.uploads) CHECK(begun.parts.empty());  // whose first reply was lost
}

TEST_CASE("a program converts records of a bucket to others there") {
  bucket b;
  job::scratch const dir;
  auto const converted = [&](std::string const& from, std::string const& to) {
    job::run j({"data", "--from=" + from, "--to=" + to, "--records_per_shard=500"}, b.with());
    CHECK(j.wait() == 0);
    CHECK(has(j.log(), " files: " + to));
  };
  converted(job::data().training, dir / "rows");
  converted("s3://box/data/train", "s3://box/rows");
  auto const files = job::names_in(dir / "rows");
  CHECK(files.size() > 1);
  for (std::string const& name : files) CHECK(b.at("rows/" + name) == job::slurp(dir / ("rows/" + name)));
}

TEST_CASE("a job keeps its checkpoints in a bucket, though a worker, a server and its master are killed") {
  bucket b;
  for (bool const servers : {true, false}) {
    CAPTURE(servers);
    std::string const prefix = servers ? "s/" : "r/", place = "s3://box/" + prefix;
    auto const flags = [&](int epochs) {
      lines const more{"--num_epochs=" + std::to_string(epochs),
                       "--checkpoint_dir=" + place,
                       "--checkpoint_steps=16",
                       "--keep_checkpoint_max=2",
                       "--evaluation_steps=40",
                       "--validation_data=" + job::data().validation,
                       "--save_best=accuracy"};
      return servers ? cluster(2, 2, more) : replicas(2, more);
    };
    {
      job::run j(flags(2), b.with(slow));
      bool const begun = j.says(" completed, ", 4);
      CAPTURE(j.log());
      REQUIRE(begun);
      for (char const* role : {"worker", servers ? "ps" : "worker", "master"}) {
        pid_t const victim = j.find(role, std::string_view(role) == "master" ? 0 : 1);
        if (victim) ::kill(victim, SIGKILL);
        REQUIRE(j.says(" completed, ", count(j.log(), " completed, ") + 2));
      }
      CHECK(j.wait(120s) == 0);
      std::string const log = j.log();
      CAPTURE(log);
      check_account(log, 2);
      CHECK(has(log, "the previous master ended before its job"));
      CHECK(has(log, "checkpoint: " + place.substr(0, place.size() - 1) + "/version-"));
      CHECK_FALSE(has(log, "[ERROR]"));
    }
    job::run audit({"audit", place}, b.with());
    CHECK(audit.wait() == 0);
    CHECK(has(audit.log(), "version-"));
    job::run again(flags(3), b.with());
    CHECK(again.wait(120s) == 0);
    std::string const log = again.log();
    CAPTURE(log);
    CHECK(has(log, "going on from " + place + "version-"));
    CHECK(job::accounts(log, 2,
                        "2048 records in the data set, 2048 counted once, 0 skipped as damaged, 0 left"));
    job::run history({"history", place, "-o", "csv"}, b.with());
    CHECK(history.wait() == 0);
    CHECK(count(history.log(), "\n") > 2);
    job::run evaluation({"evaluate", "--validation_data=" + job::data().validation,
                         "--checkpoint_dir_for_init=" + place + "best"},
                        b.with());
    CHECK(evaluation.wait() == 0);
    std::lock_guard const lock(b.store.mutex);
    std::size_t manifests = 0;
    for (auto const& [key, text] : b.store.objects)
      manifests += key.starts_with(prefix) && key.ends_with("manifest.json");
    CHECK(manifests == 2);
    CHECK(b.store.objects.contains(prefix + "evaluations.json"));
  }
}

TEST_CASE("a job alone keeps its checkpoints in a bucket, and a second one is refused") {
  bucket b;
  lines const line = train({"--num_epochs=2", "--checkpoint_dir=s3://box/c", "--checkpoint_steps=20",
                            "--history_steps=8", "--tensorboard_log_dir=s3://box/logs/run"});
  job::run j(line, b.with(held));
  bool const begun = j.says(" completed, ", 2);
  CAPTURE(j.log());
  REQUIRE(begun);
  job::run second(line, b.with());
  CHECK(second.wait() != 0);
  CHECK(has(second.log(), "--checkpoint_dir=s3://box/c is in use by job "));
  ::kill(j.pid(), SIGTERM);
  CHECK(j.wait(60s) == 128 + SIGTERM);
  CHECK(has(j.log(), "the same command goes on from s3://box/c/version-"));
  job::run next(line, b.with());
  CHECK(next.wait(60s) == 0);
  CAPTURE(next.log());
  CHECK(has(next.log(), "going on from s3://box/c/version-"));
  check_account(next.log(), 2);
  CHECK_FALSE(has(next.log(), " lacks "));
  std::lock_guard const lock(b.store.mutex);
  std::string events;
  for (auto const& [key, text] : b.store.objects)
    if (key.starts_with("logs/run/events.out.tfevents.")) events += text;
  CHECK(count(events, "training/loss") >= 16);  // of 128 steps
}

TEST_CASE("a job begins at the newest checkpoint of a bucket that is whole") {
  bucket b;
  std::string const checkpoints = job::model().checkpoints;
  b.put(checkpoints, "c/");
  auto const evaluated = [&](std::string const& model, lines const& processes) {
    lines line{"evaluate", "--validation_data=" + job::data().validation,
               "--checkpoint_dir_for_init=" + model};
    line.insert(line.end(), processes.begin(), processes.end());
    job::run j(line, b.with());
    CHECK(j.wait(120s) == 0);
    return j.log();
  };
  auto const metrics = [](std::string const& log) {
    auto const at = log.rfind("Evaluation metrics[v=");
    return at == log.npos ? log : log.substr(at, log.find('}', at) - at);
  };
  std::string const right = metrics(evaluated(checkpoints, {}));
  for (lines const& processes : {lines{}, lines{"--num_workers=2", "--num_ps_pods=2"},
                                 lines{"--num_workers=2", "--distribution_strategy=AllreduceStrategy"}}) {
    auto const log = evaluated("s3://box/c", processes);
    CAPTURE(log);
    CHECK(has(log, "s3://box/c/version-64/ is the newest checkpoint in s3://box/c"));
    CHECK(metrics(log) == right);
  }
  // One of which a part is damaged, and one that was never complete.
  {
    std::lock_guard const lock(b.store.mutex);
    std::string const part = std::filesystem::path(job::part_of(checkpoints + "/version-64")).filename();
    b.store.objects.at("c/version-64/" + part)[1000] ^= 1;
    b.store.objects["c/version-99/" + part] = "begun";
  }
  auto const log = evaluated("s3://box/c", {});
  CAPTURE(log);
  CHECK(has(log, "checkpoint s3://box/c/version-64 is passed over ("));
  CHECK(has(log, "using s3://box/c/version-32 instead"));
  CHECK(metrics(log) == metrics(evaluated(checkpoints + "/version-32", {})));
}

TEST_CASE("a model of a bucket is served when it comes, and a newer one then") {
  bucket b;
  job::scratch const dir;
  std::ofstream(dir / "token") << "of-a-pod";
  job::run j({"serve", "--model_path=s3://box/c", "--port=0", "--poll_interval_ms=20"},
             b.in_pod(dir / "token"));
  REQUIRE(j.says("no model in s3://box/c yet: waiting for one"));
  for (char const* version : {"version-32", "version-64"}) {
    b.put(job::model().checkpoints + "/" + version, std::string("c/") + version + "/");
    CHECK(j.says(std::string("serves version ") + (version + 8)));
  }
  ::kill(j.pid(), SIGKILL);
  CHECK(b.roles > 1);
}

TEST_CASE("a sweep keeps its trials in a bucket, though it is killed, and a second one is refused") {
  bucket b;
  b.lost = 5;  // of three writers one would lose all for ten seconds
  lines line = train({"--validation_data=" + job::data().validation, "--output=s3://box/s/", "--by=accuracy",
                      "--max_step=48", "--halving=2", "--first_steps=24", "--parallel=2", "--num_threads=1",
                      "--grid=rate=0,0.0001,0.05"});
  line.front() = "sweep";
  {
    job::run killed(line, b.with(slow));
    bool const begun = killed.says("trial 0 (rate=0), 24 steps: accuracy");
    CAPTURE(killed.log());
    REQUIRE(begun);
    job::run second(line, b.with());
    CHECK(second.wait() == 1);
    CHECK(has(second.log(), "--output=s3://box/s/ is in use by job 'sweep'"));
    ::kill(killed.pid(), SIGKILL);
    killed.wait();
    CHECK(killed.nothing_left());
  }
  CHECK(has(b.at("s/trial-0/log"), "Starting epoch 0"));
  {  // the locks of the dead, which others would watch for 15 s
    std::lock_guard const lock(b.store.mutex);
    std::erase_if(b.store.objects, [](auto const& one) { return one.first.ends_with("/.edl-lock"); });
  }
  job::run rest(line, b.with());
  CHECK(rest.wait(120s) == 0);
  CAPTURE(rest.log());
  CHECK_FALSE(has(rest.log(), "trial 0 (rate=0), 24 steps"));
  CHECK(has(rest.log(), "the best is trial 2: --set \"rate=0.05\""));
  CHECK(has(rest.log(), "its model: s3://box/s/trial-2/checkpoints/best"));
  CHECK_FALSE(b.at("s/trial-2/checkpoints/best/model.safetensors").empty());
  // At least one run for each round. How far the killed sweep came decides whether the others train.
  CHECK(count(b.at("s/trial-2/log"), "worker 0 joined") >= 2);
  auto const all = edl::app::list_from_json(b.at("s/sweep.json"), "it").trials;
  REQUIRE(all.size() == 3);
  CHECK(all[0].steps == 24);
  CHECK(all[2].steps == 48);
  job::run other(
      [&] {
        lines more = line;
        more.back() = "--grid=rate=0.1";
        return more;
      }(),
      b.with());
  CHECK(other.wait() == 1);
  CHECK(has(other.log(), "--output=s3://box/s/ holds another sweep"));
}

TEST_CASE("a bucket that cannot be written is told before the job trains") {
  bucket b;
  unkind_store closed([](request const& r, wire& w) {
    return r.method != "GET" && (unkind_store::refuse(w, 403, "AccessDenied"), true);
  });
  job::options o{.env = {{"AWS_ACCESS_KEY_ID", "A"},
                         {"AWS_SECRET_ACCESS_KEY", "secret"},
                         {"AWS_ENDPOINT_URL", closed.url()}}};
  job::run j(job::train({"--num_epochs=1", "--output=s3://box/m"}), o);
  CHECK(j.wait() != 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "--output=s3://box/m: s3://box/m/edl: the object store "));
  CHECK(has(j.log(), "403 AccessDenied"));
  CHECK_FALSE(has(j.log(), " completed, "));
}

TEST_CASE("a history and an account that cannot be read are told, and not shown as empty") {
  for (char const* closed : {"/box", "/box/c/", "list-type=2"}) {
    CAPTURE(closed);
    unkind_store store([&](request const& r, wire& w) {
      bool const refused = r.target.find(closed) != r.target.npos;
      return refused && (unkind_store::refuse(w, 403, "AccessDenied"), true);
    });
    for (auto const& file : std::filesystem::recursive_directory_iterator(job::model().checkpoints))
      if (file.is_regular_file())
        store.objects["c/" + std::filesystem::relative(file, job::model().checkpoints).string()] =
            job::slurp(file.path());
    job::options const o{.env = {{"AWS_ACCESS_KEY_ID", "A"},
                                 {"AWS_SECRET_ACCESS_KEY", "secret"},
                                 {"AWS_ENDPOINT_URL", store.url()}}};
    for (char const* command : {"history", "audit"}) {
      if (std::string_view(closed) == "list-type=2" && std::string_view(command) == "history") continue;
      job::run j({command, "s3://box/c"}, o);
      CHECK(j.wait() != 0);
      CAPTURE(j.log());
      CHECK(has(j.log(), "403 AccessDenied"));
    }
  }
}

TEST_CASE("predictions are not written where the data lie, whose names could be theirs") {
  bucket b;
  for (char const* data :
       {"s3://box/d/part-00000.csv", "s3://box/d/*.csv", "s3://box/d", "s3://box/d/", "s3://box/"}) {
    job::run j({"predict", std::string("--prediction_data=") + data, "--prediction_outputs=s3://box/d",
                "--checkpoint_dir_for_init=" + job::model().output},
               b.with());
    CHECK(j.wait() != 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "--prediction_outputs=s3://box/d: --prediction_data="));
    CHECK(has(j.log(), "lies there"));
  }
}

}  // namespace buckets_test
