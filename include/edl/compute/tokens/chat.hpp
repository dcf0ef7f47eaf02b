// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "edl/compute/tokens/conversation.hpp"

namespace edl::tokens {

/// The style of a name: "chatml" or "llama3"; empty: of none.
std::optional<chat_style> chat_style_of(std::string_view name);

/// The name of the style in which a published model was trained, by its `chat_template`, in a
/// `tokenizer_config.json` or a `chat_template.jinja` in the folder of its `tokenizer.json`; empty: there is
/// neither, or it has another style. The template itself, a program, is not run. Throws edl::error for files
/// that cannot be read, or have more than 16 MiB.
std::string chat_style_beside(std::string const& tokenizer);

struct chat_message {
  std::string role, content;
};

/// Throws usage_error unless each token of the style is one of the tokenizer.
void check_chat_style(chat_style const& how, tokenizer const& by);

/// The text that a model continues with the next message of the role `assistant`. It begins without the
/// style's `begin`, which tokenizers add. Throws usage_error for another role than `system`, `user` and
/// `assistant`, and if a content contains a token of the style, with which its author could pass for another
/// role.
std::string chat_prompt(chat_style const& how, std::span<chat_message const> messages);

}  // namespace edl::tokens

#ifdef EDL_HEADER_ONLY
#include "edl/compute/tokens/chat.ipp"
#endif
