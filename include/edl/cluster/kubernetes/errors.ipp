// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "edl/cluster/kubernetes/errors.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"

namespace edl::kubernetes {
namespace detail {

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

/// For a refusal by the authoriser, whose message names user, resource and place.
inline char const* who_may(std::string_view message) {
  static constexpr std::array printed{"pods",
                                      "services",
                                      "secrets",
                                      "events",
                                      "serviceaccounts",
                                      "trainingjobs",
                                      "localsubjectaccessreviews"};
  bool const ours = std::ranges::any_of(printed, [&](std::string const& name) {
    return has(message, "resource \"" + name + '"') || has(message, "resource \"" + name + '/');
  });
  if (!ours || has(message, "at the cluster scope")) return "an administrator of the cluster may allow it";
  return has(message, "\"system:serviceaccount:") ? "'edl rbac' prints the role that allows it"
                                                  : "'edl rbac --users' prints the role that allows it";
}

// What the user can do; empty if the server's message says that already.
inline std::string way_out(int code, std::string_view reason, std::string_view message,
                           std::string const& origin) {
  switch (code) {
    case 401:
      return fmt::format("the credentials of {} were rejected: renew them, or choose other ones", origin);
    case 403:
      // Admission controllers also refuse with 403, but only the authoriser writes that a user "cannot".
      if (has(message, "cannot ")) return who_may(message);
      if (has(message, "exceeded quota") || has(message, "maximum "))
        return "ask for less, or for a larger quota of the namespace";
      if (has(message, "no PriorityClass"))
        return "'kubectl get priorityclasses' lists them; create it, or name another";
      return "";
    case 404:
      if (has(message, "namespaces \"")) return "create the namespace, or name another with --namespace";
      if (reason != "NotFound" || has(message, "the server could not find the requested resource"))
        return "does `server` name a Kubernetes API server that has this resource?";
      return "";
    case 409:
      if (reason == "AlreadyExists") return "delete it first, or choose another name";
      if (reason == "Conflict") return "it has changed since it was read: repeat the command";
      return "";
    case 413:
      return "the object is too large for the server";
    default:
      if (code >= 300 && code < 400) return "does `server` name a Kubernetes API server?";
      return "";
  }
}

}  // namespace detail

EDL_INLINE std::string one_line(std::string_view text, std::size_t longest) {
  std::string out;
  for (char c : text) {
    bool const inside = (static_cast<unsigned char>(c) & 0xc0) == 0x80;  // inside a multi-byte character
    if (out.size() >= longest && (!inside || out.size() >= longest + 3)) return out + "…";
    bool const control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (!control)
      out.push_back(c);
    else if (!out.empty() && out.back() != ' ')
      out.push_back(' ');
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

EDL_INLINE api_error refusal(int code, std::string_view body, std::string const& request,
                             std::string const& origin, std::chrono::seconds retry_after) {
  std::string reason, message;
  auto const status = parse_json(body);
  if (status.is_object()) {
    auto const text = [&](char const* key) {
      auto const it = status.find(key);
      return it != status.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    reason = text("reason");
    message = text("message");
  } else {
    message = one_line(body, 300);
  }
  if (message.empty()) message = reason;
  std::string what = fmt::format("{}: {}", request, code);
  if (!reason.empty() && reason != message) what += " " + one_line(reason, 100);
  if (!message.empty()) what += ": " + one_line(message);
  if (auto const out = detail::way_out(code, reason, message, origin); !out.empty()) what += "; " + out;
  return {code, std::move(reason), std::move(message), what, retry_after};
}

}  // namespace edl::kubernetes
