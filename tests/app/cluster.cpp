// SPDX-License-Identifier: Apache-2.0
// Whole jobs of a master, servers and workers, each a process.
#include <memory>
#include <sstream>

#include "app/job.hpp"
#include "app/kept_port.hpp"
#include "edl/checkpoint/directory.hpp"
#include "edl/checkpoint/manifest.hpp"

using job::count, job::has, job::slurp, job::train;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

/// Slow enough that something can be done in the middle: two workers take about a second for an epoch.
job::options const slow{.env = {{"TINY_DELAY_US", "900"}}};
/// Goes on for minutes unless its gate is opened.
job::options const held{.env = {{"TINY_DELAY_US", "20000"}}};

std::vector<std::string> cluster(int servers, int workers, lines more = {}) {
  more.insert(more.end(),
              {"--num_ps_pods=" + std::to_string(servers), "--num_workers=" + std::to_string(workers)});
  return train(more);
}

lines sorted_lines(std::string const& text) {
  lines all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  std::sort(all.begin(), all.end());
  return all;
}

double last_accuracy(std::string const& log) {
  auto const at = log.rfind("{'accuracy': ");
  return at == std::string::npos ? 0 : std::stod(log.substr(at + 13));
}

/// The log's account: every record of every epoch once.
void check_account(std::string const& log, int epochs) {
  for (int e = 0; e < epochs; ++e)
    CHECK(has(log, "Epoch " + std::to_string(e) +
                       ": 2048 records in the data set, 2048 counted once, 0 skipped as damaged, 0 left"));
}

/// The last checkpoint's account, of each server by itself: all tasks of all epochs are closed, none is open.
void check_ledgers(std::string const& checkpoints, std::uint32_t epochs, std::size_t servers) {
  auto const newest = edl::checkpoint::newest_valid(checkpoints);
  REQUIRE(newest);
  auto const m = edl::checkpoint::read_manifest(*newest);
  CHECK(m.files.size() == servers);
  for (auto const& file : m.files) {
    CHECK(file.ledger.open().empty());
    CHECK(file.ledger.closed().size() == epochs);
    for (auto const& [epoch, tasks] : file.ledger.closed()) CHECK(tasks.count() == 16);
  }
}

/// A job with a middle: at least three tasks are done, and all of its processes are there.
void reach_middle(job::run& j, std::size_t tasks = 4) { REQUIRE(j.says(" completed, ", tasks)); }

std::string predictions(std::string const& directory) {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path());
  std::sort(names.begin(), names.end());
  std::string all;
  for (std::string const& name : names) all += slurp(name);
  return all;
}

}  // namespace

TEST_CASE("2 servers and 2 workers train as well as one process does") {
  lines const flags[] = {{"--use_async"}, {"--grads_to_wait=2"}, {"--use_async", "--get_model_steps=4"}};
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

TEST_CASE("a killed worker is replaced under the next id; the other stays, nothing is lost or doubled") {
  for (lines f : {lines{"--use_async"}, lines{"--grads_to_wait=2"}}) {
    job::scratch const dir;
    f.insert(f.end(), {"--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"});
    job::run j(cluster(2, 2, f), slow);
    reach_middle(j);
    pid_t const survivor = j.find("worker", 0), victim = j.find("worker", 1), server = j.find("ps", 0);
    REQUIRE((survivor && victim && server));
    ::kill(victim, SIGKILL);
    CHECK(j.says("worker 2 joined"));
    CHECK(j.find("worker", 0) == survivor);
    CHECK(j.find("worker", 1) == 0);
    CHECK(j.find("worker", 2) != 0);
    CHECK(j.find("ps", 0) == server);
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK(has(log, "worker-1 was killed by signal 9"));
    CHECK_FALSE(has(log, "Going back to"));
    check_account(log, 3);
    check_ledgers(dir / "checkpoints", 3, 2);
  }
}

TEST_CASE("damaged records are counted as skipped, whoever began their task") {
  job::scratch const dir;
  std::string const name = "/part-0";
  std::string bytes = slurp(job::data().training + name);
  bytes[bytes.size() / 2] ^= 0x10;
  std::filesystem::create_directories(dir / "train");
  std::ofstream(dir / "train" + name, std::ios::binary) << bytes;
  lines const flags{"--training_data=" + dir / "train", "--num_epochs=2", "--skip_damaged",
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
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "worker 1 joined"));
  CHECK(has(account(local.log()), "512 records in the data set, "));
  CHECK_FALSE(has(account(local.log()), ", 0 skipped as damaged"));
  CHECK(account(j.log()) == account(local.log()));
}

