// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace edl {

/// The role of a process in a job.
enum class role { master, server, worker };

/// The role's name in the environment, in labels and in names of processes.
constexpr char const* to_string(role of) {
  return of == role::master ? "master" : of == role::server ? "ps" : "worker";
}

/// Nothing if the text names no role.
constexpr std::optional<role> parse_role(std::string_view text) {
  for (role const one : {role::master, role::server, role::worker})
    if (text == to_string(one)) return one;
  return std::nullopt;
}

/// One process of a job. In text it is "master", "ps-0", "worker-3".
struct process_id {
  edl::role role = edl::role::worker;
  std::uint32_t id = 0;  ///< of its role; the master's is 0
  friend auto operator<=>(process_id const&, process_id const&) = default;
};

inline std::string to_string(process_id const& who) {
  std::string const name = to_string(who.role);
  return who.role == role::master ? name : name + '-' + std::to_string(who.id);
}

/// Nothing if the text names no process.
inline std::optional<process_id> parse_process_id(std::string_view text) {
  if (text == to_string(role::master)) return process_id{role::master, 0};
  auto const dash = text.find('-');
  auto const of = parse_role(text.substr(0, dash));
  if (!of || *of == role::master || dash == text.npos) return std::nullopt;
  std::uint32_t id = 0;
  char const* const end = text.data() + text.size();
  auto const [rest, failed] = std::from_chars(text.data() + dash + 1, end, id);
  if (failed != std::errc() || rest != end) return std::nullopt;
  return process_id{*of, id};
}

}  // namespace edl
