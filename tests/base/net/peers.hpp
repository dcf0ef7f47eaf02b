// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <edl/base/wire/edl.pb.h>

#include <array>
#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/system_error.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "edl/base/net/blocking.hpp"
#include "edl/base/net/channel.hpp"
#include "edl/base/net/event.hpp"
#include "edl/base/net/listener.hpp"
#include "edl/base/net/node.hpp"
#include "edl/base/wire/frame.hpp"

namespace peers {

using namespace std::chrono_literals;
using edl::net::address;
using edl::net::status;

inline edl::net::token secret() { return edl::net::token("a token of the tests"); }

// Quiet: what the tests provoke on purpose is not worth a line. Without TLS, so that a raw peer can say what
// it likes; with it see secured.
inline edl::net::node_options options(edl::net::limits bounds = {}) {
  return {.job = "test",
          .secret = secret(),
          .log = edl::logger(edl::severity::critical),
          .bounds = bounds,
          .security = edl::net::transport_security::none};
}

inline edl::net::node_options secured(edl::net::identity self = {}, edl::net::limits bounds = {}) {
  auto o = options(bounds);
  o.self = std::move(self);
  o.security = edl::net::transport_security::tls;
  return o;
}

inline address any_port() { return edl::net::parse_address("tcp:127.0.0.1:0"); }

inline address any_name() {
  return {address::transport::local, "edl-test-" + edl::net::token::random().secret(), 0};
}

// The status and text that a call ends with.
struct outcome {
  status code = status::ok;
  std::string text;
};

template <class F>
outcome outcome_of(F&& f) {
  try {
    f();
    return {};
  } catch (edl::net::call_error const& e) {
    return {e.code(), e.what()};
  }
}

inline std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> v(size);
  for (std::size_t i = 0; i < size; ++i) v[i] = std::byte((i * 2654435761u + seed * 97u) >> 7);
  return v;
}

// What a raw client says of itself and of whom it wants.
struct claim {
  std::string self = {}, wanted = {}, place = {}, stream = {};
};

// A peer over a plain blocking socket, that does whatever a test wants.
class raw {
 public:
  explicit raw(address const& to) : socket_(io_) {
    socket_.connect({asio::ip::make_address(to.host), to.port});
  }
  explicit raw(asio::ip::tcp::acceptor& from) : socket_(from.accept()) {}

  void send(std::string_view text) { asio::write(socket_, asio::buffer(text)); }

  // Sends as much as the peer takes; it may have closed already.
  void try_send(std::string_view text) {
    asio::error_code ignored;
    asio::write(socket_, asio::buffer(text), ignored);
  }

  void send_frame(edl::wire::frame_header h, std::string const& message = {}, std::size_t payload_sent = 0) {
    h.message_size = std::uint32_t(message.size());
    auto const head = edl::wire::encode(h);
    asio::write(socket_, asio::buffer(head));
    asio::write(socket_, asio::buffer(message));
    std::vector<std::byte> rest(edl::wire::frame_padding(h) + payload_sent, std::byte{7});
    asio::write(socket_, asio::buffer(rest));
  }

  struct frame {
    edl::wire::frame_header head;
    std::string message;
    std::vector<std::byte> payload;
  };

  frame read_frame() {
    frame f;
    std::array<std::byte, edl::wire::frame_header_size> head;
    asio::read(socket_, asio::buffer(head));
    f.head = edl::wire::decode(head);
    f.message.resize(f.head.message_size);
    asio::read(socket_, asio::buffer(f.message));
    std::vector<std::byte> rest(edl::wire::frame_padding(f.head) + f.head.payload_size);
    asio::read(socket_, asio::buffer(rest));
    f.payload.assign(rest.begin() + std::ptrdiff_t(edl::wire::frame_padding(f.head)), rest.end());
    return f;
  }

  // Whether the peer has closed: waits for it.
  bool closed_by_peer() {
    std::array<char, 256> rest;
    asio::error_code failed;
    while (!failed) socket_.read_some(asio::buffer(rest), failed);
    return true;
  }

  void greet_as_client(edl::net::token const& with = secret(), std::string const& job = "test",
                       claim const& c = {}) {
    edl::net::nonce const mine = edl::net::draw_nonce();
    edl::wire::Hello hello;
    hello.set_job(job);
    hello.set_nonce(mine.data(), mine.size());
    hello.set_self(c.self);
    hello.set_wanted(c.wanted);
    hello.set_place(c.place);
    hello.set_stream(c.stream);
    send_frame({.kind = edl::wire::frame_kind::hello}, hello.SerializeAsString());
    edl::wire::Challenge challenge;
    challenge.ParseFromString(read_frame().message);
    auto const answer = with.prove(edl::net::token::side::client,
                                   {.job = job,
                                    .client_nonce = mine,
                                    .server_nonce = std::as_bytes(std::span(challenge.nonce())),
                                    .client = c.self,
                                    .server = challenge.self(),
                                    .wanted = c.wanted,
                                    .place = c.place,
                                    .stream = c.stream});
    edl::wire::Proof proof;
    proof.set_proof(answer.data(), answer.size());
    send_frame({.kind = edl::wire::frame_kind::proof}, proof.SerializeAsString());
  }

