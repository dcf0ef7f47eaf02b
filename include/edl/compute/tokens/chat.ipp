// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "edl/compute/tokens/chat.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/json.hpp"

namespace edl::tokens {
namespace detail {

/// A file's bytes; empty if there is no such file.
inline std::string text_of(std::filesystem::path const& path) {
  constexpr std::uint64_t most = 16 << 20;
  std::error_code unknown;
  if (std::filesystem::status(path, unknown).type() == std::filesystem::file_type::not_found) return {};
  input_file const file(path.string());
  if (file.size() > most)
    throw error(fmt::format("{} has {} bytes, and at most {} are read", path.string(), file.size(), most));
  std::string text(std::size_t(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// The template of a `tokenizer_config.json`: a text, or a list of named ones, of which the first counts.
inline std::string template_in(std::string const& config) {
  auto const all = parse_json(config);
  auto const found = all.is_object() ? all.find("chat_template") : all.end();
  if (!all.is_object() || found == all.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array() || found->empty() || !found->front().is_object()) return {};
  auto const& first = found->front();
  auto const text = first.find("template");
  return text != first.end() && text->is_string() ? text->get<std::string>() : std::string();
}

/// Without the line ends behind them.
inline std::array<std::string_view, 4> tokens_of(chat_style const& how) {
  std::array<std::string_view, 4> all{how.begin, how.before_role, how.before_content, how.end};
  for (std::string_view& one : all) one = one.substr(0, one.find('\n'));
  return all;
}

}  // namespace detail

EDL_INLINE std::optional<chat_style> chat_style_of(std::string_view name) {
  if (name == "chatml") return chatml;
  if (name == "llama3") return llama3_chat;
  return std::nullopt;
}

EDL_INLINE std::string chat_style_beside(std::string const& tokenizer) {
  auto const folder = std::filesystem::path(tokenizer).parent_path();
  std::string text = detail::text_of(folder / "chat_template.jinja");
  if (text.empty()) text = detail::template_in(detail::text_of(folder / "tokenizer_config.json"));
  auto const has = [&](std::string_view token) { return text.find(token) != text.npos; };
  for (char const* const name : {"chatml", "llama3"})
    // Phi's begins and ends like ChatML.
    if (auto const style = chat_style_of(name);
        has(style->before_role) && has(style->end) && !has("<|im_sep|>"))
      return name;
  return {};
}

EDL_INLINE void check_chat_style(chat_style const& how, tokenizer const& by) {
  for (std::string_view const token : detail::tokens_of(how))
    if (!token.empty() && !by.find(token))
      throw usage_error(fmt::format("the tokenizer has no token {}, which the style of chats needs", token));
}

EDL_INLINE std::string chat_prompt(chat_style const& how, std::span<chat_message const> messages) {
  std::string text;
  std::size_t number = 0;
  for (chat_message const& m : messages) {
    ++number;
    if (m.role != "system" && m.role != "user" && m.role != "assistant")
      throw usage_error(fmt::format("the role of message {} is not system, user or assistant", number));
    for (std::string_view const token : detail::tokens_of(how))
      if (!token.empty() && m.content.find(token) != m.content.npos)
        throw usage_error(
            fmt::format("message {} contains '{}', with which messages begin or end", number, token));
    text += how.before_role;
    text += m.role;
    text += how.before_content;
    text += m.content;
    text += how.end;
    text += how.behind;
  }
  text += how.before_role;
  text += "assistant";
  text += how.before_content;
  return text;
}

}  // namespace edl::tokens
