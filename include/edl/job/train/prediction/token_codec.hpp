// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace edl {

/// What stands between texts and the ids of a model. Thread safety: distinct objects: safe. Shared objects:
/// unsafe.
class token_codec {
 public:
  /// The text of ids that come one at a time.
  class text {
   public:
    virtual ~text() = default;
    virtual std::string add(std::int32_t id) = 0;  ///< bytes, which may end amid a character
    virtual std::string finish() = 0;              ///< what has been held back
  };

  token_codec(token_codec const&) = delete;
  virtual ~token_codec() = default;

  virtual std::vector<std::int32_t> encode(std::string_view prompt) = 0;
  virtual std::unique_ptr<text> decode() const = 0;
  virtual bool ends(std::int32_t id) const = 0;  ///< whether the id ends a text
  virtual int vocabulary() const = 0;            ///< ids that it knows: from 0 up to this one

 protected:
  token_codec() = default;
};

/// Each byte is its own id: for models of characters, of a vocabulary of 256. Without a prompt a text begins
/// with a line break.
std::unique_ptr<token_codec> byte_codec();

/// The tokens of a `tokenizer.json` or `tokenizer.model` (`tokens::tokenizer`). Prompts get what its template
/// puts before them. A text ends with <|endoftext|>, <|end_of_text|>, <|eot_id|>, <|im_end|> or </s>, and
/// without a prompt it begins with what the template puts before an empty one, or with the first of these.
/// Throws data_error for a file that cannot be used.
std::unique_ptr<token_codec> file_codec(std::string const& path);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/token_codec.ipp"
#endif
