// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstring>

#include "edl/base/platform/platform.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/log.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::platform {

EDL_INLINE std::string describe(ending const& e) {
  if (!e.words.empty()) return e.words;
  if (e.memory)
    return "was killed because memory ran out (fewer processes or a smaller --minibatch_size need less)";
  if (e.signal) return fmt::format("was killed by signal {} ({})", e.signal, ::strsignal(e.signal));
  return fmt::format("exited with code {}", e.code);
}

EDL_INLINE std::string last_words(std::string_view text) {
  std::string_view line = trimmed(text);
  line.remove_prefix(line.find_last_of('\n') + 1);
  auto const at = line.find("] [");  // between a log's time and severity
  auto const rest = line.starts_with('[') && at != line.npos ? line.substr(at + 2) : std::string_view();
  auto const is = [rest](severity s) {
    return rest.starts_with(fmt::format("[{}] ", names(s)[std::size_t(s)]));
  };
  if (is(severity::debug) || is(severity::info) || is(severity::warning)) return {};
  if (is(severity::error) || is(severity::critical))
    for (line = rest; line.starts_with('[') && line.find("] ") != line.npos;)
      line.remove_prefix(line.find("] ") + 2);
  return printable(trimmed(line), 300);
}

EDL_INLINE std::vector<std::uint32_t> findings::ids(role of) const {
  std::vector<std::uint32_t> all;
  for (process_id const who : running)
    if (who.role == of) all.push_back(who.id);
  return all;
}

}  // namespace edl::platform
