// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace edl {

/// What stands between a text and the ids of a model. Thread safety: const, safe.
class token_codec {
 public:
  token_codec(token_codec const&) = delete;
  virtual ~token_codec() = default;

  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;

  /// The bytes of one id, which may be a part of a character. Throws error for an id that there is not.
  virtual std::string bytes_of(std::int32_t id) const = 0;

  /// Ids that end a text.
  virtual bool ends(std::int32_t id) const = 0;

  /// What a text begins with if nothing is given.
  virtual std::vector<std::int32_t> beginning() const = 0;

 protected:
  token_codec() = default;
};

/// Each byte is its own id: for models of characters, of a vocabulary of 256.
std::shared_ptr<token_codec const> byte_codec();

/// Cuts off what is not complete: the beginning of a UTF-8 character at the end of a text. Bytes that are no
/// UTF-8 count as complete.
std::string_view complete_utf8(std::string_view text);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/prediction/token_codec.ipp"
#endif
