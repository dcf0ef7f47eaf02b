// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/net/token.hpp"

namespace edl::net {

EDL_INLINE nonce draw_nonce() {
  nonce n;
  // Up to 256 bytes come whole, unless a signal arrives before the kernel's generator is seeded.
  while (::getrandom(n.data(), n.size(), 0) != ssize_t(n.size()))
    if (errno != EINTR)
      throw error("no random bytes from the system: " + std::generic_category().message(errno));
  return n;
}

EDL_INLINE token::token(std::string secret) : secret_(std::move(secret)) {
  if (secret_.size() < 16)
    throw error(fmt::format(
        "the job's token has {} characters, it needs 16 or more: draw one with `openssl rand -hex 32`",
        secret_.size()));
}

EDL_INLINE token token::random() {
  std::string digits;
  for (std::byte b : draw_nonce())
    fmt::format_to(std::back_inserter(digits), "{:02x}", std::to_integer<unsigned>(b));
  return token(digits);
}

EDL_INLINE proof token::prove(side who, std::string_view job, bytes client, bytes server) const {
  std::vector<unsigned char> text;
  auto const add = [&text](void const* data, std::size_t size) {
    for (int shift = 0; shift < 32; shift += 8) text.push_back(static_cast<unsigned char>(size >> shift));
    auto const* const first = static_cast<unsigned char const*>(data);
    text.insert(text.end(), first, first + size);
  };
  std::string_view const protocol = "edl 1", role = who == side::client ? "client" : "server";
  add(protocol.data(), protocol.size());
  add(role.data(), role.size());
  add(job.data(), job.size());
  add(client.data(), client.size());
  add(server.data(), server.size());
  proof p;
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), secret_.data(), int(secret_.size()), text.data(), text.size(),
            reinterpret_cast<unsigned char*>(p.data()), &size) ||
      size != p.size())
    throw error("OpenSSL cannot compute HMAC-SHA256");
  return p;
}

EDL_INLINE bool token::verify(bytes given, side who, std::string_view job, bytes client, bytes server) const {
  proof const expected = prove(who, job, client, server);
  return given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

}  // namespace edl::net
