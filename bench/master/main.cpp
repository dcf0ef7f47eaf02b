// SPDX-License-Identifier: Apache-2.0
// What one master can carry: a real one in a process of its own, and workers that do all but compute: they
// join over TLS, send heartbeats, wait for generations, lease tasks and report them, enter worlds and are
// lost. Processor time is the master's own, so that what else the machine does hardly counts.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "edl/base/net/channel.hpp"
#include "edl/base/net/listener.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/cli/program.hpp"
#include "edl/core/error.hpp"
#include "edl/core/layout.hpp"
#include "edl/job/master/server/server.hpp"

namespace {

using namespace std::chrono_literals;
namespace net = edl::net;
namespace wire = edl::wire;
using clock_type = std::chrono::steady_clock;
using edl::cli::flag;
using wire::method::enter, wire::method::heartbeat, wire::method::join, wire::method::report,
    wire::method::task, wire::method::watch;

double seconds_since(clock_type::time_point t) {
  return std::chrono::duration<double>(clock_type::now() - t).count();
}

struct setting {
  std::uint32_t workers = 1000;
  double seconds = 5;
  bool replicas = false;  ///< all-reduce: worlds, and no servers
};

net::node_options options() {
  return {.job = "bench-master",
          .secret = net::token("the token of a benchmark"),
          .log = edl::logger(edl::severity::error)};
}

/// Nothing starts and ends processes here.
struct no_platform : edl::platform::platform {
  void start(edl::process_id, std::optional<std::uint32_t>) override {}
  void stop(edl::process_id, std::chrono::milliseconds) override {}
  std::string avoid(edl::process_id, std::string const&) override { return {}; }
  void stop_all(std::chrono::milliseconds) override {}
  void waits(std::string const&) override {}
};

/// The master, in a process that ends with this one.
class master_process {
 public:
  explicit master_process(setting const& s) {
    int ends[2];
    if (::pipe(ends) != 0 || (id_ = ::fork()) < 0) throw edl::error("no process can be started");
    if (id_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      serve(s, ends[1]);
    }
    ::close(ends[1]);
    std::array<char, 200> text{};
    auto const n = ::read(ends[0], text.data(), text.size());
    ::close(ends[0]);
    if (n <= 0) throw edl::error("the master did not begin");
    at_ = net::parse_address(std::string_view(text.data(), std::size_t(n)));
    if (::clock_getcpuclockid(id_, &clock_) != 0)
      throw edl::error("the master's processor time is not known");
    began_ = resident();
  }
  ~master_process() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  master_process(master_process const&) = delete;

  net::address const& at() const { return at_; }
  /// Seconds of processor time so far.
  double busy() const {
    timespec t{};
    ::clock_gettime(clock_, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  }
  /// Bytes since it began.
  double grown() const { return resident() - began_; }

 private:
  double resident() const {
    std::ifstream in(fmt::format("/proc/{}/statm", id_));
    double pages = 0;
    in >> pages >> pages;
    return pages * double(::sysconf(_SC_PAGESIZE));
  }

  [[noreturn]] static void serve(setting const& s, int to) {
    edl::parameter_layout const layout{{{"w", {4}, 0}}, 4, 0};
    edl::master::server_options o{
        .job = {}, .files = {.layout = layout}, .journal = edl::master::journal("", "run")};
    o.job.training = {{"records", std::uint64_t{512'000'000}}};
    o.job.num_epochs = 0;  // without end
    o.job.minibatch_size = 64;
    o.job.num_workers = s.workers;
    o.job.num_servers = s.replicas ? 0 : 1;
    o.job.replicas = s.replicas;
    o.job.gathering = 600s;  // the first world has all
    o.job.worker_failures = 1000;
    no_platform around;
    net::node node(options());
    edl::master::server it(node, std::move(o), {}, edl::logger(edl::severity::error));
    it.processes().use(around);
    net::listener const listener(node, {net::parse_address("tcp:127.0.0.1:0")},
                                 [&](net::request& r) { return it.handle(r); });
    std::string const where = net::place_of(listener.addresses()[0]);
    if (::write(to, where.data(), where.size()) != ssize_t(where.size())) std::_Exit(1);
    ::close(to);
    node.spawn([&] { return it.tick(); });
    auto end = it.processes().result();
    std::string const why = end.get().failure;
    fmt::print(stderr, "bench-master: the master has ended: {}\n", why);
    std::_Exit(1);
  }

  pid_t id_ = 0;
  clockid_t clock_{};
  double began_ = 0;
  net::address at_;
};

struct worker {
  std::uint32_t id = 0;
  std::uint64_t incarnation = 0, number = 0, world = 0;
  std::unique_ptr<net::channel> to;
  bool gone = false;
  wire::JoinRequest::Role role = wire::JoinRequest::WORKER;
};

/// All workers, and the only server, in one thread.
class workers {
 public:
  workers(setting const& s, master_process const& master)
      : set_(s),
        node_(options()),
        listener_(node_, {net::parse_address("tcp:127.0.0.1:0")}, &workers::answer) {
    for (std::uint32_t i = 0; i < s.workers; ++i) {
      auto w = std::make_unique<worker>();
      w->id = i;
      w->incarnation = i + 1;
      w->to = std::make_unique<net::channel>(node_, std::vector{master.at()}, "the master");
      all_.push_back(std::move(w));
    }
  }
  ~workers() {
    for (auto const& w : all_) w->gone = true;
    server_.gone = true;
    node_.stop();
  }

