// SPDX-License-Identifier: Apache-2.0
#include "edl/ps/server.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "edl/net/blocking.hpp"
#include "edl/net/listener.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"
#include "ps/rules.hpp"

using namespace edl::ps;
using namespace std::chrono_literals;
using edl::net::call_error;
using edl::net::status;
namespace method = edl::wire::method;

namespace {

momentum_rule const momentum;
asynchronous const at_once;

edl::parameter_layout const& layout() {
  static edl::parameter_layout const l{{{"w", {4}, 0}, {"mean", {2}, 4}}, 4, 2};
  return l;
}

std::shared_ptr<store> make_store(std::uint32_t) {
  return std::make_shared<store>(
      store_options{.layout = layout(), .elements = {0, 6}, .rule = momentum, .when = at_once});
}

/// A server's process.
struct process {
  edl::net::node node{{.job = "j",
                       .secret = edl::net::token("a secret of some length"),
                       .log = edl::logger(edl::severity::critical)}};
  std::atomic<int> cut_offs{0};
  server it{node,
            {.name = "ps-x",
             .ranges = 2,
             .layout = layout(),
             .make = make_store,
             .configure =
                 [](store& s, std::string const&) {
                   s.configure([](std::size_t first, std::span<float> into) {
                     for (std::size_t i = 0; i < into.size(); ++i) into[i] = float(first + i);
                   });
                 },
             .frozen = [](std::uint64_t, push_result const&) {},
             .cut_off = [this](std::uint64_t, std::uint32_t) { ++cut_offs; }},
            edl::logger(edl::severity::critical)};
  edl::net::listener listener{node,
                              {edl::net::parse_address("tcp:127.0.0.1:0")},
                              [this](edl::net::request& r) { return it.handle(r); }};
};

/// Who calls servers: the master and a worker in one.
struct caller {
  edl::net::node node{{.job = "j",
                       .secret = edl::net::token("a secret of some length"),
                       .log = edl::logger(edl::severity::critical)}};

  template <class Reply, class Request>
  Reply ask(process& p, std::uint16_t m, Request const& request, std::vector<edl::bytes> payload = {},
            std::vector<std::span<std::byte>> into = {}) {
    edl::net::channel to(node, p.listener.addresses(), "ps");
    edl::net::outgoing what{.method = m,
                            .message = edl::wire::pack(request),
                            .payload = std::move(payload),
                            .into = std::move(into),
                            .timeout = 20s};
    return edl::wire::unpack<Reply>(edl::net::wait(to, std::move(what)).message, "ps");
  }

  edl::wire::PushReply push(process& p, std::uint64_t generation, std::uint32_t minibatch, float slope = 1) {
    edl::wire::PushRequest r;
    r.set_generation(generation);
    r.mutable_task()->set_index(3);
    r.set_minibatch(minibatch);
    r.set_minibatches(100);
    r.set_records(2);
    r.set_version(minibatch);
    std::vector<float> const values(6, slope);
    return ask<edl::wire::PushReply>(p, method::push, r, {std::as_bytes(std::span(values))});
  }

  std::vector<float> pull(process& p, std::uint64_t generation) {
    edl::wire::PullRequest r;
    r.set_generation(generation);
    std::vector<float> values(6);
    ask<edl::wire::PullReply>(p, method::pull, r, {}, {std::as_writable_bytes(std::span(values))});
    return values;
  }
};

enum class part { primary, backup };

edl::wire::ConfigureRequest configuration(std::uint64_t generation, part as, bool keep,
                                          process* backup = nullptr, process* from = nullptr,
                                          bool holds = false) {
  edl::wire::ConfigureRequest r;
  r.set_generation(generation);
  r.set_keep(keep);
  auto& a = *r.add_assignments();
  a.set_primary(as == part::primary);
  if (backup)
    for (auto const& x : backup->listener.addresses()) a.add_backup(edl::net::to_string(x));
  if (from)
    for (auto const& x : from->listener.addresses()) a.add_from(edl::net::to_string(x));
  if (holds) r.add_holds(0);
  return r;
}

status code_of(auto&& work) {
  try {
    work();
  } catch (call_error const& e) {
    return e.code();
  }
  return status::ok;
}

}  // namespace

