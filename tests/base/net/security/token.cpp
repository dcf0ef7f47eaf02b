// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/security/token.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace token_test {

using namespace edl::net;

namespace {

handshake_facts facts(nonce const& client, nonce const& server) {
  return {.job = "job",
          .client_nonce = client,
          .server_nonce = server,
          .client = "worker-0/1",
          .server = "ps-1/2",
          .wanted = "ps-1",
          .place = "tcp:h:1",
          .stream = "group/1/0",
          .channel = {}};
}

std::string digits(edl::bytes of) {
  std::string text;
  for (std::byte x : of) {
    text += "0123456789abcdef"[std::to_integer<int>(x) >> 4];
    text += "0123456789abcdef"[std::to_integer<int>(x) & 15];
  }
  return text;
}

}  // namespace

TEST_CASE("a proof holds for its side and for all that was said, and for nothing else") {
  token const secret("0123456789abcdef"), other("0123456789abcdeg");
  nonce const a = draw_nonce(), b = draw_nonce();
  auto const said = facts(a, b);
  proof const p = secret.prove(token::side::client, said);
  CHECK(secret.verify(p, token::side::client, said));
  CHECK_FALSE(secret.verify(p, token::side::server, said));
  CHECK_FALSE(other.verify(p, token::side::client, said));
  auto const differs = [&](auto change) {
    auto f = said;
    change(f);
    return !secret.verify(p, token::side::client, f);
  };
  CHECK(differs([](auto& f) { f.job = "jo"; }));
  CHECK(differs([&](auto& f) { f.client_nonce = b; }));
  CHECK(differs([&](auto& f) { f.server_nonce = a; }));
  CHECK(differs([](auto& f) { f.client = "worker-1/1"; }));
  CHECK(differs([](auto& f) { f.server = "ps-1/3"; }));
  CHECK(differs([](auto& f) { f.wanted = "ps-1/2"; }));
  CHECK(differs([](auto& f) { f.place = "tcp:h:2"; }));
  CHECK(differs([](auto& f) { f.stream = {}; }));
  CHECK(differs([&](auto& f) { f.channel = a; }));
  // No field can be moved into its neighbour.
  CHECK(differs([](auto& f) { f.wanted = "ps-1tcp:h:1", f.place = {}; }));
  CHECK_FALSE(secret.verify(edl::bytes(p).first(31), token::side::client, said));
  CHECK_FALSE(secret.verify({}, token::side::client, said));
  for (std::size_t i = 0; i < p.size(); ++i) {
    proof bad = p;
    bad[i] ^= std::byte{1};
    CHECK_FALSE(secret.verify(bad, token::side::client, said));
  }
}

TEST_CASE("proofs and keys are HMAC-SHA256 and HKDF-SHA256, for another implementation") {
  // Computed with Python's hmac: see docs/protocol.md.
  nonce client{}, server{};
  for (std::size_t i = 0; i < 32; ++i) client[i] = std::byte(i), server[i] = std::byte(255 - i);
  token const secret("an example token of a job");
  CHECK(digits(secret.prove(token::side::server, {.job = "example",
                                                  .client_nonce = client,
                                                  .server_nonce = server,
                                                  .client = "worker-0/0000000000000001",
                                                  .server = "ps-1/0000000000000002",
                                                  .wanted = "ps-1/0000000000000002",
                                                  .place = "tcp:10.0.0.7:2222",
                                                  .stream = {},
                                                  .channel = {}})) ==
        "089af48e7449626fd48ee3cf2a6333934ea804e6a9d82d79ab0ff7cd2e688eba");
  CHECK(digits(secret.derive("edl 2 tls", "example")) ==
        "a9cd7576dd9f26fb91a7b16a54e87091ac3c6903ca591af9e1d1396f4c61b560");
  CHECK(secret.derive("edl 2 tls", "example") != secret.derive("edl 2 tls", "another"));
  CHECK(secret.derive("edl 2 tls", "example") != secret.derive("edl 3 tls", "example"));
}

TEST_CASE("tokens are long, and drawn ones differ") {
  CHECK_THROWS_AS(token("too short"), edl::error);
  CHECK(token::random().secret().size() == 64);
  CHECK(token::random().secret() != token::random().secret());
  CHECK(draw_nonce() != draw_nonce());
}

}  // namespace token_test
