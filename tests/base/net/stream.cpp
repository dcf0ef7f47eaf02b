// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/stream.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <future>
#include <mutex>
#include <set>

#include "base/net/peers.hpp"
#include "edl/core/error.hpp"
#include "text.hpp"

namespace stream_test {

using namespace peers;
using edl::net::byte_stream;
using edl::net::open_stream;

namespace {

/// A node whose listener takes streams.
struct taker {
  struct taken {
    byte_stream socket;
    std::string text, peer;
  };

  explicit taker(std::vector<address> const& where = {any_port()}, edl::net::limits bounds = {})
      : node(options(bounds)),
        listener(
            node, where, [](edl::net::request& r) -> asio::awaitable<void> { co_await r.reply(""); },
            edl::net::listener_options{
                .streams = [this](byte_stream socket, std::string const& what, std::string const& peer) {
                  std::lock_guard const guard(lock);
                  all.push_back({std::move(socket), what, peer});
                }}) {}

  // Waits for it.
  taken& at(std::size_t i) {
    for (;;) {
      {
        std::lock_guard const guard(lock);
        if (all.size() > i) return all[i];
      }
      std::this_thread::yield();
    }
  }

  edl::net::node node;
  std::mutex lock;
  std::deque<taken> all;
  edl::net::listener listener;
};

/// Opens on a node's thread and waits for it here.
struct opening {
  opening(edl::net::node& on, std::vector<address> to, std::string what, std::chrono::milliseconds timeout) {
    done = result.get_future();
    on.spawn([this, &on, to = std::move(to), what = std::move(what), timeout]() -> asio::awaitable<void> {
      try {
        auto socket = co_await open_stream(on, to, "member-7", what, timeout);
        result.set_value(std::move(socket));
      } catch (...) {
        result.set_exception(std::current_exception());
        throw;
      }
    });
  }
  byte_stream get() { return done.get(); }
  outcome why() {
    return outcome_of([&] { get(); });
  }

