// SPDX-License-Identifier: Apache-2.0
// Jobs of which machines are taken away with notice.
#include <fstream>
#include <map>
#include <memory>

#include "app/tiny_job.hpp"

namespace notice_job_test {

using namespace tiny;

namespace {

/// A job whose roles are started by hand, each on a machine of its own: a file there is the notice.
class machines {
 public:
  explicit machines(lines command) : command_(std::move(command)) {
    job::run& master = start("master", 0, {{"EDL_ROLE", "master"}});
    REQUIRE(master.says("listens at "));
    std::string const log = master.log();
    auto const at = log.find("tcp:", log.find("listens at ")) + 4;
    where_ = log.substr(at, log.find('\n', at) - at);
  }

  job::run& server(int id, job::environment more = {}) {
    more.insert(more.end(), {{"EDL_ROLE", "ps"}, {"PS_ID", std::to_string(id)}});
    return start("ps", id, std::move(more));
  }
  job::run& worker(int id) {
    return start("worker", id, {{"EDL_ROLE", "worker"}, {"WORKER_ID", std::to_string(id)}});
  }

  job::run& master() { return *runs_.front(); }
  std::vector<std::unique_ptr<job::run>>& all() { return runs_; }

  /// Of the newest process with this number.
  void give_notice(std::string const& role, int id) { std::ofstream(files_.at({role, id})) << "soon\n"; }

 private:
  job::run& start(std::string const& role, int id, job::environment more) {
    std::string const file = dir_ / (role + "-" + std::to_string(runs_.size()));
    files_[{role, id}] = file;
    more.insert(more.end(), {{"EDL_JOB_NAME", "by-hand"},
                             {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"},
                             {"MASTER_ADDR", where_}});
    more.insert(more.end(), held.env.begin(), held.env.end());
    lines line = command_;
    line.push_back("--preemption_notice=file:" + file);
    runs_.push_back(std::make_unique<job::run>(line, job::options{.env = more}));
    return *runs_.back();
  }

  scratch dir_;
  lines command_;
  std::string where_;
  std::map<std::pair<std::string, int>, std::string> files_;
  std::vector<std::unique_ptr<job::run>> runs_;
};

}  // namespace

TEST_CASE("machines of a worker and a server are taken away with notice: nobody goes back or starts again") {
  for (lines const& how : {lines{"--use_async"}, lines{"--grads_to_wait=2"}}) {
    job::scratch const dir;
    lines more = how;
    more.insert(more.end(), {"--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"});
    machines m(cluster(2, 2, more));
    std::vector<job::run*> const stay{&m.server(0), &m.worker(0)};
    job::run &server = m.server(1), &worker = m.worker(1);
    REQUIRE(m.master().says(" completed, ", 2));
    m.give_notice("worker", 1);
    CHECK(m.master().says("worker 1 is about to leave: it has notice: file "));
    CHECK(m.master().says("start worker 2: the roles of this job are started by hand"));
    CHECK(m.master().says("worker 1 has left"));
    ::kill(worker.pid(), SIGKILL);
    m.worker(2);
    CHECK(m.master().says("worker 2 joined"));
    m.give_notice("ps", 1);
    CHECK(m.master().says("server 1 is about to leave: it has notice: file "));
    CHECK(m.master().says("Going on at version "));
    ::kill(server.pid(), SIGKILL);
    m.server(1);
    CHECK(m.master().says("Going on at version ", 2));
    for (auto const& r : m.all()) r->open_gate();
    for (auto const& r : m.all())
      if (r.get() != &server && r.get() != &worker) CHECK(r->wait() == 0);
    std::string const log = m.master().log();
    CAPTURE(log);
    CHECK_FALSE(has(log, "Going back to"));
    CHECK_FALSE(has(log, " is lost"));
    CHECK_FALSE(has(log, "[ERROR]"));
    for (job::run const* r : stay) CHECK(count(r->log(), "joined the job") == 1);
    check_account(log, 3);
    check_ledgers(dir / "checkpoints", 3, 2);
  }
}

TEST_CASE("the machine of a worker with a copy of the model is taken away with notice") {
  job::scratch const dir;
  machines m(replicas(2, {"--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"}));
  job::run &stays = m.worker(0), &goes = m.worker(1);
  REQUIRE(m.master().says(" completed, ", 2));
  m.give_notice("worker", 1);
  CHECK(m.master().says("worker 1 has left"));
  CHECK(goes.wait() == 0);
  m.worker(2);
  CHECK(m.master().says("worker 2 joined"));
  for (auto const& r : m.all()) r->open_gate();
  for (auto const& r : m.all()) CHECK(r->wait() == 0);
  std::string const log = m.master().log();
  CAPTURE(log);
  CHECK_FALSE(has(log, "Going back to"));
  CHECK_FALSE(has(log, " is lost"));
  CHECK(count(stays.log(), "joined the job") == 1);
  check_account(log, 3);
  check_ledgers(dir / "checkpoints", 3);
}

TEST_CASE("a server whose pod is told to stop stays until others have what it has") {
  job::scratch const dir;
  machines m(cluster(2, 1, {"--use_async", "--num_epochs=3", "--checkpoint_dir=" + dir / "checkpoints"}));
  m.server(0);
  job::run& drained = m.server(1, {{"EDL_PLATFORM", "kubernetes"},
                                   {"MY_POD_IP", "127.0.0.1"},
                                   {"MY_POD_NAME", "ps-1"},
                                   {"MY_POD_UID", "1"}});
  m.worker(0);
  REQUIRE(m.master().says(" completed, ", 2));
  ::kill(drained.pid(), SIGTERM);
  CHECK(drained.wait() == 0);
  CHECK(has(m.master().log(), "server 1 is about to leave: it has notice: Kubernetes stops its pod"));
  CHECK(has(m.master().log(), "Going on at version "));
  m.server(1);
  CHECK(m.master().says("Going on at version ", 2));
  for (auto const& r : m.all()) r->open_gate();
  for (auto const& r : m.all()) CHECK(r->wait() == 0);
  std::string const log = m.master().log();
  CAPTURE(log);
  CHECK_FALSE(has(log, "Going back to"));
  CHECK_FALSE(has(log, " is lost"));
  check_account(log, 3);
  check_ledgers(dir / "checkpoints", 3, 2);
}

TEST_CASE("one command starts all on this machine, which hands nothing over") {
  job::scratch const dir;
  std::ofstream(dir / "notice").close();
  job::run j(cluster(1, 2, {"--use_async", "--num_epochs=1", "--preemption_notice=file:" + dir / "notice"}));
  CHECK(j.wait() == 0);
  CHECK(has(j.log(), "--preemption_notice has no effect: all processes of this job are on this machine"));
  CHECK_FALSE(has(j.log(), "notice: file"));
}

}  // namespace notice_job_test
