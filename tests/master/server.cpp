// SPDX-License-Identifier: Apache-2.0
#include "edl/master/server.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "edl/core/error.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"
#include "master/held_disk.hpp"
#include "net/peers.hpp"
#include "wire/scratch.hpp"

namespace server_test {

using namespace edl::master;
using namespace std::chrono_literals;
using edl::net::call_error;
using edl::net::status;
namespace method = edl::wire::method;

namespace {

bool eventually(std::function<bool()> const& condition) {
  auto const until = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// A server's process: what it answers is a test's business.
struct server_process {
  using handler = std::function<std::string(std::uint16_t method, edl::bytes message)>;

  explicit server_process(handler h) : answer(std::move(h)) {}

  handler answer;
  std::atomic<int> asked{0};
  edl::net::node node{peers::options()};
  edl::net::listener listener{node, {peers::any_port()}, [this](edl::net::request& r) { return handle(r); }};

  asio::awaitable<void> handle(edl::net::request& r) {
    ++asked;
    std::string const reply = answer(r.method(), r.message());
    co_await r.reply(reply);
  }
};

std::string configured() { return edl::wire::pack(edl::wire::ConfigureReply{}); }

/// A master of a job with one server and one worker.
struct master_process {
  explicit master_process(std::function<void(server_options&)> const& change = {}) {
    server_options o{.job = {}, .layout = layout, .journal = journal("", "run")};
    o.job.training = {{"t", 20}};
    o.job.minibatch_size = 2;
    o.job.minibatches_per_task = 2;
    o.job.num_workers = 1;
    o.job.num_servers = 1;
    o.job.silence = std::chrono::hours(1);
    o.storage_pause = 10ms;
    if (change) change(o);
    it = std::make_unique<server>(
        node, std::move(o),
        callbacks{.replace = [this](role, std::uint32_t, std::uint32_t) { replaces(); },
                  .start = [](role, std::uint32_t, std::optional<std::uint32_t>) {},
                  .stop = [](role, std::uint32_t) {},
                  .evaluated = [](evaluation_result const&) { return false; },
                  .ended = [this](std::string const& why) { set(ended, why); },
                  .waits =
                      [this](std::string const& what) {
                        if (!get(first_waits)) set(first_waits, what);
                        set(waits, what);
                      }},
        edl::logger(edl::severity::info, "", log.fd));
    listener = std::make_unique<edl::net::listener>(node, std::vector{peers::any_port()},
                                                    [this](edl::net::request& r) { return it->handle(r); });
    node.spawn([this] { return it->tick(); });
  }
  ~master_process() { node.stop(); }

  void set(std::optional<std::string>& what, std::string const& to) {
    std::lock_guard const guard(lock);
    what = to;
  }
  std::optional<std::string> get(std::optional<std::string> const& what) {
    std::lock_guard const guard(lock);
    return what;
  }

  template <class F>
  auto on_node(F work) {
    std::packaged_task<std::invoke_result_t<F>()> task(work);
    auto result = task.get_future();
    node.post([&task] { task(); });
    return result.get();
  }
  bool ready() {
    return on_node([this] { return it->decisions().ready(); });
  }

  template <class Request>
  std::string ask(std::uint16_t method, Request const& request) {
    edl::net::node client(peers::options());
    edl::net::channel to(client, listener->addresses(), "the master");
    edl::net::outgoing what{.method = method, .message = edl::wire::pack(request), .timeout = 30s};
    return edl::net::wait(to, std::move(what)).message;
  }

  bool join_worker() {
    edl::wire::JoinRequest r;
    r.set_role(edl::wire::JoinRequest::WORKER);
    r.set_incarnation(1);
    return edl::wire::unpack<edl::wire::JoinReply>(ask(method::join, r), "master").accepted();
  }

  bool join(server_process const& s, std::uint64_t incarnation = 1, std::uint32_t id = 0) {
    edl::wire::JoinRequest r;
    r.set_id(id);
    r.set_role(edl::wire::JoinRequest::SERVER);
    r.set_incarnation(incarnation);
    for (auto const& a : s.listener.addresses()) r.add_addresses(edl::net::to_string(a));
    return edl::wire::unpack<edl::wire::JoinReply>(ask(method::join, r), "master").accepted();
  }

  struct log_file {
    int fd = ::memfd_create("log", MFD_CLOEXEC);
    ~log_file() { ::close(fd); }
  } log;
  std::string said() const { return slurp("/proc/self/fd/" + std::to_string(log.fd)); }

  edl::parameter_layout layout{{{"w", {4}, 0}}, 4, 0};
  std::function<void()> replaces = [] {};  // on the node's thread
  std::mutex lock;
  std::optional<std::string> ended, waits, first_waits;
  edl::net::node node{peers::options()};
  std::unique_ptr<server> it;
  std::unique_ptr<edl::net::listener> listener;
};

/// A file that cannot be opened for a reason that may pass.
void make_unreadable(std::string const& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof name.sun_path);
  path.copy(name.sun_path, path.size());
  int const fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr const*>(&name), sizeof name) == 0);
  ::close(fd);
}

}  // namespace

