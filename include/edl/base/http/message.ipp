// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "edl/base/http/message.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/metric_registry.hpp"
#include "edl/core/text.hpp"

namespace edl::http {

EDL_INLINE std::string_view field(fields const& of, std::string_view name) {
  for (auto const& [key, value] : of)
    if (key == name) return value;
  return {};
}

EDL_INLINE std::string request::parameter(std::string_view key) const {
  for (std::string_view rest = query; !rest.empty();) {
    auto const end = rest.find('&');
    std::string_view const pair = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    auto const equals = pair.find('=');
    if (decoded(pair.substr(0, equals), true) == key)
      return equals == pair.npos ? std::string() : decoded(pair.substr(equals + 1), true);
  }
  return {};
}

EDL_INLINE response to_response(failure const& f) {
  using json = nlohmann::json;
  return {.status = f.status,
          .body = json{{"error", f.what()}}.dump(-1, ' ', false, json::error_handler_t::replace) + "\n",
          .headers = f.headers};
}

EDL_INLINE response metrics_response(request const& to, std::string openmetrics) {
  std::string const accepted = lower(to.field("accept"));
  auto const names = [&](std::string_view type) { return accepted.find(type) != accepted.npos; };
  if (names("text/plain") && !names("application/openmetrics-text"))
    return {.type = std::string(plain_metrics_type), .body = plain_metrics(openmetrics)};
  return {.type = std::string(metric_registry::content_type), .body = std::move(openmetrics)};
}

EDL_INLINE std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return status < 400 ? "OK" : "Error";
  }
}

EDL_INLINE std::string decoded(std::string_view text, bool plus) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      auto const code = number_from<unsigned>(text.substr(i + 1, 2), 16);
      if (!code || text.size() < i + 3 || *code == 0)
        throw failure(400, fmt::format("the address has a bad %XX at its byte {}", i));
      out.push_back(char(*code));
      i += 2;
    } else {
      out.push_back(plus && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}

EDL_INLINE std::string percent_encoded(std::string_view text, std::string_view plain) {
  std::string out;
  for (char c : text) {
    bool const unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                            c == '-' || c == '.' || c == '_' || c == '~';
    if (unreserved || plain.find(c) != plain.npos)
      out.push_back(c);
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace edl::http