TEST_CASE("an acknowledged push is on the backup, which goes on as the server would") {
  caller c;
  process backup;
  auto first = std::make_unique<process>();
  c.ask<edl::wire::ConfigureReply>(backup, method::configure, configuration(1, part::backup, false));
  c.ask<edl::wire::ConfigureReply>(*first, method::configure,
                                   configuration(1, part::primary, false, &backup));
  for (std::uint32_t i = 0; i < 10; ++i)
    CHECK(c.push(*first, 1, i, float(i)).verdict() == edl::wire::PushReply::APPLIED);
  CHECK(c.push(*first, 1, 4).verdict() == edl::wire::PushReply::REPEAT);
  CHECK(code_of([&] { c.pull(backup, 1); }) == status::invalid);  // it serves nobody
  auto const before = c.pull(*first, 1);
  first.reset();

  auto const reply = c.ask<edl::wire::ConfigureReply>(
      backup, method::configure, configuration(2, part::primary, true, nullptr, nullptr, true));
  CHECK(reply.version() == 10);
  REQUIRE(reply.ledger().open_size() == 1);
  CHECK(reply.ledger().open(0).applied() == 10);
  CHECK(c.pull(backup, 2) == before);
  CHECK(c.push(backup, 2, 9).verdict() == edl::wire::PushReply::REPEAT);
  CHECK(c.push(backup, 2, 10).verdict() == edl::wire::PushReply::APPLIED);
  CHECK(code_of([&] { c.push(backup, 1, 11); }) == status::stale_generation);
}

TEST_CASE("pushes side by side reach the backup in the order in which they were applied") {
  caller c;
  process first, backup;
  c.ask<edl::wire::ConfigureReply>(backup, method::configure, configuration(1, part::backup, false));
  c.ask<edl::wire::ConfigureReply>(first, method::configure, configuration(1, part::primary, false, &backup));
  std::vector<std::thread> pushers;
  for (std::uint32_t task = 0; task < 4; ++task)
    pushers.emplace_back([&, task] {
      caller mine;
      for (std::uint32_t i = 0; i < 25; ++i) {
        edl::wire::PushRequest r;
        r.set_generation(1);
        r.mutable_task()->set_index(task);
        r.set_minibatch(i);
        r.set_minibatches(25);
        std::vector<float> const values(6, float(task * 25 + i) / 8);
        mine.ask<edl::wire::PushReply>(first, method::push, r, {std::as_bytes(std::span(values))});
      }
    });
  for (auto& t : pushers) t.join();
  auto const mine = c.pull(first, 1);
  c.ask<edl::wire::ConfigureReply>(backup, method::configure,
                                   configuration(2, part::primary, true, nullptr, nullptr, true));
  CHECK(c.pull(backup, 2) == mine);  // the rule's result depends on the order
}

