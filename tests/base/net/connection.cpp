// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/connection.hpp"

#include <doctest/doctest.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <deque>
#include <future>
#include <memory>

#include "base/net/peers.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/core/random.hpp"

namespace connection_test {

using namespace peers;
using edl::bytes;
using edl::net::outgoing;
using edl::net::start;
using edl::wire::frame_kind;

TEST_CASE("many calls share a connection and end in any order") {
  server s;
  client c(s.where());
  std::vector<edl::net::started_call> held, quick;
  for (int i = 0; i < 50; ++i)
    held.push_back(start(c.channel, {.method = hold, .message = "held " + std::to_string(i)}));
  s.wait_held(50);
  for (int i = 0; i < 200; ++i)
    quick.push_back(start(c.channel, {.method = echo, .message = std::to_string(i)}));
  for (int i = 0; i < 200; ++i) CHECK(quick[i].get().message == std::to_string(i));
  for (auto const& h : held) CHECK_FALSE(h.ready());
  s.release();
  for (int i = 0; i < 50; ++i) CHECK(held[i].get().message == "held " + std::to_string(i));
  CHECK(s.listener.accepted() == 1);
}

TEST_CASE("more calls than a connection's handlers wait for their turn") {
  server s({.handlers = 3});
  client c(s.where());
  std::vector<edl::net::started_call> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(start(c.channel, {.method = hold}));
  for (int turn = 3; turn <= 9; turn += 3) {
    s.wait_held(turn);
    CHECK(s.held == turn);
    s.release();
  }
  s.wait_held(10);
  s.release();
  for (auto& call : calls) call.get();
}

TEST_CASE("a deadline ends the call here, cancels its handler there, and the connection goes on") {
  server s;
  client c(s.where());
  CHECK(c.echo("connect first") == "connect first");
  auto const o = outcome_of([&] { c.call({.method = hold, .timeout = 30ms}); });
  CHECK(o.code == status::deadline_exceeded);
  CHECK(o.text.find("method 3 within 30 ms") != std::string::npos);
  s.wait_cancelled(1);
  CHECK(c.echo("still") == "still");
  CHECK(s.listener.accepted() == 1);
}

TEST_CASE("a peer that answers nothing any more is lost, and the next call takes another connection") {
  raw_port port;
  client c(port.where(), {.silence = 20ms});
  for (int i = 0; i < 2; ++i) {
    auto call = edl::net::start(c.channel, {.method = 1, .timeout = 400ms});  // for the handshake, too
    raw peer(port.acceptor);
    peer.greet_as_server();
    CHECK(outcome_of([&] { call.get(); }).code == status::deadline_exceeded);
    CHECK(peer.closed_by_peer());
  }
}

TEST_CASE("a call that is not answered is asked about, and made again where its reply is lost") {
  raw_port port;
  client c(port.where(), {.ask = 5ms});
  std::unique_ptr<raw> peer;
  for (bool const idempotent : {true, false}) {
    CAPTURE(idempotent);
    auto call = start(c.channel, {.method = 1, .message = "m", .idempotent = idempotent});
    if (idempotent) {
      peer = std::make_unique<raw>(port.acceptor);
      peer->greet_as_server();
    }
    auto const next = [&](std::uint16_t method) {
      for (;;)
        if (auto f = peer->read_frame(); f.head.method == method) return f;
    };
    auto const first = next(1);
    for (bool const under_way : {true, true, false}) {
      auto const question = next(edl::wire::method::ask);
      edl::wire::AskRequest asked;
      REQUIRE(asked.ParseFromString(question.message));
      CHECK(asked.call() == first.head.call);
      edl::wire::AskReply answer;
      answer.set_under_way(under_way);
      peer->send_frame({.kind = frame_kind::response, .call = question.head.call},
                       answer.SerializeAsString());
    }
    if (!idempotent) {
      auto const o = outcome_of([&] { call.get(); });
      CHECK(o.code == status::unavailable);
      CHECK(o.text.find("the reply to method 1 was lost on its way") != std::string::npos);
      break;
    }
    auto const again = next(1);
    CHECK(again.message == "m");
    peer->send_frame({.kind = frame_kind::response, .call = again.head.call}, "done");
    CHECK(call.get().message == "done");
  }
}

TEST_CASE("who serves a call says whether it is under way, behind its reply") {
  server s;
  raw peer(s.where());
  peer.greet_as_client();
  peer.send_frame({.kind = frame_kind::request, .method = hold, .call = 5});
  s.wait_held(1);
  auto const ask = [&](std::uint64_t call) {
    edl::wire::AskRequest about;
    about.set_call(call);
    peer.send_frame({.kind = frame_kind::request, .method = edl::wire::method::ask, .call = 6},
                    about.SerializeAsString());
  };
  auto const under_way = [&] {
    auto const f = peer.read_frame();
    CHECK(f.head.kind == frame_kind::response);
    CHECK(f.head.call == 6);
    edl::wire::AskReply answer;
    REQUIRE(answer.ParseFromString(f.message));
    return answer.under_way();
  };
  ask(5);
  CHECK(under_way());
  ask(4);
  CHECK_FALSE(under_way());
  s.release();
  CHECK(peer.read_frame().head.call == 5);
  ask(5);
  CHECK_FALSE(under_way());
}

TEST_CASE("a peer that does not even say whether it serves a call is lost, and the call is made elsewhere") {
  raw_port port;
  client c(port.where(), {.ask = 5ms, .silence = 50ms});
  auto call = start(c.channel, {.method = 1, .idempotent = true});
  raw mute(port.acceptor);
  mute.greet_as_server();
  raw next(port.acceptor);
  next.greet_as_server();
  auto const again = next.read_frame();
  next.send_frame({.kind = frame_kind::response, .call = again.head.call}, "done");
  CHECK(call.get().message == "done");
  // It is told that this is not the end of who leaves.
  for (;;)
    if (auto const last = mute.read_frame(); last.head.kind == frame_kind::failure) {
      CHECK(last.head.call == 0);
      break;
    }
  CHECK(mute.closed_by_peer());
}

TEST_CASE("nothing is asked behind a request that is half sent") {
  raw_port port;
  client c(port.where(), {.ask = 100ms, .silence = 500ms});
  std::string const large(16u << 20, 'x');  // more than sockets hold
  auto first = start(c.channel, {.method = 1, .idempotent = true});
  raw slow(port.acceptor);
  slow.greet_as_server();
  auto const asked = slow.read_frame();
  auto second = start(c.channel, {.method = 2, .payload = {std::as_bytes(std::span(large))}});
  std::this_thread::sleep_for(700ms);
  for (;;) {
    auto const f = slow.read_frame();
    if (f.head.method == edl::wire::method::ask) continue;  // that was sent before
    CHECK(f.head.method == 2);
    slow.send_frame({.kind = frame_kind::response, .call = f.head.call}, "second");
    break;
  }
  slow.send_frame({.kind = frame_kind::response, .call = asked.head.call}, "first");
  CHECK(second.get().message == "second");
  CHECK(first.get().message == "first");
}

TEST_CASE("a peer that answers other calls is not lost") {
  server s;
  client c(s.where(), {.silence = 400ms});  // longer than an answer takes
  CHECK(c.echo("connect first") == "connect first");
  auto held = edl::net::start(c.channel, {.method = hold, .timeout = 400ms});
  while (!held.wait_for(0ms)) CHECK(c.echo("still") == "still");
  CHECK(outcome_of([&] { held.get(); }).code == status::deadline_exceeded);
  CHECK(c.echo("still") == "still");
}

TEST_CASE("a call can be cancelled by its caller") {
  server s;
  client c(s.where());
  auto call = start(c.channel, {.method = hold});
  s.wait_held(1);
  call.cancel();
  CHECK(outcome_of([&] { call.get(); }).code == status::cancelled);
  s.wait_cancelled(1);
  {
    auto const dropped = start(c.channel, {.method = hold});
  }  // what nobody waits for is cancelled
  CHECK(c.echo("still") == "still");
  CHECK(s.listener.accepted() == 1);
}

TEST_CASE("a caller that is lost cancels its handlers") {
  server s;
  raw peer(s.where());
  peer.greet_as_client();
  peer.send_frame({.kind = frame_kind::request, .method = hold, .call = 1});
  s.wait_held(1);
  peer.socket().close();
  s.wait_cancelled(1);
}

TEST_CASE("a server that closes fails the calls under way") {
  auto s = std::make_unique<server>();
  client c(s->where());
  auto call = start(c.channel, {.method = hold});
  s->wait_held(1);
  s.reset();
  CHECK(outcome_of([&] { call.get(); }).code == status::unavailable);
}

TEST_CASE("a peer that dies in the middle of a payload harms nothing else") {
  server s;
  client good(s.where());
  CHECK(good.echo("before") == "before");
  {
    raw peer(s.where());
    peer.greet_as_client();
    peer.send_frame({.kind = frame_kind::request, .method = echo, .call = 1, .payload_size = 1'000'000}, "m",
                    5'000);
    peer.socket().close();
  }
  while (s.listener.connections() > 1) std::this_thread::yield();
  CHECK(good.echo("after") == "after");

  raw_port port;
  client c(port.where());
  std::vector<std::byte> room(1'000'000);
  auto call = start(c.channel, {.method = 1, .into = {room}});
  raw peer(port.acceptor);
  peer.greet_as_server();
  auto const asked = peer.read_frame();
  peer.send_frame({.kind = frame_kind::response, .call = asked.head.call, .payload_size = room.size()}, "",
                  300'000);
  peer.socket().close();
  auto const o = outcome_of([&] { call.get(); });
  CHECK(o.code == status::unavailable);
  CHECK(room[299'999] == std::byte{7});
}

TEST_CASE("a peer that says no more while a handler waits for its payload is lost at once") {
  server s({.stall = std::chrono::hours(1)});
  raw peer(s.where());
  peer.greet_as_client();
  peer.send_frame({.kind = frame_kind::request, .method = size_of, .call = 7});
  peer.read_frame();
  CHECK(s.listener.connections() == 1);
  // Small enough for the buffer that the read loop shares with the handler.
  peer.send_frame({.kind = frame_kind::request, .method = echo, .call = 1, .payload_size = 1'000}, "m", 100);
  peer.socket().shutdown(asio::ip::tcp::socket::shutdown_send);  // it would still hear what it did wrong
  auto const limit = std::chrono::steady_clock::now() + 60s;
  while (s.listener.connections() > 0 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
  CHECK(s.listener.connections() == 0);
}

TEST_CASE(
    "after a call was given up in the middle of its reply, its memory is left alone and the rest is "
    "dropped") {
  raw_port port;
  client c(port.where());
  std::vector<std::byte> room(1'000'000), next(3);
  auto call = start(c.channel, {.method = 1, .into = {room}});
  raw peer(port.acceptor);
  peer.greet_as_server();
  auto const asked = peer.read_frame();
  edl::wire::frame_header const h{
      .kind = frame_kind::response, .call = asked.head.call, .payload_size = room.size()};
  peer.send_frame(h, "", 400'000);
  // Looked at from the thread that receives into it.
  for (bool there = false; !there;) {
    std::promise<bool> seen;
    c.node.post([&] { seen.set_value(room[399'999] == std::byte{7}); });
    there = seen.get_future().get();
  }
  call.cancel();
  CHECK(outcome_of([&] { call.get(); }).code == status::cancelled);
  std::fill(room.begin(), room.end(), std::byte{1});
  CHECK(peer.read_frame().head.kind == frame_kind::cancel);
  peer.send(std::string(600'000, '\7'));
  auto other = start(c.channel, {.method = 2, .into = {next}});
  auto const second = peer.read_frame();
  CHECK(second.head.method == 2);
  peer.send_frame({.kind = frame_kind::response, .call = second.head.call, .payload_size = 3}, "ok", 3);
  CHECK(other.get().message == "ok");
  CHECK(std::all_of(room.begin(), room.end(), [](std::byte b) { return b == std::byte{1}; }));
}

TEST_CASE("late replies and replies to nobody are dropped") {
  raw_port port;
  client c(port.where());
  auto call = start(c.channel, {.method = 1});
  raw peer(port.acceptor);
  peer.greet_as_server();
  auto const asked = peer.read_frame();
  call.cancel();
  CHECK(outcome_of([&] { call.get(); }).code == status::cancelled);
  auto const cancelled = peer.read_frame();
  CHECK(cancelled.head.kind == frame_kind::cancel);
  CHECK(cancelled.head.call == asked.head.call);
  peer.send_frame({.kind = frame_kind::response, .call = asked.head.call, .payload_size = 50'000}, "late",
                  50'000);
  peer.send_frame({.kind = frame_kind::response, .call = 12345, .payload_size = 10}, "whose?", 10);
  peer.send_frame({.kind = frame_kind::response, .call = UINT64_MAX}, "whose?");
  edl::wire::Failure failure;
  failure.set_code(9);
  peer.send_frame({.kind = frame_kind::failure, .call = 99}, failure.SerializeAsString());
  peer.send_frame({.kind = frame_kind::cancel, .call = 98});
  auto next = start(c.channel, {.method = 2});
  auto const second = peer.read_frame();
  peer.send_frame({.kind = frame_kind::response, .call = second.head.call}, "on time");
  CHECK(next.get().message == "on time");
}

TEST_CASE(
    "a call given up while its request is half sent closes the connection; one not yet begun does not") {
  raw_port port;
  client c(port.where());
  auto const sent = pattern(64u << 20, 1);  // more than sockets hold
  auto stuck = start(c.channel, {.method = 1, .payload = {sent}});
  raw peer(port.acceptor);
  peer.greet_as_server();
  std::array<std::byte, 1000> some;
  asio::read(peer.socket(), asio::buffer(some));  // it has begun
  auto behind = start(c.channel, {.method = 2, .message = "behind"});
  auto last = start(c.channel, {.method = 3, .message = "last"});
  behind.cancel();
  CHECK(outcome_of([&] { behind.get(); }).code == status::cancelled);
  CHECK_FALSE(stuck.ready());
  stuck.cancel();
  CHECK(outcome_of([&] { stuck.get(); }).code == status::cancelled);
  CHECK(outcome_of([&] { last.get(); }).code == status::unavailable);
  CHECK(peer.closed_by_peer());
}

TEST_CASE("a peer that stands still in the middle of a frame is lost") {
  server s({.stall = 50ms});
  raw half(s.where());
  half.greet_as_client();
  half.send_frame({.kind = frame_kind::request, .method = echo, .call = 1, .payload_size = 1'000}, "m", 10);
  CHECK(half.closed_by_peer());
  raw head(s.where());
  head.greet_as_client();
  head.send("EDL1");
  CHECK(head.closed_by_peer());
  raw deaf(s.where());  // asks for more than sockets hold and reads nothing
  deaf.greet_as_client();
  deaf.send_frame({.kind = frame_kind::request, .method = big, .call = 1}, std::to_string(64u << 20));
  while (s.listener.connections() > 0) std::this_thread::yield();
  // Between frames silence is no fault.
  raw idle(s.where());
  idle.greet_as_client();
  std::this_thread::sleep_for(150ms);
  idle.send_frame({.kind = frame_kind::request, .method = echo, .call = 2}, "here");
  CHECK(idle.read_frame().message == "here");
}

// The record that waited was taken before: what sends it then is a write of nothing.
TEST_CASE("over TLS a connection lives on when what waited for the socket has left") {
  asio::io_context io;
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  auto const wrap = [&](int fd) {
    edl::net::secure_socket::plain_socket s(io);
    s.assign(asio::generic::stream_protocol(AF_UNIX, 0), fd);
    return edl::net::secure_socket(std::move(s));
  };
  auto near = wrap(ends[0]), far = wrap(ends[1]);
  edl::net::tls_context const with(secret(), "test");
  asio::co_spawn(io, near.secure(with, edl::net::tls_session::side::client), asio::detached);
  asio::co_spawn(io, far.secure(with, edl::net::tls_session::side::server), asio::detached);
  io.run();
  io.restart();
  bool closed = false;
  auto const c = edl::net::connection::open(std::move(near), "the peer", {.stall = 2s, .silence = 1h},
                                            edl::logger(edl::severity::critical), {}, [&] { closed = true; });
  std::deque<outgoing> calls;
  auto const unread = [&] {
    int n = 0;
    REQUIRE(::ioctl(ends[0], SIOCOUTQ, &n) == 0);
    return n;
  };
  // Each is a record of its own. The first that does not change what the peer has not read waits.
  for (int before = -1; before != unread();) {
    REQUIRE(calls.size() < 10'000);
    before = unread();
    calls.push_back({.method = 1, .message = std::string(12'000, 'x')});
    asio::co_spawn(io, c->call(calls.back(), std::chrono::steady_clock::now() + 1h),
                   [](std::exception_ptr, edl::net::reply) {});
    io.poll();
  }
  std::vector<char> rest(1 << 20);
  while (::recv(ends[1], rest.data(), rest.size(), 0) > 0) io.poll();
  io.run_for(3s);
  CHECK_FALSE(closed);
  c->close(status::unavailable, "the test is over");
  io.run();
}

TEST_CASE("a handler that does not take its payload loses it, and holds up the others no longer") {
  server s({.stall = 50ms});
  client c(s.where());
  auto const sent = pattern(1'000'000, 1);
  auto slow = start(c.channel, {.method = hold, .message = "slow", .payload = {sent}});
  CHECK(c.echo("next") == "next");
  while (!slow.ready()) {  // a busy machine may stall for so long that the call is sent again
    s.release();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(slow.get().message == "slow");
}

TEST_CASE("frames that break the protocol close their connection only") {
  server s({.frame = {.message = 1'000, .payload = 10'000}});
  client good(s.where());
  auto const closes = [&](auto&& misbehave) {
    raw peer(s.where());
    peer.greet_as_client();
    misbehave(peer);
    CHECK(peer.closed_by_peer());
    CHECK(good.echo("fine") == "fine");
  };
  closes([](raw& p) { p.send(std::string(64, 'x')); });
  closes(
      [](raw& p) { p.send_frame({.kind = frame_kind::request, .method = echo}, std::string(1'001, 'm')); });
  closes([](raw& p) { p.send_frame({.kind = frame_kind::request, .method = echo, .payload_size = 10'001}); });
  closes([](raw& p) {
    p.send_frame({.kind = frame_kind::request, .method = echo, .payload_size = UINT64_MAX});
  });
  closes([](raw& p) {
    auto head = edl::wire::encode({.kind = frame_kind::request, .message_size = UINT32_MAX});
    asio::write(p.socket(), asio::buffer(head));
  });
  closes([](raw& p) { p.send_frame({.kind = frame_kind::hello}, "again"); });
  closes([](raw& p) { p.send_frame({.kind = frame_kind::failure, .call = 1}, "no message"); });
  CHECK(s.listener.accepted() == 8);
}

TEST_CASE("a frame cut anywhere, and frames that arrive byte by byte") {
  server s;
  raw peer(s.where());
  peer.greet_as_client();
  edl::wire::frame_header const h{
      .kind = frame_kind::request, .method = echo, .call = 5, .message_size = 100, .payload_size = 300};
  std::string frame(reinterpret_cast<char const*>(edl::wire::encode(h).data()), edl::wire::frame_header_size);
  frame += std::string(100, 'm') + std::string(edl::wire::frame_padding(h), '\0') + std::string(300, 'p');
  for (char byte : frame) peer.send(std::string(1, byte));
  auto const answer = peer.read_frame();
  CHECK(answer.message == std::string(100, 'm'));
  CHECK(answer.payload == std::vector<std::byte>(300, std::byte{'p'}));
  for (std::size_t cut = 0; cut < frame.size(); cut += 37) {
    raw dying(s.where());
    dying.greet_as_client();
    dying.send(frame.substr(0, cut));
  }
  peer.send(frame + frame + frame);
  for (int i = 0; i < 3; ++i) CHECK(peer.read_frame().head.call == 5);
}

TEST_CASE("random frames after a good handshake are served, refused or end the connection, and never more") {
  server s({.frame = {.message = 4'096, .payload = 65'536}, .stall = 2s});
  client good(s.where());
  edl::random_stream const random{11};
  for (std::uint64_t i = 0; i < 100; ++i) {
    raw peer(s.where());
    peer.greet_as_client();
    for (std::uint64_t j = 0; j < 5; ++j) {
      auto const b = random.block(10 * i + j);
      auto head = edl::wire::encode({.kind = frame_kind(1 + b[0] % 4),
                                     .method = std::uint16_t(b[1] % 12),
                                     .call = b[0] % 3,
                                     .message_size = b[2] % 100,
                                     .payload_size = b[3] % 2 ? 0 : b[3] % 3'000});
      if (j == 4) head[b[0] % head.size()] = std::byte(b[1]);
      asio::error_code ignored;
      asio::write(peer.socket(), asio::buffer(head), ignored);
      peer.try_send(std::string(b[2] % 100 + b[3] % 3'000, char(b[1])));
    }
  }
  CHECK(good.echo("fine") == "fine");
}

}  // namespace connection_test
