// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/configurer.hpp"

#include <doctest/doctest.h>

#include "job/ps/processes.hpp"

namespace configurer_test {

using namespace server_processes;

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

TEST_CASE("a server knows the steps of the training before it serves") {
  caller c;
  process one;
  auto request = configuration(1, part::primary, false);
  request.set_training_steps(70);
  c.ask<edl::wire::ConfigureReply>(one, method::configure, request);
  CHECK(one.planned == 70);
  c.ask<edl::wire::ConfigureReply>(one, method::configure,
                                   configuration(2, part::primary, true, nullptr, nullptr, true));
  CHECK(one.planned == 70);  // a master that does not know them says nothing new
}

}  // namespace configurer_test
