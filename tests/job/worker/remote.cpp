// SPDX-License-Identifier: Apache-2.0
#include "edl/job/worker/remote.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <utility>

#include "base/net/peers.hpp"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"

namespace remote_test {

using edl::net::call_error;
using edl::net::status;

namespace {

/// A process that answers as a test says.
struct process {
  using handler = std::function<std::string(std::uint16_t method)>;

  explicit process(handler h) : answer(std::move(h)) {}

  handler answer;
  edl::net::node node{peers::options()};
  edl::net::listener listener{node, {peers::any_port()}, [this](edl::net::request& r) { return handle(r); }};

  asio::awaitable<void> handle(edl::net::request& r) {
    std::string const reply = answer(r.method());
    co_await r.reply(reply);
  }
};

/// A server that has a version of 16 variables.
struct versioned {
  std::atomic<std::uint64_t> has, pushed{0};  // pushed: the version that the last gradient was said to be of
  std::atomic<int> checked{0};                // pulls that asked for a look at its memory
  edl::net::node node{peers::options()};
  edl::net::listener listener{node, {peers::any_port()}, [this](edl::net::request& r) { return handle(r); }};

  asio::awaitable<void> handle(edl::net::request& r) {
    std::vector<std::byte> variables(64);
    if (r.method() == edl::wire::method::pull) {
      checked += edl::wire::unpack<edl::wire::PullRequest>(r.message(), r.peer()).check_memory();
      edl::wire::PullReply reply;
      reply.set_version(has);
      std::string const text = edl::wire::pack(reply);
      co_await r.reply(text, variables);
    } else {
      co_await r.read(variables);
      pushed = edl::wire::unpack<edl::wire::PushRequest>(r.message(), r.peer()).version();
      std::string const text = edl::wire::pack(edl::wire::PushReply{});
      co_await r.reply(text);
    }
  }
};

}  // namespace

TEST_CASE("each server is told the version that it had itself when a gradient's variables were pulled") {
  versioned first{.has = 7}, second{.has = 5};
  process master([&](std::uint16_t) {
    edl::wire::Cluster now;
    now.set_ready(true);
    now.set_generation(1);
    for (versioned const* s : {&first, &second})
      now.add_ranges()->add_addresses(to_string(s->listener.addresses().front()));
    return edl::wire::pack(now);
  });
  edl::net::node node(peers::options());
  edl::net::channel to_master(node, master.listener.addresses(), "master");
  edl::parameter_layout const layout{
      .variables = {{.name = "w", .dims = {32}, .offset = 0}}, .parameters = 32, .state = 0};
  edl::worker::remote_parameters parameters(node, to_master, {.id = 0, .incarnation = 1}, layout);
  std::vector<float> w(32);
  auto const push = [&](std::uint64_t version) {
    parameters.push(edl::minibatch_key{.task = {0, 0}}, version, w, {}, {});
    return std::pair(first.pushed.load(), second.pushed.load());
  };
  CHECK(parameters.pull(w) == 5);
  CHECK(push(5) == std::pair<std::uint64_t, std::uint64_t>(7, 5));
  first.has = second.has = 8;
  parameters.pull_frozen(5, w);  // of no gradient
  CHECK(push(5) == std::pair<std::uint64_t, std::uint64_t>(7, 5));
  parameters.doubt();
  CHECK(parameters.pull(w) == 8);
  CHECK(parameters.pull(w) == 8);
  CHECK(first.checked == 1);
  CHECK(second.checked == 1);
  CHECK(push(8) == std::pair<std::uint64_t, std::uint64_t>(8, 8));
}

TEST_CASE("a server's error ends no worker while another server asks for another look at the cluster") {
  process away([](std::uint16_t) -> std::string { throw call_error(status::not_ready, "it begins"); });
  process broken(
      [](std::uint16_t) -> std::string { throw call_error(status::internal, "its backup is away"); });
  for (auto const& servers : {std::vector{&away, &broken}, std::vector{&broken, &away}}) {
    std::atomic<int> looks{0};
    process master([&](std::uint16_t) {
      edl::wire::Cluster now;
      now.set_ready(true);
      now.set_generation(++looks < 3 ? 1 : 2);
      for (std::uint32_t i = 0; i < 2; ++i) {
        auto* const range = now.add_ranges();
        range->set_server(i);
        range->add_addresses(to_string(servers[i]->listener.addresses().front()));
      }
      return edl::wire::pack(now);
    });
    edl::net::node node(peers::options());
    edl::net::channel to_master(node, master.listener.addresses(), "master");
    edl::parameter_layout const layout{
        .variables = {{.name = "w", .dims = {8}, .offset = 0}}, .parameters = 8, .state = 0};
    edl::worker::remote_parameters parameters(node, to_master, {.id = 0, .incarnation = 1}, layout);
    std::vector<float> w(8);
    CHECK_THROWS_AS(parameters.pull(w), edl::worker::rolled_back);
    CHECK(looks == 3);
  }
}

TEST_CASE("a lease of a generation that is over is void, also for who has asked no server yet") {
  std::atomic<std::uint64_t> leased{3};
  process server([](std::uint16_t) -> std::string { throw call_error(status::not_ready, "it begins"); });
  process master([&](std::uint16_t method) {
    edl::wire::Task task;
    task.set_kind(edl::wire::Task::EVALUATION);
    task.set_lease(leased);
    task.set_generation(leased);
    edl::wire::Cluster now;
    now.set_ready(true);
    now.set_generation(4);
    now.add_ranges()->add_addresses(to_string(server.listener.addresses().front()));
    return method == edl::wire::method::task ? edl::wire::pack(task) : edl::wire::pack(now);
  });
  edl::net::node node(peers::options());
  edl::net::channel to_master(node, master.listener.addresses(), "master");
  edl::parameter_layout const layout{
      .variables = {{.name = "w", .dims = {8}, .offset = 0}}, .parameters = 8, .state = 0};
  edl::worker::identity const self{.id = 0, .incarnation = 1};
  edl::worker::remote_parameters parameters(node, to_master, self, layout);
  edl::worker::remote_master leases(to_master, self, parameters);
  CHECK_THROWS_AS(leases.next(0), edl::worker::rolled_back);
  leased = 4;
  CHECK(leases.next(0).lease == 4);
}

}  // namespace remote_test