  void greet_as_server(edl::net::token const& with = secret(), std::string const& self = {}) {
    edl::wire::Hello hello;
    hello.ParseFromString(read_frame().message);
    edl::net::nonce const mine = edl::net::draw_nonce();
    auto const answer =
        with.prove(edl::net::token::side::server, {.job = hello.job(),
                                                   .client_nonce = std::as_bytes(std::span(hello.nonce())),
                                                   .server_nonce = mine,
                                                   .client = hello.self(),
                                                   .server = self,
                                                   .wanted = hello.wanted(),
                                                   .place = hello.place(),
                                                   .stream = hello.stream()});
    edl::wire::Challenge challenge;
    challenge.set_nonce(mine.data(), mine.size());
    challenge.set_proof(answer.data(), answer.size());
    challenge.set_self(self);
    send_frame({.kind = edl::wire::frame_kind::challenge}, challenge.SerializeAsString());
    read_frame();
  }

  asio::ip::tcp::socket& socket() { return socket_; }

 private:
  asio::io_context io_;
  asio::ip::tcp::socket socket_;
};

// Where a raw server listens.
struct raw_port {
  asio::io_context io;
  asio::ip::tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
  address where() { return {address::transport::tcp, "127.0.0.1", acceptor.local_endpoint().port()}; }
};

// A node that serves what the tests call.
enum method : std::uint16_t {
  echo = 1,       // replies message and payload as they came
  size_of = 2,    // does not read the payload, replies its size
  hold = 3,       // waits until `release`
  refuse = 4,     // throws call_error
  complain = 5,   // throws edl::error with the message
  stumble = 6,    // throws something else
  forget = 7,     // ends without a reply
  swallow = 8,    // reads into memory of the wrong size
  time_left = 9,  // replies request::time_left
  big = 10,       // replies a payload of as many bytes as the message says
};

struct server {
  explicit server(edl::net::limits bounds = {}, std::vector<address> const& where = {any_port()})
      : server(options(bounds), where) {}
  explicit server(edl::net::node_options o, std::vector<address> const& where = {any_port()})
      : node(std::move(o)),
        released(node.executor()),
        listener(node, where, [this](edl::net::request& r) { return serve(r); }) {}

  asio::awaitable<void> serve(edl::net::request& r) {
    std::string const text(reinterpret_cast<char const*>(r.message().data()), r.message().size());
    switch (r.method()) {
      case echo: {
        std::vector<std::byte> data(r.payload_size());
        co_await r.read(data);
        co_await r.reply(text, data);
        break;
      }
      case size_of:
        co_await r.reply(std::to_string(r.payload_size()));
        break;
      case hold:
        ++held;
        try {
          co_await released.wait();
        } catch (asio::system_error const&) {
          if (r.cancelled()) ++cancelled;
          throw;
        }
        co_await r.reply(text);
        break;
      case refuse:
        throw edl::net::call_error(status::stale_generation, "generation 3 is over");
      case complain:
        throw edl::error(text);
      case stumble:
        throw std::runtime_error("stumbled");
      case swallow: {
        std::vector<std::byte> data(r.payload_size() + 1);
        co_await r.read(data);
        break;
      }
      case time_left:
        co_await r.reply(std::to_string(r.time_left().count()));
        break;
      case big: {
        std::vector<std::byte> const data = pattern(std::stoul(text), 1);
        edl::bytes const parts[] = {edl::bytes(data).first(data.size() / 3),
                                    edl::bytes(data).subspan(data.size() / 3)};
        co_await r.reply(std::string_view(), parts);
        break;
      }
      default:
        break;
    }
  }

  // Returns once `n` handlers have been held since the start.
  void wait_held(int n) const {
    while (held < n) std::this_thread::yield();
  }
  void wait_cancelled(int n) const {
    while (cancelled < n) std::this_thread::yield();
  }
  void release() {
    node.post([this] { released.notify(); });
  }
  address where() const { return listener.addresses()[0]; }

  edl::net::node node;
  edl::net::event released;
  std::atomic<int> held = 0, cancelled = 0;
  edl::net::listener listener;
};

// A node and a channel to one peer.
struct client {
  explicit client(std::vector<address> const& to, edl::net::limits bounds = {})
      : client(options(bounds), to) {}
  client(edl::net::node_options o, std::vector<address> const& to)
      : node(std::move(o)), channel(node, to, "peer") {}
  explicit client(address const& to, edl::net::limits bounds = {})
      : client(std::vector<address>{to}, bounds) {}

  edl::net::reply call(edl::net::outgoing what) { return edl::net::wait(channel, std::move(what)); }
  std::string echo(std::string const& text) { return call({.method = peers::echo, .message = text}).message; }

  edl::net::node node;
  edl::net::channel channel;
};

}  // namespace peers
