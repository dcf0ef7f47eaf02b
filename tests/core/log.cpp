// SPDX-License-Identifier: Apache-2.0
#include "edl/core/log.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace log_test {

namespace {

std::string written(edl::severity least, auto log) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  log(edl::logger(least, "worker-3", ends[1]));
  ::close(ends[1]);
  std::string text(4096, '\0');
  auto const n = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  text.resize(std::size_t(n));
  return text;
}

}  // namespace

TEST_CASE("a line has time, level, place, process and text") {
  std::string const line = written(edl::severity::info, [](edl::logger const& l) { l.info("Loss = 1"); });
  CHECK(line.find("] [INFO] [log.cpp:") != std::string::npos);
  CHECK(line.find("[worker-3] Loss = 1\n") != std::string::npos);
  CHECK(line.front() == '[');
}

TEST_CASE("the place in the source is left out where nobody wants it") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  edl::logger const l(edl::severity::info, "worker-3", {.fd = ends[1], .detailed = false});
  CHECK_FALSE(l.detailed());
  CHECK(edl::logger().detailed());
  l.info("Loss = 1");
  ::close(ends[1]);
  std::string text(4096, '\0');
  text.resize(std::size_t(::read(ends[0], text.data(), text.size())));
  ::close(ends[0]);
  CHECK(text.find("] [INFO] [worker-3] Loss = 1\n") == 24);
}

TEST_CASE("a sink takes the place of the descriptor, and a plain line has nothing before its text") {
  struct kept : edl::line_sink {
    std::string all;
    void write(std::string_view lines) override { all += lines; }
  };
  auto const here = std::make_shared<kept>();
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  edl::logger const l(edl::severity::info, "", {.fd = -1, .also = ends[1], .to = here});
  l.plain("checkpoint: c/version-8\nforged");
  edl::logger(edl::severity::warning, "", {.fd = -1, .to = here}).plain("dropped");
  ::close(ends[1]);
  std::string text(4096, '\0');
  text.resize(std::size_t(::read(ends[0], text.data(), text.size())));
  ::close(ends[0]);
  CHECK(here->all == "checkpoint: c/version-8 forged\n");
  CHECK(text == here->all);
}

TEST_CASE("what is less severe than asked for is dropped") {
  CHECK(written(edl::severity::warning, [](edl::logger const& l) { l.info("no"), l.debug("no"); }).empty());
}

TEST_CASE("a text cannot forge another line") {
  std::string const line =
      written(edl::severity::info, [](edl::logger const& l) { l.error("bad\n[2026] [INFO] forged"); });
  CHECK(line.find('\n') == line.size() - 1);
}

TEST_CASE("a second place that is full is told once in the first") {
  int const full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  edl::logger const log(edl::severity::info, "",
                        edl::log_target{.fd = ends[1], .also = full, .detailed = false});
  auto const copy = log;
  log.info("one"), copy.info("two");
  ::close(full), ::close(ends[1]);
  std::string said(4096, '\0');
  said.resize(std::size_t(::read(ends[0], said.data(), said.size())));
  ::close(ends[0]);
  CAPTURE(said);
  auto const at = said.find("[WARNING] lines are missing in the log file: No space left on device\n");
  REQUIRE(at != said.npos);
  CHECK(said.find("lines are missing", at + 20) == said.npos);
  CHECK(said.find("[INFO] two\n") != said.npos);
}

}  // namespace log_test
