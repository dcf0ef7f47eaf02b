// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <sys/random.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

#include "edl/base/net/security/token.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::net {

EDL_INLINE nonce draw_nonce() {
  nonce n;
  // The kernel returns up to 256 bytes whole, unless a signal arrives before its generator is seeded.
  while (::getrandom(n.data(), n.size(), 0) != ssize_t(n.size()))
    if (errno != EINTR)
      throw error("no random bytes from the system: " + std::generic_category().message(errno));
  return n;
}

EDL_INLINE token::token(std::string secret) : secret_(std::move(secret)) {
  if (secret_.size() < 16)
    throw error(fmt::format(
        "the job's token has {} characters, but needs 16 or more: generate one with `openssl rand -hex 32`",
        secret_.size()));
}

EDL_INLINE token token::random() {
  std::string digits;
  for (std::byte b : draw_nonce())
    fmt::format_to(std::back_inserter(digits), "{:02x}", std::to_integer<unsigned>(b));
  return token(digits);
}

EDL_INLINE proof token::prove(side who, handshake_facts const& f) const {
  std::vector<unsigned char> text;
  auto const add = [&text](bytes field) {
    for (int shift = 0; shift < 32; shift += 8)
      text.push_back(static_cast<unsigned char>(field.size() >> shift));
    auto const* const first = reinterpret_cast<unsigned char const*>(field.data());
    text.insert(text.end(), first, first + field.size());
  };
  auto const add_text = [&add](std::string_view field) { add(std::as_bytes(std::span(field))); };
  add_text("edl 2");
  add_text(who == side::client ? "client" : "server");
  add_text(f.job);
  add(f.client_nonce);
  add(f.server_nonce);
  add_text(f.client);
  add_text(f.server);
  add_text(f.wanted);
  add_text(f.place);
  add_text(f.stream);
  add(f.channel);
  proof p;
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), secret_.data(), int(secret_.size()), text.data(), text.size(),
            reinterpret_cast<unsigned char*>(p.data()), &size) ||
      size != p.size())
    throw error("OpenSSL cannot compute HMAC-SHA256");
  return p;
}

EDL_INLINE bool token::verify(bytes given, side who, handshake_facts const& f) const {
  proof const expected = prove(who, f);
  return given.size() == expected.size() &&
         CRYPTO_memcmp(given.data(), expected.data(), expected.size()) == 0;
}

EDL_INLINE std::array<std::byte, 32> token::derive(std::string_view purpose, std::string_view context) const {
  std::array<std::byte, 32> key;
  std::size_t size = key.size();
  auto const data = [](std::string_view s) { return reinterpret_cast<unsigned char const*>(s.data()); };
  std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> const hkdf(
      EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr), &EVP_PKEY_CTX_free);
  if (!hkdf || EVP_PKEY_derive_init(hkdf.get()) != 1 ||
      EVP_PKEY_CTX_set_hkdf_md(hkdf.get(), EVP_sha256()) != 1 ||
      EVP_PKEY_CTX_set1_hkdf_salt(hkdf.get(), data(purpose), int(purpose.size())) != 1 ||
      EVP_PKEY_CTX_set1_hkdf_key(hkdf.get(), data(secret_), int(secret_.size())) != 1 ||
      EVP_PKEY_CTX_add1_hkdf_info(hkdf.get(), data(context), int(context.size())) != 1 ||
      EVP_PKEY_derive(hkdf.get(), reinterpret_cast<unsigned char*>(key.data()), &size) != 1)
    throw error("OpenSSL cannot compute HKDF-SHA256");
  return key;
}

}  // namespace edl::net
