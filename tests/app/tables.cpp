// SPDX-License-Identifier: Apache-2.0
// Jobs whose model is rows of tables, which come and go (models/tiny.cpp).
#include <filesystem>
#include <memory>

#include "app/tiny_job.hpp"

namespace tables_test {

using namespace tiny;

namespace {

/// It goes on for minutes unless its gate is opened.
job::options const held_tables{.env = {{"TINY_TABLES", "1"}, {"TINY_DELAY_US", "20000"}}};
job::options const tabled{.env = {{"TINY_TABLES", "1"}, {"TINY_DELAY_US", "900"}}};

/// A job of one order: what it comes to does not depend on who is fast.
lines in_order(job::scratch const& dir, std::string const& name, lines more) {
  more.insert(more.end(), {"--deterministic", "--num_threads=1", "--num_epochs=2", "--checkpoint_steps=40",
                           "--checkpoint_dir=" + dir / name + "-c", "--output=" + dir / name});
  return more;
}

std::string model(job::scratch const& dir, std::string const& name) {
  return slurp(dir / name + "/model.safetensors");
}

std::size_t row_files(std::string const& checkpoint) {
  std::size_t n = 0;
  for (auto const& f : edl::checkpoint::read_manifest(checkpoint).files) n += f.name.starts_with("rows-");
  return n;
}

}  // namespace

TEST_CASE("rows are the same bits with servers as in one process, and when a server is killed") {
  job::scratch const dir;
  job::run alone(train(in_order(dir, "alone", {})), tabled);
  CHECK(alone.wait() == 0);
  CHECK(has(alone.log(), "table 'fine': "));
  CHECK(has(alone.log(), " are gone since this process began"));
  std::string const undisturbed = model(dir, "alone");
  CHECK(undisturbed.size() > 10'000);
  // A later checkpoint has a file of changes. On a slow disk the second one is not begun before the first is
  // written, so that there may be none of version 80.
  CHECK(row_files(dir / "alone-c/version-40") == 1);
  CHECK(row_files(dir / "alone-c/version-128") > 1);

  job::run served(cluster(2, 1, in_order(dir, "served", {"--ps_replicas=2"})), tabled);
  reach_middle(served, 8);
  pid_t const victim = served.find("ps", 1);
  REQUIRE(victim);
  ::kill(victim, SIGKILL);
  CHECK(served.wait() == 0);
  CHECK(served.nothing_left());
  CAPTURE(served.log());
  check_account(served.log(), 2);
  job::run audit({"audit", dir / "served-c"});
  CHECK(audit.wait() == 0);
  // Rows lie by server in the file, and so in another order. Predictions are those of the same rows.
  CHECK(model(dir, "served").size() == undisturbed.size());
  std::string predicted;
  for (std::string const name : {"alone", "served"}) {
    job::run p({"predict", "--prediction_data=" + job::data().validation,
                "--prediction_outputs=" + dir / name + "-p",
                "--checkpoint_dir_for_init=" + dir / name + "/model.safetensors"},
               tabled);
    CHECK(p.wait() == 0);
    std::string const found = predictions(dir / name + "-p");
    if (predicted.empty()) predicted = found;
    CHECK(found == predicted);
  }
  CHECK(count(predicted, "\n") == 1 + 512);
}

TEST_CASE("a job with tables goes on from changes, with another number of servers") {
  job::scratch const dir;
  auto const flags = [&](lines more) {
    more.insert(more.end(), {"--checkpoint_dir=" + dir / "c", "--checkpoint_steps=30"});
    return more;
  };
  CHECK(job::run(cluster(3, 2, flags({"--num_epochs=1"})), tabled).wait() == 0);
  job::run second(cluster(2, 2, flags({"--num_epochs=3", "--validation_data=" + job::data().validation})),
                  tabled);
  CHECK(second.wait() == 0);
  CAPTURE(second.log());
  CHECK(has(second.log(), "going on from " + dir / "c/version-64"));
  CHECK_FALSE(has(second.log(), "Epoch 0: 2048 records in the data set, 0 counted once"));
  CHECK(last_accuracy(second.log()) > 0.65);
  check_ledgers(dir / "c", 3, 2);
  job::run third(
      train(flags({"--num_epochs=4", "--distribution_strategy=AllreduceStrategy", "--num_workers=2"})),
      tabled);
  CHECK(third.wait() == 0);
  CHECK(has(third.log(), "going on from " + dir / "c/version-192"));
}

TEST_CASE("by all-reduce each worker has the rows: the same bits, whoever is lost") {
  job::scratch const dir;
  auto const start = [&](std::string const& name, job::options const& how) {
    return std::make_unique<job::run>(replicas(3, in_order(dir, name, {"--fixed_global_batch"})), how);
  };
  auto const whole = start("whole", tabled);
  check_end(*whole, dir / "whole-c", 2);
  auto const j = start("lost", held_tables);
  reach_middle(*j, 6);
  pid_t const process = j->find("worker", 0);
  REQUIRE(process);
  ::kill(process, SIGKILL);
  CHECK(j->says("worker 3 joined"));
  j->open_gate();
  check_end(*j, dir / "lost-c", 2);
  CHECK(model(dir, "lost") == model(dir, "whole"));
}

TEST_CASE("by all-reduce workers share large tables: the same bits as with all rows, whoever is lost") {
  job::scratch const dir;
  auto const start = [&](std::string const& name, job::options const& how, lines more) {
    more.insert(more.end(), {"--fixed_global_batch", "--small_tables_mib=0"});
    return std::make_unique<job::run>(replicas(4, in_order(dir, name, more)), how);
  };
  auto const whole = start("whole", tabled, {"--table_copies=0"});
  check_end(*whole, dir / "whole-c", 2);
  CHECK_FALSE(has(whole->log(), "no longer small"));
  auto const shared = start("shared", tabled, {"--table_copies=2"});
  check_end(*shared, dir / "shared-c", 2);
  CHECK(count(shared->log(), "the tables are no longer small") == 4);
  CHECK(has(shared->log(), "this worker has hash slots [2048, 4096)"));
  CHECK(model(dir, "shared") == model(dir, "whole"));
  CHECK(row_files(dir / "shared-c/version-32") == 2);
  auto const j = start("lost", held_tables, {"--table_copies=2"});
  reach_middle(*j, 6);
  pid_t const process = j->find("worker", 3);
  REQUIRE(process);
  ::kill(process, SIGKILL);
  CHECK(j->says("worker 4 joined"));
  j->open_gate();
  check_end(*j, dir / "lost-c", 2);
  CHECK(model(dir, "lost") == model(dir, "whole"));
  // The parts are one model, whoever reads it; who predicts by all-reduce has a part, too.
  for (std::string const& from : {dir / "shared/model.safetensors", dir / "shared-c/version-32"}) {
    CAPTURE(from);
    lines const predict{"predict", "--prediction_data=" + job::data().validation,
                        "--checkpoint_dir_for_init=" + from};
    auto const outcome = [&](std::string const& name, lines more) {
      more.insert(more.begin(), predict.begin(), predict.end());
      more.push_back("--prediction_outputs=" + dir / name);
      CHECK(job::run(more, tabled).wait() == 0);
      auto const all = sorted_lines(predictions(dir / name));
      std::filesystem::remove_all(dir / name);
      return all;
    };
    auto const alone = outcome("p-alone", {});
    CHECK(alone.size() == 1 + 512);
    CHECK(outcome("p-shared", {"--distribution_strategy=AllreduceStrategy", "--num_workers=4",
                               "--small_tables_mib=0"}) == alone);
  }
  CHECK(job::run(cluster(3, 1, {"--num_epochs=3", "--checkpoint_dir=" + dir / "shared-c"}), tabled).wait() ==
        0);
}

TEST_CASE("rows that are lost with their only worker are those of the last checkpoint again") {
  job::scratch const dir;
  job::run j(replicas(3, {"--num_epochs=2", "--checkpoint_steps=20", "--checkpoint_dir=" + dir / "c",
                          "--small_tables_mib=0", "--table_copies=1", "--output=" + dir / "o"}),
             held_tables);
  CHECK(j.says("Checkpoint of version 20 written"));
  CHECK(j.says(" completed, ", 18));
  pid_t const process = j.find("worker", 1);
  REQUIRE(process);
  ::kill(process, SIGKILL);
  CHECK(j.says("rows of tables are lost with the workers that had them (--table_copies=1)"));
  CHECK(j.says("Going back to version 20, "));
  j.open_gate();
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  CAPTURE(j.log());
  check_account(j.log(), 2);
  job::run audit({"audit", dir / "c"});
  CHECK(audit.wait() == 0);
}

}  // namespace tables_test
