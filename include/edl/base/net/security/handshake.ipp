// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "edl/base/net/security/handshake.hpp"
#include "edl/base/net/status.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/frame.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::net {

namespace detail {

inline constexpr wire::frame_limits handshake_limits{.message = 1024, .payload = 0};
inline constexpr std::byte tls_record{0x16};  // a handshake record's first byte, RFC 8446 §5.1
inline constexpr std::byte frame_start{'E'};

EDL_INLINE asio::awaitable<void> send_handshake(secure_socket& s, wire::frame_kind kind,
                                                std::string message) {
  auto const head = wire::encode({.kind = kind, .message_size = std::uint32_t(message.size())});
  co_await s.write(head, std::as_bytes(std::span(message)));
}

EDL_INLINE asio::awaitable<void> send_refusal(secure_socket& s, std::string text) {
  wire::Failure failure;
  failure.set_code(std::uint32_t(status::unavailable));
  failure.set_text(printable(text, 900));
  co_await send_handshake(s, wire::frame_kind::failure, failure.SerializeAsString());
}

// Reads the message of the next frame, which must be of `kind`. A failure message in its place is not
// authenticated, so it is only a reason to retry.
EDL_INLINE asio::awaitable<std::string> take_handshake(secure_socket& s, wire::frame_kind kind) {
  std::array<std::byte, wire::frame_header_size> head;
  co_await s.read(head);
  wire::frame_header const h = wire::decode(head, handshake_limits);
  std::string message(h.message_size, '\0');
  co_await s.read(std::as_writable_bytes(std::span(message)));
  wire::Failure failure;
  if (h.kind == wire::frame_kind::failure && failure.ParseFromString(message))
    throw call_error(status::unavailable, "the peer refused: " + printable(failure.text(), 400));
  if (h.kind != kind)
    throw error(
        fmt::format("a frame of kind {} in the handshake instead of kind {}", int(h.kind), int(kind)));
  co_return message;
}

// Switches to TLS if the client asks for it, and refuses a client that does not when TLS is required.
EDL_INLINE asio::awaitable<void> take_security(secure_socket& s, node_options const& self,
                                               tls_context const& tls, greeting& said) {
  std::byte const first = co_await s.peek();
  said.heard = true;
  if (s.local()) co_return;
  if (first == tls_record) co_return co_await s.secure(tls, tls_session::side::server);
  if (first != frame_start) throw error("it speaks neither TLS nor this protocol");
  if (self.security == transport_security::none) co_return;
  std::array<std::byte, wire::frame_header_size> head;
  co_await s.read(head);
  std::string why = "it speaks without TLS: give all processes of a job the same --transport_security";
  try {
    wire::decode(head, handshake_limits);
  } catch (error const& e) {
    why = e.what();  // most likely another version
  }
  co_await send_refusal(s, why);
  throw error(why);
}

EDL_INLINE std::string who_is(std::string const& identity) {
  return identity.empty() ? "a process without a name" : identity;
}

}  // namespace detail

