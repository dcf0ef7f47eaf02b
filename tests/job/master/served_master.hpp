// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/net/peers.hpp"
#include "base/wire/scratch.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/error.hpp"
#include "edl/job/master/server/server.hpp"
#include "eventually.hpp"

/// A master that listens, and servers that answer it as a test wants.
namespace served_master {

using namespace edl::master;
using namespace std::chrono_literals;
using edl::net::call_error;
using edl::net::status;
namespace method = edl::wire::method;

/// A server's process: what it answers is a test's business.
struct server_process {
  using handler = std::function<std::string(std::uint16_t method, edl::bytes message)>;

  explicit server_process(handler h) : answer(std::move(h)) {}

  handler answer;
  std::vector<float> variables;  ///< follow the answer to a pull
  std::atomic<int> asked{0};
  edl::net::node node{peers::options()};
  edl::net::listener listener{node, {peers::any_port()}, [this](edl::net::request& r) { return handle(r); }};

  asio::awaitable<void> handle(edl::net::request& r) {
    ++asked;
    std::string const reply = answer(r.method(), r.message());
    edl::bytes const payload = std::as_bytes(std::span(variables));
    co_await r.reply(reply, r.method() == method::pull ? payload : edl::bytes());
  }
};

inline std::string configured() { return edl::wire::pack(edl::wire::ConfigureReply{}); }

/// A master of a job with one server and one worker.
struct master_process {
  explicit master_process(std::function<void(server_options&)> const& change = {}, bool adopts = false) {
    server_options o{.job = {}, .files = {.layout = layout}, .journal = journal("", "run")};
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
        callbacks{.evaluated = [](evaluation_result const&) { return false; },
                  .adopted = adopts ? [this](bool any) { adopted = any; } : std::function<void(bool)>()},
        edl::logger(edl::severity::info, "", log.fd));
    it->processes().use(around);
    listener = std::make_unique<edl::net::listener>(node, std::vector{peers::any_port()},
                                                    [this](edl::net::request& r) { return it->handle(r); });
    node.spawn([this] { return it->tick(); });
  }
  ~master_process() { node.stop(); }

  /// Nothing: it has not.
  std::optional<std::string> ended() {
    auto const end = it->processes().result();
    if (end.wait_for(0s) != std::future_status::ready) return std::nullopt;
    return end.get().failure;
  }
  /// What it waits for: the first, or the last, that was shown.
  std::optional<std::string> waits(bool first = false) {
    std::lock_guard const guard(around.lock);
    auto const& all = around.all_waits;
    return all.empty() ? std::nullopt : std::optional(first ? all.front() : all.back());
  }
  template <class F>
  auto on_node(F work) {
    std::packaged_task<std::invoke_result_t<F>()> task(work);
    auto result = task.get_future();
    node.post([&task] { task(); });
    return result.get();
  }
  /// A process has been killed from outside.
  void kill(role of, std::uint32_t id) {
    on_node([&] { it->processes().ended({.who = {of, id}, .signal = 9}, 0); });
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

  bool join_worker(std::uint64_t incarnation = 1) {
    edl::wire::JoinRequest r;
    r.set_role(edl::wire::JoinRequest::WORKER);
    r.set_incarnation(incarnation);
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

  /// The platform: what it is told to start and to show.
  struct : edl::platform::platform {
    void start(edl::process_id who, std::optional<std::uint32_t> instead_of) override {
      if (instead_of) replaces();
      std::lock_guard const guard(lock);
      started.push_back(who);
    }
    void stop(edl::process_id who, std::chrono::milliseconds) override {
      std::lock_guard const guard(lock);
      stopped.push_back(who);
    }
    std::string avoid(edl::process_id who, std::string const& why) override {
      avoided.push_back({who, why});
      return "node-" + std::to_string(who.id);
    }
    void stop_all(std::chrono::milliseconds) override {}
    void waits(std::string const& what) override {
      std::lock_guard const guard(lock);
      all_waits.push_back(what);
    }
    std::function<void()> replaces = [] {};  // on the node's thread
    std::mutex lock;
    std::vector<edl::process_id> started, stopped;
    std::vector<std::pair<edl::process_id, std::string>> avoided;  // on the node's thread
    std::vector<std::string> all_waits;
  } around;
  std::optional<bool> adopted;
  edl::parameter_layout layout{{{"w", {4}, 0}}, 4, 0};
  edl::net::node node{peers::options()};
  std::unique_ptr<server> it;
  std::unique_ptr<edl::net::listener> listener;
};

}  // namespace served_master
