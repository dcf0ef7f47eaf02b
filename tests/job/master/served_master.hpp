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

#include "edl/core/error.hpp"
#include "edl/job/master/server/server.hpp"
#include "edl/job/wire/edl.pb.h"
#include "edl/job/wire/message.hpp"
#include "edl/job/wire/method.hpp"
#include "eventually.hpp"
#include "job/net/peers.hpp"
#include "job/wire/scratch.hpp"

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

}  // namespace served_master