EDL_INLINE asio::awaitable<void> greet_server(secure_socket& s, node_options const& self,
                                              tls_context const& tls, address const& dialled,
                                              std::string const& stream) {
  if (dialled.over == address::transport::tcp && self.security == transport_security::tls)
    co_await s.secure(tls, tls_session::side::client);
  nonce const mine = draw_nonce();
  std::string const me = to_string(self.self), place = place_of(dialled);
  wire::Hello hello;
  hello.set_nonce(mine.data(), mine.size());
  hello.set_job(self.job);
  hello.set_stream(stream);
  hello.set_self(me);
  hello.set_wanted(dialled.peer);
  hello.set_place(place);
  co_await detail::send_handshake(s, wire::frame_kind::hello, hello.SerializeAsString());
  std::string const text = co_await detail::take_handshake(s, wire::frame_kind::challenge);
  wire::Challenge challenge;
  if (!challenge.ParseFromString(text) || challenge.nonce().size() != nonce_size)
    throw error("a challenge that cannot be read");
  if (!challenge.self().empty() && !is_identity(challenge.self()))
    throw error("a challenge with an unreadable identity");
  auto const channel = s.channel_binding();
  handshake_facts const facts{.job = self.job,
                              .client_nonce = mine,
                              .server_nonce = std::as_bytes(std::span(challenge.nonce())),
                              .client = me,
                              .server = challenge.self(),
                              .wanted = dialled.peer,
                              .place = place,
                              .stream = stream,
                              .channel = channel};
  if (!self.secret.verify(std::as_bytes(std::span(challenge.proof())), token::side::server, facts))
    throw call_error(status::unavailable,
                     "the peer's token for job '" + self.job + "' is not this process' token");
  if (!answers_to(challenge.self(), dialled.peer))
    throw call_error(status::unavailable, fmt::format("{} replied, but {} was dialled",
                                                      detail::who_is(challenge.self()), dialled.peer));
  proof const answer = self.secret.prove(token::side::client, facts);
  wire::Proof message;
  message.set_proof(answer.data(), answer.size());
  co_await detail::send_handshake(s, wire::frame_kind::proof, message.SerializeAsString());
}

EDL_INLINE asio::awaitable<void> greet_client(secure_socket& s, node_options const& self,
                                              tls_context const& tls, std::vector<address> const& published,
                                              greeting& said) {
  co_await detail::take_security(s, self, tls, said);
  std::string const text = co_await detail::take_handshake(s, wire::frame_kind::hello);
  wire::Hello hello;
  if (!hello.ParseFromString(text) || hello.nonce().size() != nonce_size ||
      (!hello.self().empty() && !is_identity(hello.self())))
    throw error("a hello that cannot be read");
  std::string const me = to_string(self.self);
  // A run of a process publishes its own addresses. An identity that outlives its runs may be dialled at
  // others.
  bool const known =
      hello.place().empty() || self.self.incarnation == 0 ||
      std::ranges::any_of(published, [&](address const& a) { return place_of(a) == hello.place(); });
  std::string refusal;
  if (hello.job() != self.job)
    refusal = fmt::format("this process belongs to job '{}', but the caller wants job '{}'", self.job,
                          printable(hello.job(), 200));
  else if (!answers_to(me, hello.wanted()))
    refusal =
        fmt::format("this is {}, but {} was dialled", detail::who_is(me), printable(hello.wanted(), 80));
  else if (!known)
    refusal = fmt::format("{} does not listen at {}", detail::who_is(me), printable(hello.place(), 200));
  if (refusal.empty()) {
    nonce const mine = draw_nonce();
    auto const channel = s.channel_binding();
    handshake_facts const facts{.job = self.job,
                                .client_nonce = std::as_bytes(std::span(hello.nonce())),
                                .server_nonce = mine,
                                .client = hello.self(),
                                .server = me,
                                .wanted = hello.wanted(),
                                .place = hello.place(),
                                .stream = hello.stream(),
                                .channel = channel};
    proof const answer = self.secret.prove(token::side::server, facts);
    wire::Challenge challenge;
    challenge.set_nonce(mine.data(), mine.size());
    challenge.set_proof(answer.data(), answer.size());
    challenge.set_self(me);
    co_await detail::send_handshake(s, wire::frame_kind::challenge, challenge.SerializeAsString());
    std::string const last = co_await detail::take_handshake(s, wire::frame_kind::proof);
    wire::Proof given;
    if (!given.ParseFromString(last)) throw error("a proof that cannot be read");
    if (!self.secret.verify(std::as_bytes(std::span(given.proof())), token::side::client, facts))
      refusal = "the caller's token for job '" + self.job + "' is not this process' token";
  }
  if (refusal.empty()) {
    said.stream = hello.stream();
    said.client = hello.self();
    co_return;
  }
  co_await detail::send_refusal(s, refusal);
  throw call_error(status::unavailable, refusal);
}

}  // namespace edl::net
