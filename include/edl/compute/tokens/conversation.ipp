// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "edl/compute/tokens/conversation.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"

namespace edl::tokens {
namespace detail {

inline std::string const& text_in(nlohmann::json const& object, char const* name, std::string const& where) {
  auto const found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_string())
    throw data_error(fmt::format("{} has no text '{}'", where, name));
  return found->get_ref<std::string const&>();
}

}  // namespace detail

EDL_INLINE bool conversation::answers() const {
  return std::ranges::any_of(labels, [](std::int64_t l) { return l >= 0; });
}

EDL_INLINE conversation read_conversation(std::string_view line, encoder& by, chat_style const& how,
                                          std::size_t most) {
  auto const all = parse_json(line);
  if (all.is_discarded()) throw data_error("the line is " + why_no_json(line));
  std::vector<token_id> ids;
  std::vector<bool> answer;
  auto const add = [&](std::string_view text, bool is_answer) {
    by.encode(text, ids);
    answer.resize(ids.size(), is_answer);
  };
  auto const messages = all.is_object() ? all.find("messages") : all.end();
  if (all.is_object() && messages != all.end()) {
    if (how.before_role.empty()) throw data_error("'messages' need the style of a chat");
    if (!messages->is_array() || messages->empty())
      throw data_error("'messages' is not a list with one or more messages");
    add(how.begin, false);
    std::size_t number = 0;
    for (auto const& m : *messages) {
      auto const where = fmt::format("message {}", ++number);
      std::string const& role = detail::text_in(m, "role", where);
      std::string const& content = detail::text_in(m, "content", where);
      add(how.before_role, false);
      add(role, false);
      add(how.before_content, false);
      bool const answers = role == "assistant";
      add(content, answers);
      add(how.end, answers);
      add(how.behind, false);
    }
  } else {
    add(detail::text_in(all, "prompt", "the line has no 'messages', and"), false);
    add(detail::text_in(all, "completion", "the line"), true);
    add(how.end, true);
  }
  conversation made;
  std::size_t const n = std::min(ids.empty() ? 0 : ids.size() - 1, most);
  for (std::size_t i = 0; i < n; ++i) {
    made.tokens.push_back(ids[i]);
    made.labels.push_back(answer[i + 1] ? std::int64_t(ids[i + 1]) : -1);
  }
  return made;
}

}  // namespace edl::tokens
