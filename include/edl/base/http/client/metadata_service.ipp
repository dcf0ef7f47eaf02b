// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string_view>
#include <utility>

#include "edl/base/http/client/metadata_service.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"

namespace edl::http {
namespace detail {

inline constexpr std::size_t longest_metadata = 64 << 10;
inline constexpr std::chrono::milliseconds longest_question{1'000};

inline endpoint metadata_endpoint(std::string const& address) {
  endpoint at = parse_endpoint(address, "a metadata service");
  if (at.tls)
    throw error(fmt::format("'{}' is no address of a metadata service: write it as http://host:port",
                            printable(address, 200)));
  return at;
}

}  // namespace detail

EDL_INLINE metadata_service::metadata_service(std::string const& address)
    : line_({.at = detail::metadata_endpoint(address), .name = "metadata"}) {}

EDL_INLINE metadata_service::reply metadata_service::ask(std::string method, std::string const& path,
                                                         fields headers,
                                                         std::function<bool()> const& stopped) {
  reply r;
  try {
    bool sent = false, whole = true;
    question const q{std::move(method), line_.server().at.prefix + path, std::move(headers)};
    auto const head = line_.ask(
        q, limit::of(detail::longest_question, stopped ? &stopped : nullptr),
        [&](response_parser const&, std::string_view piece) {
          whole = whole && r.body.size() + piece.size() <= detail::longest_metadata;
          if (whole) r.body += piece;
          return whole;
        },
        sent);
    r.code = whole ? head.code() : 0;
    r.flavor = head.field("metadata-flavor");
  } catch (std::exception const&) {  // there is no such service, or it does not speak HTTP
    r.code = 0;
  }
  return r;
}

EDL_INLINE aws_metadata::aws_metadata(std::function<std::string(char const*)> const& variable)
    : service_(metadata_address(variable, "AWS_EC2_METADATA_SERVICE_ENDPOINT")) {}

// A token is good for six hours, and may be void before.
EDL_INLINE metadata_service::reply aws_metadata::get(std::string const& path,
                                                     std::function<bool()> const& stopped) {
  for (int tries = 0;; ++tries) {
    if (token_.empty()) {
      auto const token =
          service_.ask("PUT", "/latest/api/token",
                       {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}, {"Content-Length", "0"}}, stopped);
      // It goes into a header.
      bool const sound = token.code == 200 && !token.body.empty() && token.body.size() < 1000 &&
                         std::ranges::all_of(token.body, [](char c) { return c > ' ' && c < 0x7f; });
      if (!sound) return {};
      token_ = token.body;
    }
    auto answer =
        service_.ask("GET", "/latest/meta-data/" + path, {{"X-aws-ec2-metadata-token", token_}}, stopped);
    if (answer.code != 401 || tries > 0) return answer;
    token_.clear();
  }
}

EDL_INLINE std::string metadata_address(std::function<std::string(char const*)> const& variable,
                                        char const* name, char const* scheme) {
  std::string const given = variable(name);
  return given.empty() ? "http://169.254.169.254" : scheme + given;
}

}  // namespace edl::http