  std::promise<byte_stream> result;
  std::future<byte_stream> done;
};

byte_stream open(edl::net::node& on, std::vector<address> to, std::string what = "x",
                 std::chrono::milliseconds timeout = 10s) {
  opening o(on, std::move(to), std::move(what), timeout);
  return o.get();
}

outcome failed(edl::net::node& on, std::vector<address> to, std::chrono::milliseconds timeout = 10s,
               std::string what = "x") {
  opening o(on, std::move(to), std::move(what), timeout);
  return o.why();
}

void put(byte_stream const& to, std::string const& text) {
  REQUIRE(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size()));
}

/// `size` bytes, or as many as come before the end.
std::string take(byte_stream const& from, std::size_t size) {
  std::string text;
  while (text.size() < size) {
    pollfd one{from.get(), POLLIN, 0};
    REQUIRE(::poll(&one, 1, 10'000) == 1);
    char some[256];
    auto const n = ::recv(from.get(), some, std::min(sizeof some, size - text.size()), 0);
    if (n <= 0) break;
    text.append(some, std::size_t(n));
  }
  return text;
}

}  // namespace

TEST_CASE("a stream carries bytes both ways, over TCP and Unix sockets, and says what it is for") {
  auto const name = any_name();
  taker t({any_port(), name});
  edl::net::node n(options());
  for (std::size_t i = 0; i < 2; ++i) {
    auto const where = t.listener.addresses()[i];
    std::string const what = "group/" + std::to_string(i) + "/" + std::string(150, 'z');
    byte_stream const here = open(n, {where}, what);
    // At once: the listener may still be at its greeting.
    put(here, "first bytes");
    auto& there = t.at(i);
    CHECK(there.text == what);
    CHECK_FALSE(there.peer.empty());
    CHECK(take(there.socket, 11) == "first bytes");
    put(there.socket, "an answer");
    CHECK(take(here, 9) == "an answer");
    // Neither side blocks.
    char nothing;
    CHECK(::recv(here.get(), &nothing, 1, 0) == -1);
    CHECK((errno == EAGAIN || errno == EWOULDBLOCK));
    CHECK(::recv(there.socket.get(), &nothing, 1, 0) == -1);
    CHECK((errno == EAGAIN || errno == EWOULDBLOCK));
  }
  CHECK(t.listener.connections() == 0);  // they are no connections of frames
  CHECK(t.listener.rejected() == 0);
  CHECK(t.listener.accepted() == 2);
}

TEST_CASE("a stream's end is seen by the other side, and ends no other") {
  taker t;
  edl::net::node n(options());
  byte_stream kept = open(n, t.listener.addresses(), "kept");
  {
    byte_stream const gone = open(n, t.listener.addresses(), "gone");
    put(gone, "last");
  }
  auto& first = t.at(0);
  auto& second = t.at(1);
  auto& ended = first.text == "gone" ? first : second;
  auto& other = first.text == "gone" ? second : first;
  CHECK(take(ended.socket, 100) == "last");
  put(other.socket, "still here");
  CHECK(take(kept, 10) == "still here");
  other.socket = byte_stream();
  CHECK(take(kept, 1) == "");
}

TEST_CASE("frames and streams come to one listener") {
  taker t;
  client c(t.listener.addresses());
  byte_stream const s = open(c.node, t.listener.addresses(), "bytes");
  c.call({.method = 1, .message = "frames"});
  put(s, "raw");
  CHECK(take(t.at(0).socket, 3) == "raw");
  CHECK(t.listener.connections() == 1);
}

TEST_CASE("streams outlive the node that opened them, and the listener that took them") {
  byte_stream here, there;
  {
    edl::net::node n(options());
    taker t;
    here = open(n, t.listener.addresses());
    there = std::move(t.at(0).socket);
  }
  put(here, "on and on");
  CHECK(take(there, 9) == "on and on");
}

TEST_CASE("a listener that takes no streams refuses them, and goes on with frames") {
  server s;
  edl::net::node n(options());
  // The peer proves itself before it closes: either side may find out first.
  bool ended = false;
  try {
    byte_stream const d = open(n, {s.where()});
    ended = take(d, 1).empty();
  } catch (edl::net::call_error const& e) {
    ended = e.code() == status::unavailable;
  }
  CHECK(ended);
  while (s.listener.rejected() != 1) std::this_thread::yield();
  CHECK(s.listener.connections() == 0);
  client c(s.where());
  CHECK(c.echo("a") == "a");
}

TEST_CASE("a stream is not opened to, or by, who does not know the token") {
  taker t;
  auto wrong = options();
  wrong.secret = edl::net::token("another token entirely");
  edl::net::node liar(wrong);
  auto const why = failed(liar, t.listener.addresses());
  CHECK(why.code == status::unavailable);
  CHECK(contains(why.text, "member-7 cannot be reached: tcp:127.0.0.1:"));
  CHECK(contains(why.text, "token"));
  auto other = options();
  other.job = "another job";
  edl::net::node stranger(other);
  CHECK(contains(failed(stranger, t.listener.addresses()).text, "job"));
  CHECK(t.all.empty());

  // A stream asked for by who then proves nothing.
  raw silent(t.listener.addresses()[0]);
  edl::wire::Hello hello;
  auto const nonce = edl::net::draw_nonce();
  hello.set_job("test");
  hello.set_nonce(nonce.data(), nonce.size());
  hello.set_stream("group/1/0");
  silent.send_frame({.kind = edl::wire::frame_kind::hello}, hello.SerializeAsString());
  silent.read_frame();
  edl::wire::Proof proof;
  proof.set_proof(std::string(32, 'x'));
  silent.send_frame({.kind = edl::wire::frame_kind::proof}, proof.SerializeAsString());
  CHECK(silent.read_frame().head.kind == edl::wire::frame_kind::failure);
  CHECK(silent.closed_by_peer());
  CHECK(t.all.empty());
}

TEST_CASE("a peer that says nothing, closes, or speaks otherwise: the opening ends, and says why") {
  edl::net::node n(options());
  raw_port silent;  // accepts, by the kernel, and never answers
  auto why = failed(n, {silent.where()}, 50ms);
  CHECK(why.code == status::unavailable);
  CHECK(contains(why.text, "no reply within 50 ms"));

  raw_port closes;
  std::thread peer([&] { raw(closes.acceptor).read_frame(); });
  why = failed(n, {closes.where()});
  peer.join();
  CHECK(why.code == status::unavailable);
  CHECK(contains(why.text, "member-7 cannot be reached"));

  raw_port other;
  std::thread http([&] {
    raw r(other.acceptor);
    r.read_frame();
    r.try_send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    r.closed_by_peer();
  });
  why = failed(n, {other.where()});
  http.join();
  CHECK(why.code == status::unavailable);

  raw_port liar;
  std::thread lies([&] {
    raw r(liar.acceptor);
    try {
      r.greet_as_server(edl::net::token("another token entirely"));
    } catch (asio::system_error const&) {
    }
  });
  why = failed(n, {liar.where()});
  lies.join();
  CHECK(contains(why.text, "token"));
}

TEST_CASE("the first address that answers is taken, Unix sockets before all") {
  auto const name = any_name();
  taker t({any_port(), name});
  edl::net::node n(options());
  address nobody = t.listener.addresses()[0];
  {
    raw_port gone;
    nobody = gone.where();
  }
  byte_stream const d = open(n, {nobody, t.listener.addresses()[0]});
  CHECK(d);
  byte_stream const local = open(n, {t.listener.addresses()[0], name});
  sockaddr_storage end{};
  socklen_t size = sizeof end;
  REQUIRE(::getsockname(local.get(), reinterpret_cast<sockaddr*>(&end), &size) == 0);
  CHECK(end.ss_family == AF_UNIX);
  auto const why = failed(n, {nobody, any_name()});
  CHECK(why.code == status::unavailable);
  CHECK(contains(why.text, "unix:@"));
  CHECK(contains(why.text, to_string(nobody).c_str()));
  CHECK(failed(n, {}).code == status::unavailable);
}

TEST_CASE("a node that stops ends what it is opening") {
  raw_port silent;
  edl::net::node n(options());
  opening o(n, {silent.where()}, "x", 10min);
  raw accepted(silent.acceptor);
  accepted.read_frame();  // it is at its greeting
  n.stop();
  CHECK_THROWS(o.get());
  CHECK(accepted.closed_by_peer());
}

TEST_CASE("many streams at once, each with its own bytes") {
  taker t;
  edl::net::node n(options());
  std::vector<std::unique_ptr<opening>> all;
  for (int i = 0; i < 100; ++i)
    all.push_back(std::make_unique<opening>(n, t.listener.addresses(), "stream " + std::to_string(i), 10s));
  std::vector<byte_stream> here;
  for (int i = 0; i < 100; ++i) {
    here.push_back(all[std::size_t(i)]->get());
    put(here.back(), std::to_string(1000 + i));
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < 100; ++i) {
    auto& s = t.at(i);
    std::string const number = take(s.socket, 4);
    CHECK(s.text == "stream " + std::to_string(std::stoi(number) - 1000));
    seen.insert(number);
  }
  CHECK(seen.size() == 100);
}

}  // namespace stream_test
