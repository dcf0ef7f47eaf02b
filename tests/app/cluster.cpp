// SPDX-License-Identifier: Apache-2.0
// Whole jobs of a master, servers and workers, each a process.
#include <memory>

#include "app/tiny_job.hpp"

namespace cluster_test {

using namespace tiny;

TEST_CASE("2 servers and 2 workers train as well as one process does") {
  lines const flags[] = {{"--use_async"},
                         {"--grads_to_wait=2"},
                         {"--use_async", "--get_model_steps=4"},
                         {"--outer_steps=4", "--gradients=bfloat16"}};
  for (lines f : flags) {
    CAPTURE(f);
    job::scratch const dir;
    f.insert(f.end(), {"--validation_data=" + job::data().validation, "--num_epochs=3",
                       "--evaluation_steps=32", "--log_loss_steps=10", "--output=" + dir / "model",
                       "--checkpoint_dir=" + dir / "checkpoints", "--log_file_path=" + dir / "log"});
    job::run j(cluster(2, 2, f));
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK(count(log, "Evaluation metrics[v=32]: {'accuracy': ") == 1);
    CHECK(last_accuracy(log) > 0.8);
    CHECK(count(log, "Loss = ") >= 5);
    CHECK(has(log, ", steps = "));
    check_account(log, 3);
    check_ledgers(dir / "checkpoints", 3, 2);
    CHECK(std::filesystem::file_size(dir / "model/model.safetensors") > 259 * sizeof(float));
    // Two processes' lines may change places between the two.
    CHECK(sorted_lines(slurp(dir / "log")) == sorted_lines(log));
    CHECK_FALSE(has(log, "[WARNING]"));
  }
}

TEST_CASE("one worker gives the same bits as one process, with one server and with three") {
  job::scratch const dir;
  auto const flags = [&](std::string const& name) {
    return lines{"--use_async", "--num_epochs=2", "--output=" + dir / name,
                 "--checkpoint_dir=" + dir / name + "-c"};
  };
  CHECK(job::run(train(flags("local"))).wait() == 0);
  CHECK(job::run(cluster(1, 1, flags("one"))).wait() == 0);
  CHECK(job::run(cluster(3, 1, flags("three"))).wait() == 0);
  std::string const model = slurp(dir / "local/model.safetensors");
  auto const checkpoint = [&](std::string const& name) {
    std::string const path = dir / name + "-c/version-128/";
    return slurp(path + edl::checkpoint::read_manifest(path).files.at(0).name);
  };
  CHECK(model.size() > 259 * sizeof(float));
  CHECK(model == slurp(dir / "one/model.safetensors"));
  CHECK(model == slurp(dir / "three/model.safetensors"));
  // With slots and ledger.
  CHECK_FALSE(checkpoint("local").empty());
  CHECK(checkpoint("local") == checkpoint("one"));
}

TEST_CASE("gradients that travel in half the bytes train as well, and are not the same") {
  job::scratch const dir;
  for (char const* name : {"float32", "bfloat16"}) {
    job::run j(train({"--num_workers=1", "--num_ps_pods=3", "--validation_data=" + job::data().validation,
                      "--num_epochs=3", std::string("--gradients=") + name, "--output=" + dir / name}));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "2048 counted once, 0 skipped as damaged, 0 left"));
    auto const at = j.log().rfind("{'accuracy': ");
    REQUIRE(at != std::string::npos);
    CHECK(std::stod(j.log().substr(at + 13)) > 0.8);
  }
  CHECK(slurp(dir / "float32/model.safetensors") != slurp(dir / "bfloat16/model.safetensors"));
}

TEST_CASE("damaged records are counted as skipped, whoever began their task") {
  job::scratch const dir;
  std::string const name = "/part-0";
  std::string bytes = slurp(job::data().training + name);
  bytes[bytes.size() / 2] ^= 0x10;
  std::filesystem::create_directories(dir / "train");
  std::ofstream(dir / "train" + name, std::ios::binary) << bytes;
  lines const flags{"--training_data=" + dir / "train", "--num_epochs=2", "--skip_damaged", "--max_damaged=1",
                    "--num_minibatches_per_task=8"};
  auto const account = [](std::string const& log) {
    auto const from = log.find("Epoch 1: ");
    return from == std::string::npos ? "" : log.substr(from, log.find('\n', from) - from);
  };
  job::run local(train(flags));
  CHECK(local.wait() == 0);
  lines more = flags;
  more.push_back("--use_async");
  job::run j(cluster(1, 1, more), slow);
  reach_middle(j, 1);
  ::kill(j.find("worker", 0), SIGKILL);
  CHECK(j.says("worker 1 joined"));
  j.open_gate();
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(account(local.log()), "512 records in the data set, "));
  CHECK_FALSE(has(account(local.log()), ", 0 skipped as damaged"));
  CHECK(account(j.log()) == account(local.log()));
}

