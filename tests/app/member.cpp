// SPDX-License-Identifier: Apache-2.0
#include "edl/app/member.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "edl/base/net/listener.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/error.hpp"

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

/// A master that answers each process that wants to join, and each that lives, in the same way.
struct master {
  explicit master(wire::JoinReply with, wire::HeartbeatReply later = {})
      : answer(std::move(with)),
        beat(std::move(later)),
        listener(node, {net::parse_address("tcp:127.0.0.1:0")},
                 [this](net::request& r) { return serve(r); }) {}

  asio::awaitable<void> serve(net::request& r) {
    if (r.method() == wire::method::watch) throw net::call_error(net::status::unavailable, "not now");
    std::string const reply = r.method() == wire::method::heartbeat ? wire::pack(beat) : wire::pack(answer);
    co_await r.reply(reply);
  }

  wire::JoinReply answer;
  wire::HeartbeatReply beat;
  net::node node{options()};
  net::listener listener;
};

}  // namespace

TEST_CASE(
    "who comes when the job is over, or is one too many, has nothing to do; others fail, or were given up") {
  wire::JoinReply no;
  no.set_reason("the job is over");
  SUBCASE("over") { no.set_over(true); }
  SUBCASE("one too many") { no.set_spare(true); }
  SUBCASE("refused") {}
  SUBCASE("given up: nobody's fault") { no.set_given_up(true); }
  master to(no);
  net::node node(options());
  net::channel channel(node, to.listener.addresses(), "the master");
  member self(node, channel, edl::role::worker, 3);
  if (no.over() || no.spare()) {
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

TEST_CASE("a member that the master does not know any more ends with an error, unless it is not needed") {
  wire::JoinReply yes;
  yes.set_accepted(true);
  wire::HeartbeatReply unknown;
  SUBCASE("given up") {}
  SUBCASE("not needed") { unknown.set_spare(true); }
  master to(yes, unknown);
  net::node node(options());
  net::channel channel(node, to.listener.addresses(), "the master");
  member self(node, channel, edl::role::server, 3);
  CHECK(self.join(7, {}));
  while (!self.lost()) std::this_thread::yield();
  CHECK(self.finished() == unknown.spare());
}

}  // namespace member_test
