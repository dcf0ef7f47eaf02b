// SPDX-License-Identifier: Apache-2.0
#include "edl/net/token.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

using namespace edl::net;

TEST_CASE("a proof holds for its side, job and nonces, and for nothing else") {
  token const secret("0123456789abcdef"), other("0123456789abcdeg");
  nonce const a = draw_nonce(), b = draw_nonce();
  proof const p = secret.prove(token::side::client, "job", a, b);
  CHECK(secret.verify(p, token::side::client, "job", a, b));
  CHECK_FALSE(secret.verify(p, token::side::server, "job", a, b));
  CHECK_FALSE(secret.verify(p, token::side::client, "jo", a, b));
  CHECK_FALSE(secret.verify(p, token::side::client, "job", b, a));
  CHECK_FALSE(other.verify(p, token::side::client, "job", a, b));
  CHECK_FALSE(secret.verify(edl::bytes(p).first(31), token::side::client, "job", a, b));
  CHECK_FALSE(secret.verify({}, token::side::client, "job", a, b));
  for (std::size_t i = 0; i < p.size(); ++i) {
    proof bad = p;
    bad[i] ^= std::byte{1};
    CHECK_FALSE(secret.verify(bad, token::side::client, "job", a, b));
  }
}

TEST_CASE(
    "the proof is HMAC-SHA256 of the fields with their lengths, for who writes another implementation") {
  // Computed with Python's hmac: see docs/protocol.md.
  nonce client{}, server{};
  for (std::size_t i = 0; i < 32; ++i) client[i] = std::byte(i), server[i] = std::byte(255 - i);
  proof const p = token("an example token of a job").prove(token::side::server, "example", client, server);
  std::string digits;
  for (std::byte x : p) {
    digits += "0123456789abcdef"[std::to_integer<int>(x) >> 4];
    digits += "0123456789abcdef"[std::to_integer<int>(x) & 15];
  }
  CHECK(digits == "44e1991954d2ef949d86245726ba3848f7c0d46b730b36bf6a2f66221d1fc16b");
}

TEST_CASE("tokens are long, and drawn ones differ") {
  CHECK_THROWS_AS(token("too short"), edl::error);
  CHECK(token::random().secret().size() == 64);
  CHECK(token::random().secret() != token::random().secret());
  CHECK(draw_nonce() != draw_nonce());
}
