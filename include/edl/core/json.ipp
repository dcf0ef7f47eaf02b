// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"

namespace edl {

EDL_INLINE bool nested_too_deeply(std::string_view json, std::size_t most) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    char const c = json[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

namespace detail {

/// Parses, and notes the first key that an object has twice.
inline nlohmann::json parse_noting_keys(std::string_view text, std::string& twice, bool throws) {
  using nlohmann::json;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  return json::parse(
      text,
      [&](int, json::parse_event_t event, json& value) {
        if (event == json::parse_event_t::object_start)
          keys.emplace_back();
        else if (event == json::parse_event_t::object_end)
          keys.pop_back();
        else if (event == json::parse_event_t::key && twice.empty())
          if (auto const& key = value.get_ref<std::string const&>(); !keys.back().insert(key).second)
            twice = "'" + key + "'";
        return true;
      },
      throws);
}

}  // namespace detail

EDL_INLINE nlohmann::json parse_json(std::string_view text, std::size_t most) {
  if (nested_too_deeply(text, most)) return nlohmann::json::value_t::discarded;
  std::string twice;
  try {
    auto value = detail::parse_noting_keys(text, twice, false);
    if (twice.empty()) return value;
  } catch (nlohmann::json::out_of_range const&) {  // a number that no double can have
  }
  return nlohmann::json::value_t::discarded;
}

EDL_INLINE std::string why_no_json(std::string_view text, std::size_t most) try {
  if (nested_too_deeply(text, most)) return fmt::format("nested deeper than {} levels", most);
  std::string twice;
  detail::parse_noting_keys(text, twice, true);
  return fmt::format("JSON with the key {} twice in one object", printable(twice, 100));
} catch (nlohmann::json::exception const& e) {
  std::string const why = e.what();  // "[json.exception.parse_error.101] parse error at line …"
  auto const at = why.find("] ");
  return "not JSON: " + printable(at == why.npos ? why : why.substr(at + 2), 200);
}

}  // namespace edl