  void join_server(master_process const& master) {
    server_.to = std::make_unique<net::channel>(node_, std::vector{master.at()}, "the master");
    on_all(
        1,
        [this](worker&) -> asio::awaitable<void> {
          wire::JoinRequest r;
          r.set_role(wire::JoinRequest::SERVER);
          r.set_incarnation(1);
          r.add_addresses(net::place_of(listener_.addresses()[0]));
          auto const reply = co_await call<wire::JoinReply>(*server_.to, join, r);
          if (!reply.accepted()) throw edl::error(reply.reason());
          node_.spawn([this] { return beat(server_); });
        },
        1);
  }

  void join_all() {
    on_all(32, [this](worker& w) -> asio::awaitable<void> {
      wire::JoinRequest r;
      r.set_id(w.id);
      r.set_incarnation(w.incarnation);
      r.add_addresses(
          fmt::format("tcp:10.{}.{}.7:41952!worker-{}/{:016x}", w.id >> 8, w.id & 255, w.id, w.incarnation));
      auto const reply = co_await call<wire::JoinReply>(*w.to, join, r);
      if (!reply.accepted()) throw edl::error(reply.reason());
      // From now on: a heartbeat each second, and a wait for the next generation, as of every process.
      node_.spawn([this, &w] { return beat(w); });
      node_.spawn([this, &w] { return watches(w); });
    });
  }

  /// Each worker enters, until all have a new world. Returns the bytes of the last reply.
  std::size_t enter_all(std::optional<std::uint32_t> suspect) {
    std::size_t bytes = 0;
    on_all(all_.size(), [&, suspect](worker& w) -> asio::awaitable<void> {
      if (w.gone) co_return;
      wire::EnterRequest r;
      r.set_worker(w.id);
      r.set_incarnation(w.incarnation);
      r.set_last(w.world);
      if (w.world > 0) {
        r.set_copy(true);
        r.set_version(1);
        r.set_of(w.world);
      }
      if (suspect) r.add_suspect(*suspect);
      while (true) {
        auto const reply = co_await call<wire::World>(*w.to, enter, r);
        if (!reply.known()) throw edl::error("the master has given a worker up");
        if (reply.number() <= w.world) continue;
        w.world = reply.number();
        bytes = reply.ByteSizeLong();
        co_return;
      }
    });
    return bytes;
  }

  /// Leases and reports without a pause, by `at_once` workers at a time, each in turn. Returns how many.
  std::size_t lease(std::size_t at_once, double seconds) {
    auto const until = clock_type::now() + std::chrono::duration_cast<clock_type::duration>(
                                               std::chrono::duration<double>(seconds));
    std::size_t leases = 0;
    on_all(
        at_once,
        [&, until](worker& w) -> asio::awaitable<void> {
          for (std::size_t at = w.id; clock_type::now() < until; at += std::min(at_once, all_.size())) {
            worker& one = *all_[at % all_.size()];
            if (!one.gone && co_await lease_one(one)) ++leases;
          }
        },
        std::min(at_once, all_.size()));
    return leases;
  }

