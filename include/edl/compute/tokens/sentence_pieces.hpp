// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "edl/compute/tokens/tokenizer_parts.hpp"

namespace edl::tokens {

/// Whether a file's content is a model of SentencePiece and no text.
bool is_sentence_pieces(std::string_view content);

/// Reads a `tokenizer.model` of SentencePiece (Kudo and Richardson, 2018; src/sentencepiece_model.proto) as
/// Llama 2 and Mistral have it: byte-pair encoding, whose texts are not normalized but for blanks.
/// Throws data_error, which names the file, for other models, and as `tokenizer::from_file`. A normal piece
/// may have 256 bytes.
tokenizer_parts read_sentence_pieces(std::string_view content, std::string const& name);

/// The text as its pieces are cut from it: blanks are U+2581, and one stands before it. The result lies in
/// `space`.
std::string_view with_marked_blanks(tokenizer_parts const& by, std::string_view text, std::string& space);

}  // namespace edl::tokens

#ifdef EDL_HEADER_ONLY
#include "edl/compute/tokens/sentence_pieces.ipp"
#endif