TEST_CASE("a killed server is replaced and all go back to the last checkpoint") {
  for (lines f : {lines{"--use_async"}, lines{"--grads_to_wait=2"}}) {
    job::scratch const dir;
    f.insert(f.end(), {"--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints", "--checkpoint_steps=8"});
    job::run j(cluster(2, 2, f), slow);
    REQUIRE(j.says("Checkpoint of version ", 2));
    REQUIRE((j.find("worker", 0) && j.find("worker", 1) && j.find("ps", 0)));
    ::kill(j.find("ps", 1), SIGKILL);
    CHECK(j.says("Going back to version "));
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK_FALSE(has(log, "Going back to version 0"));
    CHECK(count(log, "server 1 joined") == 2);
    CHECK(count(log, "server 0 joined") == 1);
    CHECK(count(log, "worker 2 joined") == 0);
    CHECK(has(log, "generation 2: "));
    check_account(log, 3);
    check_ledgers(dir / "checkpoints", 3, 2);
  }
}

TEST_CASE("a job that loses one process after the other still counts every record once") {
  edl::random_stream const random(11, 0);
  job::scratch const dir;
  job::run j(
      cluster(2, 2,
              {"--use_async", "--num_epochs=4", "--validation_data=" + job::data().validation,
               "--evaluation_steps=50", "--checkpoint_dir=" + dir / "checkpoints", "--checkpoint_steps=10"}),
      slow);
  // Each loss waits for progress after the one before, so that the job gets on.
  for (std::uint64_t i = 0; i < 6; ++i) {
    if (!j.says("Checkpoint of version ", count(j.log(), "Checkpoint of version ") + 1)) break;
    auto const all = j.processes();
    std::vector<job::process> victims;
    for (job::process const& p : all)
      if (p.role == (i % 3 == 2 ? "ps" : "worker")) victims.push_back(p);
    if (victims.empty()) continue;
    ::kill(victims[random.below(victims.size(), i)].pid, i % 2 ? SIGTERM : SIGKILL);
  }
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  std::string const log = j.log();
  CAPTURE(log);
  CHECK(count(log, " is lost: ") >= 3);
  check_account(log, 4);
  check_ledgers(dir / "checkpoints", 4, 2);
  CHECK(last_accuracy(log) > 0.8);
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

TEST_CASE("members outlast a master that is away, whatever becomes of its journal, and nothing is lost") {
  for (std::string const what : {"intact", "damaged", "gone"}) {
    CAPTURE(what);
    job::scratch const dir;
    job::environment const common{{"EDL_JOB_NAME", "by-hand"},
                                  {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"}};
    job::kept_port const port;
    auto const command = cluster(2, 1,
                                 {"--use_async", "--num_epochs=4", "--checkpoint_dir=" + dir / "checkpoints",
                                  "--port=" + std::to_string(port.number())});
    auto const role = [&](job::environment more) {
      more.insert(more.end(), common.begin(), common.end());
      more.insert(more.end(), slow.env.begin(), slow.env.end());
      return std::make_unique<job::run>(command, job::options{.env = more});
    };
    auto master = role({{"EDL_ROLE", "master"}});
    REQUIRE(master->says("listens at "));
    std::string const where = "127.0.0.1:" + std::to_string(port.number());
    auto const ps0 = role({{"EDL_ROLE", "ps"}, {"PS_ID", "0"}, {"MASTER_ADDR", where}});
    auto const ps1 = role({{"EDL_ROLE", "ps"}, {"PS_ID", "1"}, {"MASTER_ADDR", where}});
    auto const worker = role({{"EDL_ROLE", "worker"}, {"WORKER_ID", "0"}, {"MASTER_ADDR", where}});
    REQUIRE(master->says(" completed, ", 4));
    ::kill(master->pid(), SIGKILL);
    CHECK(master->wait() == 128 + SIGKILL);
    for (auto const* r : {&ps0, &ps1, &worker})
      REQUIRE((*r)->says("waits for the master, which has not answered"));
    std::string const journal = dir / "checkpoints/master.json";
    if (what == "damaged") {
      std::string bytes = slurp(journal);
      bytes[bytes.size() / 2] ^= 1;
      std::ofstream(journal, std::ios::binary) << bytes;
    } else if (what == "gone") {
      std::filesystem::remove(journal);
      std::filesystem::remove(journal + ".before");
    }
    auto const next = role({{"EDL_ROLE", "master"}});
    for (auto const* r : {&next, &ps0, &ps1, &worker}) CHECK((*r)->wait() == 0);
    std::string const log = next->log();
    CAPTURE(log);
    CAPTURE(ps0->log());
    CAPTURE(worker->log());
    check_account(log, 4);
    check_ledgers(dir / "checkpoints", 4, 2);
    CHECK(has(worker->log(), "the master answers again, after "));
    CHECK(has(log, "Going on at version "));
    CHECK_FALSE(has(log, "Going back to version"));
    CHECK(has(log, "its journal was lost or is an older one") == (what == "gone"));
    CHECK(has(log, "this master goes by the journal before") == (what == "damaged"));
    // Going above what members know is for a journal that lacks it.
    if (what != "damaged") CHECK(has(ps0->log(), "generation 2: "));
    CHECK_FALSE(std::filesystem::exists(journal));
    CHECK_FALSE(std::filesystem::exists(journal + ".before"));
  }
}

TEST_CASE("a server that is killed before any checkpoint: everything starts again, and counts once") {
  job::scratch const dir;
  job::run j(cluster(2, 2, {"--use_async", "--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints"}),
             slow);
  reach_middle(j);
  ::kill(j.find("ps", 0), SIGKILL);
  CHECK(j.says("Going back to version 0, 0 records done"));
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  std::string const log = j.log();
  CAPTURE(log);
  check_account(log, 2);
  check_ledgers(dir / "checkpoints", 2, 2);
}

TEST_CASE("a job without a checkpoint directory survives the loss of a server, too") {
  job::scratch const dir;
  job::run j(cluster(2, 1, {"--num_epochs=1", "--output=" + dir / "model"}), slow);
  reach_middle(j, 2);
  ::kill(j.find("ps", 1), SIGKILL);
  CHECK(j.wait() == 0);
  check_account(j.log(), 1);
  // One worker, from the seed again: as if nothing had been.
  CHECK(job::run(train({"--output=" + dir / "undisturbed"})).wait() == 0);
  CHECK(slurp(dir / "model/model.safetensors") == slurp(dir / "undisturbed/model.safetensors"));
}

TEST_CASE("a worker that is told to leave hands back what it has leased and is replaced") {
  job::scratch const dir;
  job::run j(cluster(1, 2, {"--use_async", "--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"}),
             slow);
  reach_middle(j);
  ::kill(j.find("worker", 0), SIGTERM);
  CHECK(j.says("[worker-0] told to stop: what was leased has been handed back"));
  CHECK(j.says("worker 2 joined"));
  CHECK(j.wait() == 0);
  CHECK(j.nothing_left());
  std::string const log = j.log();
  CAPTURE(log);
  CHECK(has(log, "; 0 tasks go to others"));
  check_account(log, 3);
  check_ledgers(dir / "checkpoints", 3, 1);
}

TEST_CASE("a signal to the command ends the whole job") {
  for (int signal : {SIGINT, SIGTERM}) {
    job::run j(cluster(2, 2, {"--num_epochs=0"}), slow);
    reach_middle(j);
    ::kill(j.pid(), signal);
    CHECK(j.wait(20s) == 128 + signal);
    CHECK(j.nothing_left());
    CAPTURE(j.log());
    CHECK(has(j.log(), "stopped by "));
  }
}

TEST_CASE("Ctrl-C on a terminal, which reaches every process, ends the job") {
  job::run j(cluster(2, 2, {"--num_epochs=0"}), slow);
  reach_middle(j);
  for (job::process const& p : j.processes()) ::kill(p.pid, SIGINT);
  CHECK(j.wait(20s) == 128 + SIGINT);
  CHECK(j.nothing_left());
}

TEST_CASE("nothing survives the command, whatever kills it") {
  job::run j(cluster(2, 2, {"--num_epochs=0"}), slow);
  reach_middle(j);
  CHECK(j.processes().size() == 6);
  ::kill(j.pid(), SIGKILL);
  CHECK(j.wait() == 128 + SIGKILL);
  CHECK(j.nothing_left(5s));
}

TEST_CASE("servers with backups: the loss of one loses nothing, and nobody goes back") {
  for (std::string const mode : {"--use_async", "--grads_to_wait=2"}) {
    job::scratch const dir;
    job::run j(
        cluster(3, 2, {mode, "--ps_replicas=2", "--num_epochs=4", "--checkpoint_dir=" + dir / "checkpoints"}),
        slow);
    for (int victim : {1, 0}) {
      reach_middle(j, victim == 1 ? 4 : 12);
      std::vector<pid_t> const workers{j.find("worker", 0), j.find("worker", 1)};
      ::kill(j.find("ps", victim), SIGKILL);
      CHECK(j.says("server " + std::to_string(victim) + " joined", 2));
      CHECK(workers == std::vector<pid_t>{j.find("worker", 0), j.find("worker", 1)});
    }
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK_FALSE(has(log, "Going back to version"));
    check_account(log, 4);
    check_ledgers(dir / "checkpoints", 4, 3);
  }
}

TEST_CASE("a server that is silent is left behind with its copy in place, and found out when it wakes") {
  job::run j(cluster(2, 2, {"--use_async", "--ps_replicas=2", "--num_epochs=8"}), slow);
  reach_middle(j, 4);
  pid_t const silent = j.find("ps", 1);
  REQUIRE(silent);
  ::kill(silent, SIGSTOP);
  CHECK(j.says("server 1 is lost: it gave no sign of life"));
  CHECK(j.says("Going on at version "));
  // While it still says nothing: those who waited for it do not any more.
  auto const done = count(j.log(), " completed, ");
  CHECK(j.says(" completed, ", done + 5));
  ::kill(silent, SIGCONT);
  CHECK(j.wait(120s) == 0);
  CHECK(j.nothing_left());
  CAPTURE(j.log());
  CHECK_FALSE(has(j.log(), "Going back to version"));
  check_account(j.log(), 8);
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
  CHECK(j.says("told to stop: what was leased has been handed back", 2));
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

TEST_CASE("a killed master is replaced; servers, workers and what they have done stay") {
  for (std::string const mode : {"--use_async", "--grads_to_wait=2"}) {
    job::scratch const dir;
    job::run j(cluster(2, 2, {mode, "--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"}), slow);
    std::vector<pid_t> before;
    for (std::size_t kill = 0; kill < 2; ++kill) {
      reach_middle(j, 4 * (kill + 1));
      std::vector<pid_t> const now{j.find("ps", 0), j.find("ps", 1), j.find("worker", 0),
                                   j.find("worker", 1)};
      CHECK((kill == 0 || now == before));
      before = now;
      ::kill(j.find("master"), SIGKILL);
      CHECK(j.says("this one takes its place", kill + 1));
      CHECK(j.says("Going on at version", kill + 1));
    }
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK_FALSE(has(log, "Going back to version"));
    check_account(log, 3);
    check_ledgers(dir / "checkpoints", 3, 2);
  }
}

TEST_CASE("a master that is killed again and again ends the job") {
  job::run j(cluster(1, 1, {"--num_epochs=0"}), slow);
  reach_middle(j);
  pid_t last = 0;
  while (!j.ended()) {
    pid_t const now = j.find("master");
    if (now != 0 && now != last) ::kill(last = now, SIGKILL);
    std::this_thread::sleep_for(5ms);
  }
  CHECK(j.wait(20s) == 128 + SIGKILL);
  CHECK(j.nothing_left(5s));
  CHECK(has(j.log(), "the master was killed by signal 9, for the 6th time within a minute"));
}

TEST_CASE("workers that always fail end the job, with their reason") {
  for (std::string const how : {"throw", "abort"}) {
    job::run j(cluster(1, 2, {"--relaunch_on_worker_failure=1"}), {.env = {{"TINY_FAILS", how}}});
    CHECK(j.wait() == 1);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    std::string const last = log.substr(log.rfind("tiny: "));
    CHECK(has(last, how == "throw" ? "this worker was told to fail" : "signal 6"));
    if (how == "abort") {
      CHECK(has(log, "worker 3 failed too often"));
      CHECK_FALSE(has(log, "worker 4 joined"));
    }
  }
}

TEST_CASE("what any number of servers wrote, any number restores: predictions are the same bits") {
  job::scratch const dir;
  CHECK(job::run(cluster(4, 1, {"--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints"})).wait() == 0);
  lines const from{"--checkpoint_dir_for_init=" + dir / "checkpoints/version-128", "--minibatch_size=32",
                   "--num_minibatches_per_task=4"};
  std::string wanted, metrics;
  for (lines const& how :
       {lines{}, {"--num_ps_pods=1", "--num_workers=1"}, {"--num_ps_pods=3", "--num_workers=2"}}) {
    CAPTURE(how);
    lines predict{"predict", "--prediction_data=" + job::data().validation,
                  "--prediction_outputs=" + dir / "out"},
        evaluate{"evaluate", "--validation_data=" + job::data().validation};
    for (lines* line : {&predict, &evaluate}) {
      line->insert(line->end(), from.begin(), from.end());
      line->insert(line->end(), how.begin(), how.end());
    }
    std::filesystem::remove_all(dir / "out");
    job::run p(predict);
    CHECK(p.wait() == 0);
    CHECK(p.nothing_left());
    CAPTURE(p.log());
    for (char const* part :
         {"out/part-00000.csv", "out/part-00001.csv", "out/part-00002.csv", "out/part-00003.csv"})
      CHECK(count(slurp(dir / part), "\n") == 128);
    std::string const found = predictions(dir / "out");
    if (wanted.empty()) wanted = found;
    CHECK(found == wanted);

    job::run e(evaluate);
    CHECK(e.wait() == 0);
    CHECK(e.nothing_left());
    CAPTURE(e.log());
    auto const at = e.log().find("Evaluation metrics[v=128]: {'accuracy': ");
    REQUIRE(at != std::string::npos);
    std::string const line = e.log().substr(at, e.log().find('\n', at) - at);
    if (metrics.empty()) metrics = line;
    CHECK(line == metrics);
    CHECK(last_accuracy(line) > 0.8);
  }
  CHECK(count(wanted, "\n") == 512);
  CHECK(count(wanted, ",") == 2 * 512);
}

TEST_CASE("a job goes on from its checkpoints, with another number of servers if need be") {
  job::scratch const dir;
  std::string const checkpoints = "--checkpoint_dir=" + dir / "checkpoints";
  CHECK(job::run(cluster(3, 2, {checkpoints, "--num_epochs=1"})).wait() == 0);
  job::run second(cluster(2, 2, {checkpoints, "--num_epochs=2"}));
  CHECK(second.wait() == 0);
  std::string const log = second.log();
  CAPTURE(log);
  CHECK(has(log, "going on from " + dir / "checkpoints/version-64"));
  CHECK(count(log, " completed, ") == 16);
  CHECK_FALSE(has(log, "Starting epoch 0"));
  check_ledgers(dir / "checkpoints", 2, 2);
}

TEST_CASE("a job that was stopped goes on from its newest checkpoint, to the last record") {
  job::scratch const dir;
  lines const flags{"--use_async", "--num_epochs=2", "--checkpoint_dir=" + dir / "checkpoints",
                    "--checkpoint_steps=16"};
  {
    job::run j(cluster(2, 2, flags), slow);
    REQUIRE(j.says("Checkpoint of version ", 2));
    ::kill(j.pid(), SIGKILL);
    CHECK(j.nothing_left(5s));
  }
  job::run j(cluster(2, 2, flags));
  CHECK(j.wait() == 0);
  std::string const log = j.log();
  CAPTURE(log);
  CHECK(has(log, "going on from "));
  check_account(log, 2);
  check_ledgers(dir / "checkpoints", 2, 2);
}
