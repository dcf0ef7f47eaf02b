// SPDX-License-Identifier: Apache-2.0
#include "cluster/log_lines.hpp"

#include <vector>

#include "command/tool.hpp"

namespace log_lines_test {

using edl::tool::line_splitter, edl::tool::log_place;

TEST_CASE("pieces of any length become lines") {
  std::string const text = "one\ntwo\n\nlast";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    line_splitter lines;
    std::vector<std::string> all;
    auto const to = [&](std::string_view line) { all.emplace_back(line); };
    for (std::size_t at = 0; at < text.size(); at += size)
      lines.take(std::string_view(text).substr(at, size), to);
    lines.end(to);
    CHECK(all == std::vector<std::string>{"one", "two", "", "last"});
  }
  line_splitter lines;
  int cuts = 0;
  for (int i = 0; i < 3000; ++i) lines.take(std::string(1024, 'x'), [&](std::string_view) { ++cuts; });
  CHECK(cuts == 2);  // of lines without end no more than a part is kept
}

TEST_CASE("a log that is read again goes on after its last line") {
  log_place place;
  CHECK(place.since().empty());
  place.reread();
  CHECK(place.next("2026-11-20T10:39:00.100000000Z one").value() == "one");
  CHECK(place.next("2026-11-20T10:39:00.200000000Z two").value() == "two");
  CHECK(place.next("2026-11-20T10:39:00.2Z also two").value() == "also two");
  CHECK(place.next("2026-11-20T10:39:01.5Z").value().empty());
  CHECK(place.since() == "2026-11-20T10:39:01Z");

  // Whole seconds are all that can be asked for: some lines come again.
  place.reread();
  CHECK_FALSE(place.next("2026-11-20T10:39:01.1Z earlier"));
  CHECK_FALSE(place.next("2026-11-20T10:39:01.5Z"));
  CHECK(place.next("2026-11-20T10:39:01.5Z another of that time").value() == "another of that time");
  CHECK(place.next("2026-11-20T10:39:02Z on").value() == "on");
  place.reread();
  CHECK_FALSE(place.next("2026-11-20T10:39:01.5Z another of that time"));
  CHECK_FALSE(place.next("2026-11-20T10:39:02Z on"));

  // What bears no time is no line of ours to judge.
  CHECK(place.next("plain text").value() == "plain text");
}

}  // namespace log_lines_test