TEST_CASE("a server that does not answer at first is asked again until it does, whatever it says") {
  for (status const code :
       {status::not_ready, status::unavailable, status::deadline_exceeded, status::unauthenticated}) {
    CAPTURE(int(code));
    server_process s([&](std::uint16_t, edl::bytes) -> std::string {
      if (s.asked < 4) throw call_error(code, "not now");
      return configured();
    });
    master_process m;
    CHECK(m.join(s));
    CHECK(eventually([&] { return m.ready(); }));
    CHECK(s.asked == 4);
  }
}

TEST_CASE("an order to a server that is gone is void") {
  server_process lost(
      [&](std::uint16_t, edl::bytes) -> std::string { throw call_error(status::not_ready, "never"); });
  server_process next([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m([](server_options& o) { o.step_timeout = 50ms; });
  CHECK(m.join(lost));
  REQUIRE(eventually([&] { return lost.asked >= 2; }));
  CHECK(m.join(next, 2));
  CHECK(eventually([&] { return m.ready(); }));
  // It is waited for no more, and asked at most once more.
  int const asked = lost.asked;
  REQUIRE(eventually([&] { return m.get(m.waits).value_or("") != ""; }));
  REQUIRE(eventually([&] { return m.get(m.waits)->find("ps-0 to answer") == std::string::npos; }));
  CHECK(lost.asked <= asked + 1);
}

TEST_CASE("what a job waits for is told when it makes no step, and taken back when it does") {
  std::atomic<bool> willing{false};
  server_process s([&](std::uint16_t, edl::bytes) -> std::string {
    if (!willing) throw call_error(status::not_ready, "the disk is busy");
    return configured();
  });
  master_process m([](server_options& o) { o.step_timeout = 300ms; });
  CHECK(
      eventually([&] { return m.get(m.first_waits) == ""; }));  // what another master has left is taken back
  CHECK(m.join(s));
  CHECK(eventually([&] {
    auto const told = m.get(m.waits).value_or("");
    return told.starts_with("no step for ") &&
           told.find("server 0 to take the state of generation 1; ps-0 to answer 'configure' (for ") !=
               std::string::npos &&
           told.find("the disk is busy") != std::string::npos;
  }));
  willing = true;
  CHECK(eventually([&] { return m.ready(); }));
  CHECK(eventually([&] { return m.get(m.waits)->find("'configure'") == std::string::npos; }));
}

TEST_CASE("a server that lives and can never be reached ends the job, with the reason") {
  server_process s([](std::uint16_t, edl::bytes) -> std::string {
    throw call_error(status::unavailable, "no way to it");
  });
  master_process m([](server_options& o) { o.order_timeout = 200ms; });
  CHECK(m.join(s));
  CHECK(eventually([&] { return m.get(m.ended).has_value(); }));
  CHECK(m.get(m.ended)->find("server 0 cannot take the state of ") == 0);
  CHECK(m.get(m.ended)->find("no way to it") != std::string::npos);
}

TEST_CASE("a server at a newer generation than it is told to take is told of one above it") {
  std::atomic<std::uint64_t> taken{0};
  server_process s([&](std::uint16_t, edl::bytes message) -> std::string {
    auto const r = edl::wire::unpack<edl::wire::ConfigureRequest>(message, "master");
    if (r.generation() <= 40) throw call_error(status::stale_generation, "already at generation 40");
    taken = r.generation();
    return configured();
  });
  master_process m;
  CHECK(m.join(s));
  CHECK(eventually([&] { return m.ready(); }));
  CHECK(taken > 40);
}

TEST_CASE("a checkpoint directory that cannot be read for a while keeps the job waiting, and no longer") {
  scratch const dir;
  std::string const path = dir.path + "/version-5/manifest.json";
  std::filesystem::create_directories(dir.path + "/version-5");
  make_unreadable(path);
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m([&](server_options& o) {
    o.checkpoint_dir = dir.path;
    o.step_timeout = 100ms;
  });
  CHECK(m.join(s));
  REQUIRE(eventually([&] { return m.ready(); }));
  m.on_node([&] { m.it->exited(role::server, 0, exit_kind::preempted, "was killed"); });
  CHECK(m.join(s, 2));
  CHECK(eventually([&] {
    return m.get(m.waits).value_or("").find("the storage to answer '" + dir.path + "'") != std::string::npos;
  }));
  CHECK_FALSE(m.ready());
  std::filesystem::remove(path);
  CHECK(eventually([&] { return m.ready(); }));
  CHECK_FALSE(m.get(m.ended));
}

TEST_CASE("a checkpoint directory that stays unreadable ends the job, with the reason") {
  scratch const dir;
  std::filesystem::create_directories(dir.path + "/version-5");
  make_unreadable(dir.path + "/version-5/manifest.json");
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m([&](server_options& o) {
    o.checkpoint_dir = dir.path;
    o.order_timeout = 200ms;
  });
  CHECK(m.join(s));
  REQUIRE(eventually([&] { return m.ready(); }));
  m.on_node([&] { m.it->exited(role::server, 0, exit_kind::preempted, "was killed"); });
  CHECK(eventually([&] { return m.get(m.ended).has_value(); }));
  CHECK(m.get(m.ended)->find("no checkpoint in " + dir.path + " can be looked for: ") == 0);
}

TEST_CASE("a checkpoint that is written counts, whatever becomes of those that are too old") {
  scratch const dir;
  std::filesystem::create_directories(dir.path + "/version-4");
  server_process s([&](std::uint16_t what, edl::bytes) -> std::string {
    if (what == method::configure) return configured();
    if (what == method::release) return edl::wire::pack(edl::wire::Empty{});
    edl::wire::CheckpointReply reply;
    auto& part = *reply.add_files();
    spill(dir.path + "/version-5/part", "x");
    part.set_name("part");
    part.set_bytes(1);
    part.set_version(5);
    return edl::wire::pack(reply);
  });
  master_process m([&](server_options& o) {
    o.checkpoint_dir = dir.path;
    o.job.checkpoint = true;
    o.keep_checkpoint_max = 1;
    // Of what is asked for, the removal comes after the commit.
    o.allowed = [&] {
      if (std::filesystem::exists(dir.path + "/version-5/manifest.json")) throw edl::error("no more");
    };
  });
  CHECK(m.join(s));
  REQUIRE(eventually([&] { return m.ready(); }));
  edl::wire::VersionReport r;
  r.set_generation(1);
  r.set_version(5);
  r.set_checkpoint(true);
  m.ask(method::version, r);
  CHECK(eventually([&] { return m.said().find("heckpoint of version 5 ") != std::string::npos; }));
  CAPTURE(m.said());
  CHECK(m.said().find("Checkpoint of version 5 written") != std::string::npos);
  CHECK(m.said().find("old checkpoints in " + dir.path + " cannot be removed: no more") != std::string::npos);
}

TEST_CASE("what the servers have written of a generation that is over becomes no checkpoint") {
  scratch const dir;
  master_process* master = nullptr;
  server_process s([&](std::uint16_t what, edl::bytes message) -> std::string {
    if (what != method::checkpoint) return configured();
    auto const request = edl::wire::unpack<edl::wire::CheckpointRequest>(message, "the master");
    spill(request.path() + "/part", "x");
    // It ends, and the answer is on its way.
    if (request.version() == 5)
      master->on_node([&] { master->it->exited(role::server, 0, exit_kind::preempted, "killed"); });
    edl::wire::CheckpointReply reply;
    auto& part = *reply.add_files();
    part.set_name("part");
    part.set_bytes(1);
    part.set_version(request.version());
    return edl::wire::pack(reply);
  });
  master_process m([&](server_options& o) {
    o.checkpoint_dir = dir.path;
    o.job.checkpoint = true;
  });
  master = &m;
  for (std::uint64_t const generation : {1, 2}) {
    CHECK(m.join(s, generation));
    REQUIRE(eventually([&] { return m.ready(); }));
    edl::wire::VersionReport r;
    r.set_generation(generation);
    r.set_version(4 + generation);
    r.set_checkpoint(true);
    m.ask(method::version, r);
    REQUIRE(eventually([&] {
      return generation == 1 ? m.on_node([&] { return m.it->decisions().generation(); }) == 2
                             : m.said().find("Checkpoint of version 6 written") != std::string::npos;
    }));
  }
  CHECK_FALSE(std::filesystem::exists(dir.path + "/version-5/manifest.json"));
}

TEST_CASE("a job that is suspended while one server is a step ahead is written, each as far as it is") {
  scratch const dir;
  auto const server_at = [&](std::uint64_t version) {
    return [&dir, version](std::uint16_t what, edl::bytes message) -> std::string {
      if (what == method::configure) return configured();
      if (what == method::settle) {
        edl::wire::SettleReply reply;
        reply.set_version(version);
        return edl::wire::pack(reply);
      }
      if (what != method::checkpoint) return edl::wire::pack(edl::wire::Empty{});
      auto const request = edl::wire::unpack<edl::wire::CheckpointRequest>(message, "the master");
      if (request.version() > version) throw call_error(status::not_ready, "waits for a step");
      edl::wire::CheckpointReply reply;
      auto& part = *reply.add_files();
      std::string const name = "part-" + std::to_string(version);
      spill(request.path() + "/" + name, "x");
      part.set_name(name);
      part.set_bytes(1);
      part.set_version(version);
      return edl::wire::pack(reply);
    };
  };
  server_process first(server_at(5)), second(server_at(6));
  master_process m([&](server_options& o) {
    o.checkpoint_dir = dir.path;
    o.job.num_servers = 2;
    o.job.checkpoint = o.job.final_checkpoint = true;
    o.order_timeout = 1s;
  });
  CHECK(m.join(first));
  CHECK(m.join(second, 1, 1));
  REQUIRE(eventually([&] { return m.ready(); }));
  m.on_node([&] { m.it->suspend(); });
  REQUIRE(eventually([&] { return m.get(m.ended).has_value(); }));
  CAPTURE(m.said());
  CHECK(m.said().find("Checkpoint of version 6 written") != std::string::npos);
  CHECK(m.said().find("is lost") == std::string::npos);
}

TEST_CASE("a journal whose disk comes back is written without another event") {
  scratch const dir;
  std::string const path = dir.path + "/gone/journal.json";
  master_process m([&](server_options& o) { o.journal = journal(path, "run"); });
  m.on_node([&] { m.it->listens_at({"tcp:127.0.0.1:1"}); });
  CHECK_FALSE(std::filesystem::exists(path));
  std::filesystem::create_directories(dir.path + "/gone");
  CHECK(eventually([&] { return std::filesystem::exists(path); }));
  CHECK(journal(path, "run").read()->generation == 1);
}

TEST_CASE("what the process around a master cannot do any more ends the job with its reason") {
  master_process m;
  m.on_node([&] { m.it->fail("the cluster cannot be followed"); });
  CHECK(eventually([&] { return m.get(m.ended) == "the cluster cannot be followed"; }));
}

TEST_CASE("a decision that cannot be carried out ends the job, though nobody calls the master any more") {
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m;
  m.replaces = [] { throw edl::error("no more processes"); };
  m.on_node([&] { m.it->exited(role::server, 0, exit_kind::preempted, "killed"); });
  REQUIRE(eventually([&] { return m.get(m.ended).has_value(); }));
  CHECK(m.get(m.ended) == "the master cannot do what it has decided: no more processes");
}

TEST_CASE("work that fails when the journal has what it waits for ends the job") {
  master_process m;
  m.on_node([&] { m.it->when_kept([] { throw edl::error("no more processes"); }); });
  REQUIRE(eventually([&] { return m.get(m.ended).has_value(); }));
  CHECK(m.get(m.ended) == "the master cannot do what it has decided: no more processes");
}

TEST_CASE(
    "while the disk stands still members are answered, and nobody hears of what is not in the journal") {
  scratch const dir;
  std::string const path = dir / "journal.json";
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  std::optional<held_disk::hold> disk(std::in_place);
  master_process m([&](server_options& o) {
    o.journal = journal(path, "run");
    o.step_timeout = 50ms;
  });
  CHECK(m.join(s));
  CHECK(m.join_worker());
  edl::wire::Heartbeat beat;
  beat.set_role(edl::wire::JoinRequest::SERVER);
  beat.set_incarnation(1);
  for (int i = 0; i < 10; ++i)
    CHECK(edl::wire::unpack<edl::wire::HeartbeatReply>(m.ask(method::heartbeat, beat), "master").known());
  CHECK(eventually(
      [&] { return m.get(m.waits).value_or("").find("the journal to be written") != std::string::npos; }));
  CHECK(s.asked == 0);
  CHECK_FALSE(std::filesystem::exists(path));
  // Who asks what a generation is part of waits, and is answered.
  edl::wire::TaskRequest task;
  task.set_incarnation(1);
  std::thread asks([&] {
    auto const reply = edl::wire::unpack<edl::wire::Task>(m.ask(method::task, task), "master");
    CHECK(journal(path, "run").read()->generation >= reply.generation());
  });
  disk.reset();
  asks.join();
  CHECK(eventually([&] { return m.ready(); }));
  CHECK(s.asked == 1);
}

TEST_CASE("a worker whose answer was lost gets the same again") {
  server_process s([](std::uint16_t, edl::bytes) { return configured(); });
  master_process m;
  CHECK(m.join(s));
  CHECK(m.join_worker());
  REQUIRE(eventually([&] { return m.ready(); }));
  auto const task = [&](std::uint64_t number) {
    edl::wire::TaskRequest r;
    r.set_incarnation(1);
    r.set_number(number);
    return edl::wire::unpack<edl::wire::Task>(m.ask(method::task, r), "master");
  };
  auto const report = [&](std::uint64_t lease, std::uint64_t number) {
    edl::wire::TaskReport r;
    r.set_incarnation(1);
    r.set_lease(lease);
    r.set_number(number);
    return edl::wire::unpack<edl::wire::TaskReportReply>(m.ask(method::report, r), "master").accepted();
  };
  auto const first = task(1);
  CHECK(first.kind() == edl::wire::Task::TRAINING);
  CHECK(task(1).lease() == first.lease());
  CHECK(m.on_node([&] { return m.it->decisions().tasks()->leased(); }) == 1);
  auto const second = task(2);
  CHECK(second.lease() != first.lease());
  CHECK(report(first.lease(), 3));
  CHECK(report(first.lease(), 3));
  CHECK_FALSE(report(first.lease(), 4));
  CHECK_THROWS_AS(task(2), call_error);  // an old one that was on its way for long changes nothing
  CHECK(m.on_node([&] { return m.it->decisions().tasks()->leased(); }) == 1);
}

}  // namespace server_test
