// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "edl/base/bucket/signature.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"

namespace edl::bucket {

EDL_INLINE std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

namespace detail {

inline std::string hmac(std::string const& key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out;
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), key.data(), int(key.size()), reinterpret_cast<unsigned char const*>(text.data()),
            text.size(), out.data(), &size))
    throw error("OpenSSL makes no HMAC");
  return {reinterpret_cast<char const*>(out.data()), size};
}

// Sorts keys and values by their bytes, and gives each key its '='.
inline std::string canonical_query(std::string_view query) {
  std::vector<std::string> all;
  while (!query.empty()) {
    auto const end = std::min(query.find('&'), query.size());
    std::string one(query.substr(0, end));
    if (one.find('=') == one.npos) one += '=';
    all.push_back(std::move(one));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  std::ranges::sort(all);
  return fmt::format("{}", fmt::join(all, "&"));
}

}  // namespace detail

EDL_INLINE std::string base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL adds a zero
  int const size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<unsigned char const*>(bytes.data()), int(bytes.size()));
  out.resize(std::size_t(size));
  return out;
}

EDL_INLINE std::string sha256_bytes(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out;
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), out.data(), &size, EVP_sha256(), nullptr) != 1)
    throw error("OpenSSL makes no SHA-256");
  return {reinterpret_cast<char const*>(out.data()), size};
}

EDL_INLINE void sign(http::question& q, std::string_view host, credentials const& who,
                     std::string_view region, std::time_t now) {
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char moment[20];
  std::strftime(moment, sizeof moment, "%Y%m%dT%H%M%SZ", &utc);
  std::string const day(moment, 8), scope = fmt::format("{}/{}/s3/aws4_request", day, region);
  if (std::ranges::find(q.headers, "x-amz-content-sha256", &http::fields::value_type::first) ==
      q.headers.end())
    q.headers.emplace_back("x-amz-content-sha256", sha256(q.body));
  q.headers.emplace_back("x-amz-date", moment);
  if (!who.session.empty()) q.headers.emplace_back("x-amz-security-token", who.session);
  std::map<std::string, std::string> fields{{"host", std::string(host)}};
  for (auto const& [name, value] : q.headers) fields[lower(name)] = trimmed(value);
  std::string lines, names;
  for (auto const& [name, value] : fields) {
    lines += fmt::format("{}:{}\n", name, value);
    names += (names.empty() ? "" : ";") + name;
  }
  auto const end = std::min(q.target.find('?'), q.target.size());
  std::string const request = fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}", q.method, std::string_view(q.target).substr(0, end),
      detail::canonical_query(std::string_view(q.target).substr(std::min(end + 1, q.target.size()))), lines,
      names, fields["x-amz-content-sha256"]);
  std::string secret = "AWS4" + who.secret;
  for (std::string_view const part :
       {std::string_view(day), region, std::string_view("s3"), std::string_view("aws4_request")})
    secret = detail::hmac(secret, part);
  std::string const signature = hexadecimal(
      detail::hmac(secret, fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", moment, scope, sha256(request))));
  q.headers.emplace_back("Authorization",
                         fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                                     who.key, scope, names, signature));
}

}  // namespace edl::bucket