  /// A task for each worker, spread over so many seconds.
  void work(double seconds) {
    on_all(all_.size(), [this, seconds](worker& w) -> asio::awaitable<void> {
      co_await pause(std::chrono::milliseconds(std::int64_t(1e3 * seconds * w.id / double(all_.size()))));
      while (!co_await lease_one(w)) {
      }
    });
  }

  void lose(std::uint32_t id) {
    all_[id]->gone = true;
    all_[id]->to->close();
  }

  /// The times of heartbeats since the last time, in milliseconds, sorted.
  std::vector<double> latencies() {
    std::lock_guard const guard(lock_);
    auto all = std::exchange(times_, {});
    std::ranges::sort(all);
    return all;
  }

 private:
  static asio::awaitable<void> answer(net::request& r) {
    std::string const text = wire::pack(wire::ConfigureReply{});
    co_await r.reply(text);
  }

  template <class Reply, class Request>
  static asio::awaitable<Reply> call(net::channel& to, std::uint16_t method, Request const& r) {
    net::outgoing const what{.method = method, .message = wire::pack(r), .timeout = 120s, .idempotent = true};
    net::reply const reply = co_await to.call(what);
    co_return wire::unpack<Reply>(reply.message, "the master");
  }

  asio::awaitable<void> pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(node_.executor(), time);
    co_await timer.async_wait(asio::use_awaitable);
  }

  asio::awaitable<void> beat(worker& w) try {
    co_await pause(std::chrono::milliseconds(w.id * 7919 % 1000));
    wire::Heartbeat m;
    m.set_role(w.role);
    m.set_id(w.id);
    m.set_incarnation(w.incarnation);
    while (!w.gone) {
      auto const began = clock_type::now();
      auto const reply = co_await call<wire::HeartbeatReply>(*w.to, heartbeat, m);
      if (!reply.known() && !w.gone) fail("the master does not know a worker any more");
      {
        std::lock_guard const guard(lock_);
        times_.push_back(1e3 * seconds_since(began));
      }
      auto const left = 1s - std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - began);
      co_await pause(std::max(left, 1ms));
    }
  } catch (net::call_error const& e) {
    if (!w.gone) fail(e.what());
  }

  asio::awaitable<void> watches(worker& w) try {
    wire::WatchRequest m;
    m.set_id(w.id);
    m.set_incarnation(w.incarnation);
    while (!w.gone) {
      auto const reply = co_await call<wire::WatchReply>(*w.to, watch, m);
      m.set_generation(reply.generation());
    }
  } catch (net::call_error const& e) {
    if (!w.gone) fail(e.what());
  }

  asio::awaitable<bool> lease_one(worker& w) {
    wire::TaskRequest ask;
    ask.set_worker(w.id);
    ask.set_incarnation(w.incarnation);
    ask.set_number(++w.number);
    auto const given = co_await call<wire::Task>(*w.to, task, ask);
    if (given.kind() != wire::Task::TRAINING) {
      co_await pause(10ms);
      co_return false;
    }
    wire::TaskReport done;
    done.set_worker(w.id);
    done.set_incarnation(w.incarnation);
    done.set_lease(given.lease());
    done.set_number(++w.number);
    auto const reply = co_await call<wire::TaskReportReply>(*w.to, report, done);
    co_return reply.accepted();
  }

  /// Runs `work` for the first `count` workers, `at_once` at a time, and returns when all have ended.
  template <class Work>
  void on_all(std::size_t at_once, Work work, std::size_t count = 0) {
    if (count == 0) count = all_.size();
    std::size_t next = 0, open = std::min(at_once, count);
    std::promise<void> done;
    for (std::size_t i = 0, n = open; i < n; ++i)
      node_.spawn([&]() -> asio::awaitable<void> {
        try {
          while (next < count) {
            worker& w = *all_[next++];
            co_await work(w);
          }
        } catch (std::exception const& e) {
          fail(e.what());
        }
        if (--open == 0) done.set_value();
      });
    done.get_future().wait();
  }

