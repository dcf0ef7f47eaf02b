// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/server.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "job/ps/processes.hpp"

namespace server_test {

using namespace server_processes;

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

TEST_CASE("a push of more minibatches than a round may have is refused, with nothing counted") {
  caller c;
  process one;
  c.ask<edl::wire::ConfigureReply>(one, method::configure, configuration(1, part::primary, false));
  auto const push = [&](std::uint32_t task, int minibatches) {
    edl::wire::PushRequest r;
    r.set_generation(1);
    r.mutable_task()->set_index(task);
    r.set_minibatches(5000);
    for (int i = 1; i < minibatches; ++i) {
      auto& m = *r.add_more();
      m.mutable_task()->set_index(task);
      m.set_minibatch(std::uint32_t(i));
      m.set_minibatches(5000);
    }
    std::vector<float> const values(6, 1);
    return c.ask<edl::wire::PushReply>(one, method::push, r, {std::as_bytes(std::span(values))}).version();
  };
  CHECK(code_of([&] { push(1, 4097); }) == status::invalid);
  CHECK(push(2, 4096) == 4096);
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

TEST_CASE(
    "a version that is released for an evaluation is still there for its checkpoint, and the other way") {
  for (bool const evaluation : {true, false}) {
    caller c;
    std::shared_ptr<store> made;
    process p(layout(), [&](std::uint32_t) {
      return made = std::make_shared<store>(store_options{.layout = layout(),
                                                          .elements = {0, 6},
                                                          .rule = momentum,
                                                          .when = at_once,
                                                          .evaluation_steps = 1,
                                                          .checkpoint_steps = 1,
                                                          .most_frozen = 2});
    });
    c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(1, part::primary, false));
    c.push(p, 1, 0);
    edl::wire::ReleaseRequest r;
    r.set_version(1);
    r.set_evaluation(evaluation);
    c.ask<edl::wire::Empty>(p, method::release, r);
    if (evaluation)
      CHECK_NOTHROW(made->frozen().checkpoint(1));
    else
      CHECK_NOTHROW(made->frozen().evaluation(1));
  }
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

TEST_CASE("a server tells that its memory has changed by itself, and acknowledges nothing") {
  caller c;
  std::shared_ptr<store> kept;
  std::vector<std::string> failures;
  process p(layout(), [&](std::uint32_t) {
    return kept = std::make_shared<store>(store_options{.layout = layout(),
                                                        .elements = {0, 6},
                                                        .rule = momentum,
                                                        .when = at_once,
                                                        .watches_memory = true});
  });
  p.failed = [&](std::string const& why) { failures.push_back(why); };
  c.ask<edl::wire::ConfigureReply>(p, method::configure, configuration(1, part::primary, false));
  CHECK(c.push(p, 1, 0).verdict() == edl::wire::PushReply::APPLIED);
  c.pull(p, 1, true);
  const_cast<float&>(kept->current()[3]) += 1;
  c.pull(p, 1);  // nobody doubts
  CHECK(failures.empty());
  CHECK(code_of([&] { c.pull(p, 1, true); }) != status::ok);
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].find("have changed without a step") != std::string::npos);
  CHECK(code_of([&] { c.push(p, 1, 1); }) != status::ok);
  CHECK(failures.size() == 2);
  edl::wire::CopyRequest copy;
  copy.set_generation(1);
  CHECK(code_of([&] { c.ask<edl::wire::CopyReply>(p, method::copy, copy); }) != status::ok);
  CHECK(failures.size() == 3);
}

/// Two servers that do not watch their memory, of which one is the other's backup.
struct doubted_pair {
  caller c;
  std::vector<std::shared_ptr<store>> stores;
  std::vector<std::string> failures;
  process backup{layout(), [this](std::uint32_t range) { return stores.emplace_back(make_store(range)); }};
  process first{layout(), [this](std::uint32_t range) { return stores.emplace_back(make_store(range)); }};

  doubted_pair() {
    first.failed = [this](std::string const& why) { failures.push_back(why); };
    c.ask<edl::wire::ConfigureReply>(backup, method::configure, configuration(1, part::backup, false));
    c.ask<edl::wire::ConfigureReply>(first, method::configure,
                                     configuration(1, part::primary, false, &backup));
  }
};

TEST_CASE("a server whose variables are doubted compares them with its backup's, of the same updates") {
  doubted_pair both;
  both.c.push(both.first, 1, 0);
  CHECK(both.c.pull(both.first, 1, true) == both.c.pull(both.first, 1));
  CHECK(both.failures.empty());
  const_cast<float&>(both.stores.back()->current()[3]) *= -1;
  both.c.pull(both.first, 1);  // nobody doubts
  CHECK(both.failures.empty());
  CHECK(code_of([&] { both.c.pull(both.first, 1, true); }) != status::ok);
  REQUIRE(both.failures.size() == 1);
  CHECK(both.failures[0].find("the variables of range 0 differ from those of its backup") !=
        std::string::npos);
}

TEST_CASE("updates that come in between make no server fail that is compared with its backup") {
  doubted_pair both;
  std::atomic<bool> over{false};
  std::thread pusher([&] {
    caller mine;
    for (std::uint32_t i = 0; i < 100; ++i) mine.push(both.first, 1, i, float(i));
    over = true;
  });
  while (!over) CHECK_NOTHROW(both.c.pull(both.first, 1, true));
  pusher.join();
  CHECK(both.failures.empty());
}

TEST_CASE("a server without its backup cannot be compared, and serves on") {
  doubted_pair both;
  both.c.push(both.first, 1, 0);
  both.c.ask<edl::wire::ConfigureReply>(both.backup, method::configure,
                                        configuration(2, part::backup, false));
  CHECK_NOTHROW(both.c.pull(both.first, 1, true));
  CHECK(both.failures.empty());
}

}  // namespace server_test
