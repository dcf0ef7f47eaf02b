// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "edl/core/error.hpp"

/// A target of the fuzzer: it parses `size` bytes that may be anything. It ends the process when the parser
/// breaks a promise. The fuzzer links one target per program; the replay of the seeds links all of them.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace fuzz {

/// Ends the process unless the parser has kept this promise.
inline void require(bool kept, char const* promise) {
  if (kept) return;
  std::fprintf(stderr, "fuzz: broken promise: %s\n", promise);
  std::abort();
}

inline std::string_view text(std::uint8_t const* data, std::size_t size) {
  return {reinterpret_cast<char const*>(data), size};
}

/// Who has written the input.
enum class author {
  anybody,  ///< an error may show nothing that moves a terminal
  user,     ///< it is the user's own command line or file, which an error may quote as it is
};

/// Whether `parse` takes its input. All that it may throw is an edl::error of one line. Any other exception
/// ends the process.
template <class Parse>
bool takes(Parse&& parse, author by = author::anybody) {
  try {
    parse();
    return true;
  } catch (edl::error const& refused) {
    std::string_view const said = refused.what();
    require(!said.empty() && said.size() < (by == author::anybody ? 4096u : 1u << 20),
            "an error has a text, of a bounded length");
    for (char const c : by == author::anybody ? said : "")
      require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f,
              "an error is one line without control characters");
    return false;
  }
}

/// A file in memory, for parsers that open paths.
class memory_file {
 public:
  memory_file() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "the system has files in memory");
  }
  ~memory_file() { ::close(descriptor_); }
  memory_file(memory_file const&) = delete;
  memory_file& operator=(memory_file const&) = delete;

  /// Gives it this content, and returns its path.
  std::string with(std::string_view content) const {
    require(::ftruncate(descriptor_, 0) == 0, "a file in memory can be emptied");
    require(::pwrite(descriptor_, content.data(), content.size(), 0) == ssize_t(content.size()),
            "a file in memory takes all bytes");
    return directory() + "/" + name();
  }
  static std::string directory() { return "/proc/self/fd"; }
  std::string name() const { return std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// The little-endian number at `at`; 0 where the bytes end before.
inline std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < 4 && at + i < bytes.size(); ++i)
    n |= std::uint32_t(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return n;
}

/// Writes one, where there is room for it: for checksums, which no fuzzer guesses.
inline void put_number(std::string& bytes, std::size_t at, std::uint32_t n) {
  for (std::size_t i = 0; i < 4 && at + i < bytes.size(); ++i) bytes[at + i] = char(n >> (8 * i));
}

}  // namespace fuzz