  [[noreturn]] static void fail(std::string const& why) {
    fmt::print(stderr, "bench-master: {}\n", why);
    std::_Exit(1);
  }

  setting set_;
  net::node node_;
  net::listener listener_;
  worker server_{.incarnation = 1, .role = wire::JoinRequest::SERVER};
  std::vector<std::unique_ptr<worker>> all_;
  std::mutex lock_;
  std::vector<double> times_;
};

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double quantile(std::vector<double> const& sorted, double q) {
  return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, std::size_t(q * double(sorted.size())))];
}

/// A line: what happened, the master's processor time, and heartbeats meanwhile.
class line {
 public:
  line(master_process const& master, workers& all) : master_(master), all_(all), busy_(master.busy()) {
    all.latencies();
  }
  void print(std::string const& what, double each_of = 0) {
    double const took = seconds_since(began_), busy = master_.busy() - busy_;
    auto const times = all_.latencies();
    std::string const each = each_of > 0 ? fmt::format("{:.1f}", 1e6 * busy / each_of) : "";
    fmt::print("{:<34} {:>8.2f} {:>8.0f} {:>10} {:>8.2f} {:>8.2f} {:>8.2f}\n", what, took, 100 * busy / took,
               each, quantile(times, 0.5), quantile(times, 0.99), quantile(times, 1));
    std::fflush(stdout);
  }

 private:
  master_process const& master_;
  workers& all_;
  double busy_;
  clock_type::time_point began_ = clock_type::now();
};

void measure(setting const& s) {
  master_process const master(s);
  workers all(s, master);
  fmt::print("{} workers, {}\n", s.workers, s.replicas ? "all-reduce" : "parameter servers");
  fmt::print("{:<34} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8}\n", "", "s", "% core", "µs each", "median", "99 %",
             "longest");
  {
    line l(master, all);
    if (!s.replicas) all.join_server(master);
    all.join_all();
    l.print("all join", s.workers);
  }
  if (s.replicas) {
    line l(master, all);
    auto const bytes = all.enter_all({});
    l.print(fmt::format("first world, {:.0f} kB each", 1e-3 * double(bytes)), s.workers);
  }
  wait(2);
  {
    line l(master, all);
    wait(s.seconds);
    l.print("heartbeats", s.workers * s.seconds);
  }
  {
    line l(master, all);
    all.work(10);
    l.print("and a task each 10 s", s.workers * 10);
  }
  {
    line l(master, all);
    std::size_t const n = all.lease(64, s.seconds);
    l.print(fmt::format("{:.0f} tasks a second, and heartbeats", double(n) / s.seconds), double(n));
  }
  {
    line l(master, all);
    all.lose(s.workers / 2);
    if (s.replicas) all.enter_all(s.workers / 2);
    wait(2);
    l.print("a worker is lost", s.workers);
  }
  fmt::print("memory: {:.1f} kB a worker\n", 1e-3 * master.grown() / s.workers);
}

std::vector<flag> flags() {
  constexpr auto whole = flag::value_type::whole;
  return {
      {.name = "workers", .fallback = "1000", .help = "how many", .type = whole, .least = 2, .most = 60'000},
      {.name = "seconds", .fallback = "5", .help = "of each measurement", .type = whole, .least = 1},
      {.name = "strategy",
       .fallback = "both",
       .help = "what the job trains by",
       .choices = {"both", "allreduce", "servers"}}};
}

int run(edl::cli::command_line const& l) {
  edl::cli::hold_standard_streams();
  for (bool const replicas : {false, true})
    if (l.text("strategy") == "both" || (l.text("strategy") == "allreduce") == replicas)
      measure({.workers = std::uint32_t(l.number("workers")),
               .seconds = double(l.number("seconds")),
               .replicas = replicas});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return edl::cli::run_program({.command = "bench-master", .flags = flags()},
                               "Measures what one master can carry.", {argv + 1, argv + argc}, run);
}
