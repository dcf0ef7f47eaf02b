// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

namespace edl {

/// Asserts, in every build, a condition that the code itself guarantees; no input, file or peer may be able
/// to break it. If `holds` is false, writes "edl: broken invariant: SENTENCE (FILE:LINE)" to standard error
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
