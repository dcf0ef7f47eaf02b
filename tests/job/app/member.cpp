// SPDX-License-Identifier: Apache-2.0
#include "edl/job/app/member.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"
#include "edl/job/net/listener.hpp"
#include "edl/job/wire/edl.pb.h"
#include "edl/job/wire/message.hpp"

namespace member_test {

using edl::app::member;

namespace {

namespace net = edl::net;
namespace wire = edl::wire;

net::node_options options() {
  return {.job = "j",
          .secret = net::token("a secret of some length"),
          .log = edl::logger(edl::severity::critical)};
}

/// A master that answers each process that wants to join in the same way.
struct master {
  explicit master(wire::JoinReply with)
      : answer(std::move(with)),
        listener(node, {net::parse_address("tcp:127.0.0.1:0")},
                 [this](net::request& r) { return serve(r); }) {}

  asio::awaitable<void> serve(net::request& r) { co_await r.reply(wire::pack(answer)); }

  wire::JoinReply answer;
  net::node node{options()};
  net::listener listener;
};

}  // namespace

TEST_CASE("who comes when the job is over has nothing to do; one that is refused fails, or was given up") {
  wire::JoinReply no;
  no.set_reason("the job is over");
  SUBCASE("over") { no.set_over(true); }
  SUBCASE("refused") {}
  SUBCASE("given up: nobody's fault") { no.set_given_up(true); }
  master to(no);
  net::node node(options());
  net::channel channel(node, to.listener.addresses(), "the master");
  member self(node, channel, edl::role::worker, 3);
  if (no.over()) {
    CHECK_FALSE(self.join(7, {}));
    CHECK(self.finished());
    CHECK_FALSE(self.lost());
  } else if (no.given_up()) {
    CHECK_THROWS_AS(self.join(7, {}), edl::worker::given_up);
  } else {
    CHECK_THROWS_AS(self.join(7, {}), edl::error);
    CHECK_FALSE(self.finished());
  }
}

}  // namespace member_test
