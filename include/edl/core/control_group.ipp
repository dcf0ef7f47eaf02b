// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "edl/core/control_group.hpp"
#include "edl/core/inline.hpp"

namespace edl {
namespace detail {

/// The number after `oom_kill` in a file of names and numbers.
inline std::optional<std::uint64_t> kills_in(std::filesystem::path const& file) {
  std::ifstream in(file);
  std::string name;
  for (std::uint64_t n = 0; in >> name >> n;)
    if (name == "oom_kill") return n;
  return std::nullopt;
}

}  // namespace detail

EDL_INLINE std::vector<std::filesystem::path> control_groups(std::string_view controller,
                                                             group_files const& of) {
  std::vector<std::filesystem::path> all;
  std::ifstream in(of.membership);
  for (std::string line; std::getline(in, line);) {  // hierarchy:controllers:path
    auto const first = line.find(':');
    auto const second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string const controllers = line.substr(first + 1, second - first - 1);
    bool const v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find("," + std::string(controller) + ",") == std::string::npos)
      continue;
    auto const root = v2 ? of.groups : of.groups / controllers;
    for (std::filesystem::path at = std::filesystem::path(line.substr(second + 1)).relative_path();;
         at = at.parent_path()) {
      all.push_back(root / at);
      if (at.empty()) break;
    }
  }
  return all;
}

EDL_INLINE std::uint64_t memory_kills(group_files const& of) {
  for (auto const& group : control_groups("memory", of))
    for (char const* const file : {"memory.events", "memory.oom_control"})
      if (auto const n = detail::kills_in(group / file)) return *n;
  return detail::kills_in(of.whole_machine).value_or(0);
}

}  // namespace edl
