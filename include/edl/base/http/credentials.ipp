// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "edl/base/http/credentials.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::http {
namespace detail {

inline constexpr std::size_t most_of_secret = 1 << 20;  // bytes of a file
inline constexpr std::size_t shortest_token = 16;

inline std::string text_of_secret(std::string const& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string text;
  for (char some[4096]; in && text.size() <= most_of_secret;) {
    in.read(some, sizeof some);
    text.append(some, std::size_t(in.gcount()));
  }
  if (!in.eof()) throw error(errno ? std::strerror(errno) : "it is larger than 1 MiB");
  return text;
}

inline std::string token_of(std::string const& text) {
  std::string const token(trimmed(std::string_view(text).substr(0, text.find('\n'))));
  if (token.size() < shortest_token)
    throw error(fmt::format("its first line is not a token of {} characters or more", shortest_token));
  return token;
}

/// Compares in constant time, wherever the texts differ.
inline bool same_secret(std::string_view given, std::string_view wanted) {
  return given.size() == wanted.size() && CRYPTO_memcmp(given.data(), wanted.data(), wanted.size()) == 0;
}

inline pem pem_of(std::string const& flag, std::string const& file) {
  std::string const name = fmt::format("{}={}", flag, printable(file));
  try {
    return {text_of_secret(file), name};
  } catch (error const& e) {
    throw error(fmt::format("{}: {}", name, e.what()));
  }
}

}  // namespace detail

EDL_INLINE std::string token_in(std::string const& file) {
  try {
    return detail::token_of(detail::text_of_secret(file));
  } catch (error const& e) {
    throw error(fmt::format("--token_file={}: {}", printable(file), e.what()));
  }
}

EDL_INLINE credentials::credentials(server_options const& o)
    : token_file_(o.token_file),
      certificate_file_(o.certificate),
      key_file_(o.key),
      flags_(o.flags),
      grace_(o.token_grace),
      log_(o.log),
      token_(token_file_.empty() ? o.token : token_in(token_file_)) {
  if (certificate_file_.empty() != key_file_.empty())
    throw usage_error("TLS needs a certificate and its private key, both");
  if (certificate_file_.empty()) return;
  pem const chain = detail::pem_of(flags_ + "certificate", certificate_file_),
            key = detail::pem_of(flags_ + "key", key_file_);
  certificate_.emplace(chain, key);
  pems_found_.text = chain.text + key.text;
}

/// Whether this value was read twice in a row, and was not reported before.
EDL_INLINE bool credentials::found::again(std::string now) {
  if (now == text) return !std::exchange(done, true);
  text = std::move(now);
  done = false;
  return false;
}

EDL_INLINE credentials::files credentials::read() const {
  files found;
  if (!token_file_.empty()) try {
      found.token = token_in(token_file_);
    } catch (error const& e) {
      found.token_failure = e.what();
    }
  if (!certificate_file_.empty()) try {
      found.chain = detail::pem_of(flags_ + "certificate", certificate_file_);
      found.key = detail::pem_of(flags_ + "key", key_file_);
    } catch (error const& e) {
      found.pem_failure = e.what();
    }
  return found;
}

EDL_INLINE void credentials::look(files const& now) {
  if (!token_file_.empty()) look_at_token(now);
  if (!certificate_file_.empty()) look_at_certificate(now);
}

EDL_INLINE void credentials::look_at_token(files const& now) {
  std::string token = now.token;
  std::string const& why = now.token_failure;
  if (!token_found_.again(why.empty() ? token : "\n" + why)) return;
  if (!why.empty()) return log_.warning(why + "; keeping the previous token");
  if (token == token_) return;
  std::erase_if(before_, [](former const& f) { return f.until <= clock::now(); });
  before_.push_back({std::exchange(token_, std::move(token)), clock::now() + grace_});
  log_.info(fmt::format("--token_file={}: a new token; the previous one is accepted for {:.3g} s more",
                        printable(token_file_), std::chrono::duration<double>(grace_).count()));
}

EDL_INLINE void credentials::look_at_certificate(files const& now) {
  std::string why = now.pem_failure;
  if (!pems_found_.again(why.empty() ? now.chain->text + now.key->text : why)) return;
  if (why.empty()) try {
      certificate_ = server_certificate(*now.chain, *now.key);
      return log_.info(fmt::format("{}: a new certificate, for new connections", now.chain->name));
    } catch (error const& e) {
      why = e.what();
    }
  log_.warning(why + "; keeping the previous certificate");
}

EDL_INLINE bool credentials::takes(std::string_view given) const {
  using detail::same_secret;
  if (same_secret(given, token_)) return true;
  if (token_file_.empty() || given.size() < detail::shortest_token) return false;
  return std::ranges::any_of(
      before_, [&](former const& f) { return same_secret(given, f.token) && clock::now() < f.until; });
}

}  // namespace edl::http