TEST_CASE("roles that somebody else starts make a job, and a worker may come late") {
  job::scratch const dir;
  job::environment const common{{"EDL_JOB_NAME", "by-hand"},
                                {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"}};
  auto const command =
      cluster(2, 1, {"--use_async", "--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"});
  auto const role = [&](job::environment more) {
    more.insert(more.end(), common.begin(), common.end());
    more.insert(more.end(), slow.env.begin(), slow.env.end());
    return std::make_unique<job::run>(command, job::options{.env = more});
  };
  auto const master = role({{"EDL_ROLE", "master"}});
  REQUIRE(master->says("listens at "));
  std::string log = master->log();
  auto const at = log.find("tcp:", log.find("listens at ")) + 4;
  std::string const where = log.substr(at, log.find('\n', at) - at);
  auto const ps1 = role({{"EDL_ROLE", "ps"}, {"PS_ID", "1"}, {"MASTER_ADDR", where}});
  auto const first = role({{"EDL_ROLE", "worker"}, {"WORKER_ID", "0"}, {"MASTER_ADDR", where}});
  auto const ps0 = role({{"EDL_ROLE", "ps"}, {"PS_ID", "0"}, {"MASTER_ADDR", where}});
  REQUIRE(master->says(" completed, ", 2));
  auto const late = role({{"EDL_ROLE", "worker"}, {"WORKER_ID", "5"}, {"MASTER_ADDR", where}});
  CHECK(master->says("worker 5 joined"));
  ::kill(first->pid(), SIGTERM);
  CHECK(master->says("worker 0 has left"));
  for (auto const* r : {&master, &ps0, &ps1, &first, &late}) CHECK((*r)->wait() == 0);
  log = master->log();
  CAPTURE(log);
  check_account(log, 3);
  check_ledgers(dir / "checkpoints", 3, 2);
}

TEST_CASE("a job is scaled while it runs: workers and servers come and go, nothing is lost or doubled") {
  job::scratch const dir;
  std::string const name = "scaled-" + std::to_string(::getpid());
  job::run j(cluster(1, 1,
                     {"--use_async", "--ps_ranges=3", "--num_epochs=12", "--job_name=" + name,
                      "--checkpoint_dir=" + dir / "checkpoints"}),
             held);
  auto const scale = [&](std::string const& flag) {
    job::run command({"scale", "--job_name=" + name, flag});
    int const code = command.wait();
    return std::pair(code, command.log());
  };
  reach_middle(j, 1);
  pid_t const first = j.find("worker", 0);
  CHECK(scale("--num_workers=3").first == 0);
  CHECK(j.says("worker 2 joined"));
  CHECK(scale("--num_ps_pods=3").first == 0);
  CHECK(j.says("server 2 joined"));
  CHECK(scale("--num_workers=1").first == 0);
  // Whether they held a lease, or waited for the servers that had just come.
  CHECK(job::eventually([&] { return j.find("worker", 1) == 0 && j.find("worker", 2) == 0; }));
  CHECK(scale("--num_ps_pods=2").first == 0);
  CHECK(j.says("server 2 is not needed any more"));
  auto const [code, why] = scale("--num_ps_pods=4");
  CHECK(code == 1);
  CHECK(has(why, "--ps_ranges"));
  CHECK(j.find("worker", 0) == first);
  j.open_gate();
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  std::string const log = j.log();
  CAPTURE(log);
  CHECK_FALSE(has(log, "Going back to version"));
  check_account(log, 12);
  check_ledgers(dir / "checkpoints", 12, 3);
  auto const [gone, what] = scale("--num_workers=2");
  CHECK(gone == 1);
  CHECK(has(what, "no job '" + name + "'"));
}

}  // namespace cluster_test
