// SPDX-License-Identifier: Apache-2.0
// Covers also edl/job/worker/kept_minibatch.hpp. Jobs with --verify_gradients, of which a worker computes
// wrongly.
#include "job/app/tiny_job.hpp"

namespace wrong_worker_test {

using namespace tiny;

namespace {

lines flags(job::scratch const& dir, lines more = {}) {
  more.insert(more.end(), {"--num_epochs=6", "--checkpoint_dir=" + dir / "checkpoints",
                           "--checkpoint_steps=20", "--num_threads=1", "--verify_gradients=0.1"});
  return more;
}

job::options wrong(std::string const& how, std::string const& worker = "1") {
  return {.env = {{"TINY_WRONG", how}, {"TINY_WRONG_WORKER", worker}, {"TINY_DELAY_US", "300"}}};
}

}  // namespace

TEST_CASE("a worker whose least bit is wrong is named by a third one, and replaced; all counts once") {
  for (std::string const how : {"gradient", "record", "late"})
    for (bool const servers : {true, false}) {
      CAPTURE(how);
      CAPTURE(servers);
      job::scratch const dir;
      job::run j(servers ? cluster(1, 3, flags(dir, {"--use_async"})) : replicas(3, flags(dir)), wrong(how));
      CHECK(j.wait() == 0);
      CHECK(j.nothing_left());
      std::string const log = j.log();
      CAPTURE(log);
      CHECK(count(log, "worker 1 computes wrongly; what was trained after version ") == 1);
      CHECK(count(log, "computes wrongly; what was trained") == 1);
      CHECK(has(log, "worker 1 is lost: it computes wrongly"));
      CHECK(has(log, "worker 3 joined"));
      CHECK(has(log, "Going back to version "));
      check_account(log, 6);
      check_ledgers(dir / "checkpoints", 6);
    }
}

TEST_CASE("of two workers nobody is blamed who errs in the same way twice, and the log says so") {
  job::scratch const dir;
  job::run j(replicas(2, flags(dir)), wrong("gradient"));
  CHECK(j.wait() == 0);
  std::string const log = j.log();
  CAPTURE(log);
  CHECK(has(log, "workers 0 and 1 differ in minibatch "));
  CHECK(has(log, "a third worker of this kind would decide"));
  CHECK_FALSE(has(log, "computes wrongly"));
  check_account(log, 6);
}

TEST_CASE("where nothing is wrong nobody is blamed, and checks change no bit of the model") {
  std::string models[2];
  for (bool const checked : {false, true}) {
    job::scratch const dir;
    lines more{"--num_epochs=4", "--output=" + dir / "model", "--num_threads=1", "--deterministic",
               "--fixed_global_batch"};
    if (checked) more.push_back("--verify_gradients=0.1");
    job::run j(replicas(3, more));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK_FALSE(has(j.log(), "[ERROR]"));
    CHECK_FALSE(has(j.log(), "[WARNING]"));
    models[checked] = slurp(dir / "model/model.safetensors");
  }
  CHECK(models[0].size() > 259 * sizeof(float));
  CHECK(models[0] == models[1]);
}

TEST_CASE("rows of tables are checked, too") {
  for (bool const servers : {true, false}) {
    CAPTURE(servers);
    job::scratch const dir;
    job::run j(servers ? cluster(1, 3, flags(dir, {"--use_async"})) : replicas(3, flags(dir)),
               {.env = {{"TINY_TABLES", "1"}}});
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK_FALSE(has(j.log(), "differ in minibatch"));
    check_account(j.log(), 6);
  }
}

}  // namespace wrong_worker_test
