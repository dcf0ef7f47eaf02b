// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "edl/compute/tokens/unicode.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::tokens {
namespace detail {

/// The first byte from `at` on that is not ASCII.
inline std::size_t end_of_ascii(std::string_view text, std::size_t at) {
  for (std::uint64_t eight = 0; at + 8 <= text.size(); at += 8) {
    std::memcpy(&eight, text.data() + at, 8);
    if ((eight & 0x8080808080808080u) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace detail

EDL_INLINE character character_at(std::string_view text, std::size_t at) {
  auto const byte = [&](std::size_t i) -> unsigned { return static_cast<unsigned char>(text[at + i]); };
  unsigned const lead = byte(0);
  if (lead < 0x80) return {lead, 1, true, false};
  std::size_t const size = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (size == 0) return {};
  // Table 3-7 of the standard: after some first bytes the second has a smaller range.
  unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  char32_t code = lead & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i, low = 0x80, high = 0xbf) {
    if (at + i == text.size()) return {0xfffd, i, false, true};
    if (byte(i) < low || byte(i) > high) return {0xfffd, i, false, false};
    code = code << 6 | (byte(i) & 0x3f);
  }
  return {code, size, true, false};
}

EDL_INLINE std::string_view valid_utf8(std::string_view text, std::string& space) {
  bool copied = false;
  std::size_t kept = 0;  // text[0, kept) is in `space`, once anything is
  for (std::size_t at = 0; (at = detail::end_of_ascii(text, at)) < text.size();) {
    character const c = character_at(text, at);
    if (!c.well_formed) {
      if (!copied) space.clear();
      copied = true;
      space.append(text.substr(kept, at - kept)).append("\xef\xbf\xbd");
      kept = at + c.bytes;
    }
    at += c.bytes;
  }
  if (!copied) return text;
  return space.append(text.substr(kept));
}

EDL_INLINE std::size_t incomplete_bytes(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, text.size()); ++n)
    if (character const c = character_at(text, text.size() - n); c.cut) return n;
  return 0;
}

EDL_INLINE std::string_view nfc(std::string_view text, std::string& space) {
  bool copied = false;
  std::size_t kept = 0;
  for (std::size_t at = 0; (at = detail::end_of_ascii(text, at)) < text.size();) {
    // A mark may change the ASCII character before it. Nothing that follows ASCII changes what is before
    // that.
    std::size_t const begin = at - (at > kept ? 1 : 0);
    bool composed = true;  // all characters below U+0300 are
    for (; at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80; ++at)
      composed &= static_cast<unsigned char>(text[at]) < 0xcc;
    if (composed) continue;
    utf8proc_uint8_t* normal = nullptr;
    auto const size = utf8proc_map(reinterpret_cast<utf8proc_uint8_t const*>(text.data()) + begin,
                                   utf8proc_ssize_t(at - begin), &normal,
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
    if (size < 0) throw error(std::string("a text cannot be normalized: ") + utf8proc_errmsg(size));
    std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> const owner(normal, std::free);
    std::string_view const now(reinterpret_cast<char const*>(normal), std::size_t(size));
    if (now == text.substr(begin, at - begin)) continue;
    if (!copied) space.clear();
    copied = true;
    space.append(text.substr(kept, begin - kept)).append(now);
    kept = at;
  }
  if (!copied) return text;
  return space.append(text.substr(kept));
}

EDL_INLINE bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  if (code == 0x85) return true;
  auto const category = utf8proc_category(utf8proc_int32_t(code));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

EDL_INLINE std::array<char32_t, 256> byte_alphabet() {
  std::array<char32_t, 256> all{};
  char32_t next = 0x100;
  for (char32_t b = 0; b < 256; ++b)
    all[b] = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae ? b : next++;
  return all;
}

EDL_INLINE void append_utf8(char32_t code, std::string& to) {
  utf8proc_uint8_t bytes[4];
  auto const n = utf8proc_encode_char(utf8proc_int32_t(code), bytes);
  to.append(reinterpret_cast<char const*>(bytes), std::size_t(n));
}

}  // namespace edl::tokens