TEST_CASE("without its backup a server acknowledges nothing, and tells") {
  caller c;
  process first;
  auto backup = std::make_unique<process>();
  c.ask<edl::wire::ConfigureReply>(*backup, method::configure, configuration(1, part::backup, false));
  c.ask<edl::wire::ConfigureReply>(first, method::configure,
                                   configuration(1, part::primary, false, backup.get()));
  CHECK(c.push(first, 1, 0).verdict() == edl::wire::PushReply::APPLIED);
  backup.reset();
  CHECK(code_of([&] { c.push(first, 1, 1); }) == status::not_ready);
  CHECK(first.cut_offs == 1);
  CHECK(code_of([&] { c.push(first, 1, 1); }) == status::not_ready);  // applied here, and safe nowhere
  CHECK(code_of([&] { c.push(first, 1, 0); }) == status::not_ready);

  // Another takes everything over, what was not acknowledged, too.
  process next;
  std::thread copying([&] {
    caller mine;
    mine.ask<edl::wire::ConfigureReply>(next, method::configure,
                                        configuration(2, part::backup, true, nullptr, &first));
  });
  auto const reply = c.ask<edl::wire::ConfigureReply>(
      first, method::configure, configuration(2, part::primary, true, &next, nullptr, true));
  copying.join();
  CHECK(reply.version() == 2);
  CHECK(c.push(first, 2, 1).verdict() == edl::wire::PushReply::REPEAT);
  CHECK(c.push(first, 2, 2).verdict() == edl::wire::PushReply::APPLIED);
  auto const mine = c.pull(first, 2);
  c.ask<edl::wire::ConfigureReply>(next, method::configure,
                                   configuration(3, part::primary, true, nullptr, nullptr, true));
  CHECK(c.pull(next, 3) == mine);
}

TEST_CASE("a holder that is as far as the source keeps its state, one that is not takes the source's") {
  caller c;
  process first, second;
  c.ask<edl::wire::ConfigureReply>(first, method::configure, configuration(1, part::primary, false));
  c.ask<edl::wire::ConfigureReply>(second, method::configure, configuration(1, part::primary, false));
  auto const join = [&](std::uint64_t generation) {
    c.ask<edl::wire::ConfigureReply>(first, method::configure,
                                     configuration(generation, part::primary, true, nullptr, nullptr, true));
    c.ask<edl::wire::ConfigureReply>(second, method::configure,
                                     configuration(generation, part::primary, true, nullptr, &first, true));
  };
  // Each has made one step of its own, of as many minibatches: told apart by nothing but what nobody counts.
  // So a copy that was kept shows.
  c.push(first, 1, 0, 1);
  c.push(second, 1, 0, 5);
  auto const kept = c.pull(second, 1);
  join(2);
  CHECK(c.pull(second, 2) == kept);
  c.push(first, 2, 1, 1);
  join(3);
  CHECK(c.pull(second, 3) == c.pull(first, 3));
}

TEST_CASE("what a server had before, and others may have copied, is not its own any more") {
  caller c;
  process first, second;
  c.ask<edl::wire::ConfigureReply>(first, method::configure, configuration(1, part::primary, false));
  CHECK(first.it.held() == std::vector<std::uint32_t>{0});
  // The range moves to the second: the first keeps what is copied, but has no part of the generation.
  edl::wire::ConfigureRequest source;
  source.set_generation(2);
  source.set_keep(true);
  source.add_holds(0);
  c.ask<edl::wire::ConfigureReply>(first, method::configure, source);
  c.ask<edl::wire::ConfigureReply>(second, method::configure,
                                   configuration(2, part::primary, true, nullptr, &first));
  c.push(second, 2, 0);
  CHECK(first.it.held().empty());
  CHECK(first.it.version() == 0);
  CHECK(second.it.held() == std::vector<std::uint32_t>{0});
  CHECK(second.it.version() == 1);
}

TEST_CASE("what makes no sense is refused and changes nothing") {
  caller c;
  process p;
  CHECK(code_of([&] { c.pull(p, 1); }) == status::not_ready);
  CHECK(code_of([&] {
          c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(1, part::primary, true));
        }) == status::invalid);
  auto strange = configuration(2, part::primary, false);
  strange.mutable_assignments(0)->set_range(7);
  CHECK(code_of([&] { c.ask<edl::wire::ConfigureReply>(p, method::configure, strange); }) == status::invalid);
  c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(3, part::primary, false));
  CHECK(code_of([&] {
          c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(2, part::primary, false));
        }) == status::stale_generation);
  CHECK(c.push(p, 3, 0).verdict() == edl::wire::PushReply::APPLIED);
}
