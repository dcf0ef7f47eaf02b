// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "edl/compute/tokens/merges.hpp"
#include "edl/compute/tokens/tokenizer.hpp"

namespace edl::tokens {

/// The text around a message of a chat, of which some is tokens of the tokenizer's file. Without
/// `before_role` there are no messages, only prompts.
struct chat_style {
  std::string_view begin{};  ///< before the first message
  std::string_view before_role, before_content;
  std::string_view end;          ///< ends a message, and a model's answer
  std::string_view behind = {};  ///< after that
};

/// As SmolLM2, Qwen2.5 and others have it.
inline constexpr chat_style chatml{
    .before_role = "<|im_start|>", .before_content = "\n", .end = "<|im_end|>", .behind = "\n"};
/// As Llama 3.
inline constexpr chat_style llama3_chat{.begin = "<|begin_of_text|>",
                                        .before_role = "<|start_header_id|>",
                                        .before_content = "<|end_header_id|>\n\n",
                                        .end = "<|eot_id|>"};

/// A sample for a model that predicts the next token: for each of `tokens` the one that follows, or −1 where
/// that is no part of an answer (`nn::sequence_cross_entropy::ignored`).
struct conversation {
  std::vector<std::int64_t> tokens, labels;  ///< as many

  bool answers() const;  ///< whether any label counts
};

/// Reads a line of instruction data: an object with the texts `prompt` and `completion`, or with `messages`,
/// a list of objects with the texts `role` and `content`. Answers are the completion, or the messages of the
/// role `assistant`, each with the style's `end`. Other members are ignored. A prompt and a completion follow
/// each other as they are. Each piece of text is encoded by itself. At most `most` tokens are kept. Throws
/// data_error for anything else. Thread safety: as the encoder's.
conversation read_conversation(std::string_view line, encoder& by, chat_style const& how, std::size_t most);

}  // namespace edl::tokens

#ifdef EDL_HEADER_ONLY
#include "edl/compute/tokens/conversation.ipp"
#endif
