// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace edl {

/// Asserts what the code itself guarantees, in every build: no input, peer or file can break it, or it is no
/// invariant. When `holds` is false, writes "edl: broken invariant: SENTENCE (FILE:LINE)" to standard error
/// and aborts. Thread safety: safe.
constexpr void invariant(bool holds, char const* sentence,
                         std::source_location where = std::source_location::current()) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "edl: broken invariant: %s (%s:%u)\n", sentence, where.file_name(),
               unsigned(where.line()));
  std::abort();
}

}  // namespace edl
