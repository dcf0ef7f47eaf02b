// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstring>
#include <optional>
#include <string>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/net/handshake.hpp"
#include "edl/net/status.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/frame.hpp"

namespace edl::net {

namespace detail {

inline constexpr wire::frame_limits handshake_limits{.message = 512, .payload = 0};
using handshake_socket = asio::generic::stream_protocol::socket;

EDL_INLINE asio::awaitable<void> send_handshake(handshake_socket& s, wire::frame_kind kind,
                                                std::string message) {
  auto const head = wire::encode({.kind = kind, .message_size = std::uint32_t(message.size())});
  std::array<asio::const_buffer, 2> const both{asio::buffer(head), asio::buffer(message)};
  co_await asio::async_write(s, both, asio::use_awaitable);
}

// The message of the next frame, which must be of `kind`; a failure in its place is thrown.
EDL_INLINE asio::awaitable<std::string> take_handshake(handshake_socket& s, wire::frame_kind kind,
                                                       bool* heard = nullptr) {
  std::array<std::byte, wire::frame_header_size> head;
  if (heard) {
    co_await asio::async_read(s, asio::buffer(head.data(), 1), asio::use_awaitable);
    *heard = true;
  }
  co_await asio::async_read(s, asio::buffer(head) + (heard ? 1 : 0), asio::use_awaitable);
  wire::frame_header const h = wire::decode(head, handshake_limits);
  std::string message(h.message_size, '\0');
  co_await asio::async_read(s, asio::buffer(message), asio::use_awaitable);
  wire::Failure failure;
  if (h.kind == wire::frame_kind::failure && failure.ParseFromString(message))
    throw call_error(status(failure.code()), failure.text());
  if (h.kind != kind)
    throw error(
        fmt::format("a frame of kind {} in the handshake where kind {} belongs", int(h.kind), int(kind)));
  co_return message;
}

}  // namespace detail

EDL_INLINE asio::awaitable<void> greet_server(asio::generic::stream_protocol::socket& s,
                                              node_options const& self, std::string const& stream) {
  nonce const mine = draw_nonce();
  wire::Hello hello;
  hello.set_nonce(mine.data(), mine.size());
  hello.set_job(self.job);
  hello.set_stream(stream);
  co_await detail::send_handshake(s, wire::frame_kind::hello, hello.SerializeAsString());
  std::string const text = co_await detail::take_handshake(s, wire::frame_kind::challenge);
  wire::Challenge challenge;
  if (!challenge.ParseFromString(text) || challenge.nonce().size() != nonce_size)
    throw error("a challenge that cannot be read");
  bytes const theirs = std::as_bytes(std::span(challenge.nonce()));
  if (!self.secret.verify(std::as_bytes(std::span(challenge.proof())), token::side::server, self.job, mine,
                          theirs))
    throw call_error(status::unauthenticated,
                     "the peer's token for job '" + self.job + "' is not this process' token");
  proof const answer = self.secret.prove(token::side::client, self.job, mine, theirs);
  wire::Proof message;
  message.set_proof(answer.data(), answer.size());
  co_await detail::send_handshake(s, wire::frame_kind::proof, message.SerializeAsString());
}

EDL_INLINE asio::awaitable<void> greet_client(asio::generic::stream_protocol::socket& s,
                                              node_options const& self, greeting& said) {
  std::optional<call_error> refusal;
  std::string const text = co_await detail::take_handshake(s, wire::frame_kind::hello, &said.heard);
  wire::Hello hello;
  if (!hello.ParseFromString(text) || hello.nonce().size() != nonce_size)
    throw error("a hello that cannot be read");
  said.stream = hello.stream();
  if (hello.job() != self.job) {
    refusal.emplace(status::unauthenticated, fmt::format("a process of job '{}' was asked for job '{}'",
                                                         self.job, hello.job().substr(0, 200)));
  } else {
    nonce const mine = draw_nonce();
    bytes const theirs = std::as_bytes(std::span(hello.nonce()));
    proof const answer = self.secret.prove(token::side::server, self.job, theirs, mine);
    wire::Challenge challenge;
    challenge.set_nonce(mine.data(), mine.size());
    challenge.set_proof(answer.data(), answer.size());
    co_await detail::send_handshake(s, wire::frame_kind::challenge, challenge.SerializeAsString());
    std::string const last = co_await detail::take_handshake(s, wire::frame_kind::proof);
    wire::Proof given;
    if (!given.ParseFromString(last)) throw error("a proof that cannot be read");
    if (!self.secret.verify(std::as_bytes(std::span(given.proof())), token::side::client, self.job, theirs,
                            mine))
      refusal.emplace(status::unauthenticated,
                      "the caller's token for job '" + self.job + "' is not this process' token");
  }
  if (!refusal) co_return;
  wire::Failure failure;
  failure.set_code(std::uint32_t(refusal->code()));
  failure.set_text(refusal->what());
  co_await detail::send_handshake(s, wire::frame_kind::failure, failure.SerializeAsString());
  throw *refusal;
}

}  // namespace edl::net
