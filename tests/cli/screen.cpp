// SPDX-License-Identifier: Apache-2.0
#include "edl/cli/screen.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <optional>
#include <thread>

#include "cli/pseudo_terminal.hpp"

namespace screen_test {

using edl::cli::screen, edl::cli::status_line;

namespace {

using lines = std::vector<std::string>;

/// A variable of the environment, for as long as this lives.
class variable {
 public:
  variable(char const* name, char const* value) : name_(name) {
    if (char const* const was = std::getenv(name)) was_ = was;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  variable(variable const&) = delete;
  ~variable() { was_ ? ::setenv(name_, was_->c_str(), 1) : ::unsetenv(name_); }

 private:
  char const* name_;
  std::optional<std::string> was_;
};

status_line const status{{"37 %", 0}, {"1873 records/s", 2}, {"0:57 left", 1}};

}  // namespace

TEST_CASE("lines stay above the last one, which is drawn anew behind each and taken away at the end") {
  terminal::pseudo_terminal at(80);
  {
    screen s({.fd = at.there(), .colours = false});
    s.write("first\n");
    s.show(status);
    s.write("second\nthird\n");
    s.show({{"38 %", 0}});
  }
  at.hang_up();
  CHECK(at.screen().lines() == lines{"first", "second", "third", ""});
  CHECK(at.screen().erased() ==
        lines{"37 %  1873 records/s  0:57 left", "37 %  1873 records/s  0:57 left", "38 %"});
  CHECK(at.screen().not_understood().empty());
}

TEST_CASE("the last line stays in one row, however wide the terminal is just now") {
  terminal::pseudo_terminal at(32);
  {
    screen s({.fd = at.there(), .colours = false});
    s.show(status);
    at.resize(31);
    s.write("a line that is longer than a row of this terminal\n");
    at.resize(1);
    s.show(status);
  }
  at.hang_up();
  CHECK(at.screen().lines() == lines{"a line that is longer than a row of this terminal", ""});
  CHECK(at.screen().erased() == lines{"37 %  1873 records/s  0:57 left", "37 %  0:57 left",
                                      // Nobody knows how wide it is.
                                      "37 %  1873 records/s  0:57 left"});
  CHECK_FALSE(at.screen().erased_a_rest());
}

TEST_CASE("levels of log lines have colours, unless NO_COLOR says no") {
  variable const kind("TERM", "xterm");
  for (char const* no : {"", "1"}) {
    variable const colour("NO_COLOR", no);
    terminal::pseudo_terminal at(80);
    auto s = screen::open(at.there());
    REQUIRE(s);
    lines const said{"[2026-11-20 13:00:00,123] [WARNING] [master] careful",
                     "[2026-11-20 13:00:00,123] [INFO] [master] see [2] [ERROR] ", "no log line"};
    for (std::string const& line : said) s->write(line + "\n");
    s.reset();
    at.hang_up();
    lines expected = said;
    expected.emplace_back();
    CHECK(at.screen().lines() == expected);
    CHECK(at.screen().colours() == (*no ? 0 : 2));
  }
}

TEST_CASE("what is no terminal, or cannot redraw a line, is no screen") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK_FALSE(screen::open(ends[1]));
  ::close(ends[0]), ::close(ends[1]);
  terminal::pseudo_terminal at(80);
  for (char const* kind : {"dumb", "", static_cast<char const*>(nullptr)}) {
    variable const is("TERM", kind);
    CHECK_FALSE(screen::open(at.there()));
  }
}

TEST_CASE("lines of several threads are whole") {
  terminal::pseudo_terminal at(80);
  {
    screen s({.fd = at.there(), .colours = false});
    std::vector<std::thread> threads;
    for (char const c : {'a', 'b', 'c'})
      threads.emplace_back([&s, c] {
        for (int i = 0; i < 200; ++i) {
          s.write(std::string(60, c) + "\n");
          s.show({{std::string(30, c), 0}});
        }
      });
    for (std::thread& t : threads) t.join();
  }
  at.hang_up();
  std::size_t whole = 0;
  for (std::string const& line : at.screen().lines())
    whole += line.size() == 60 && line.find_first_not_of(line.front()) == line.npos;
  CHECK(whole == 600);
  CHECK(at.screen().lines().size() == 601);
  terminal::emulator const seen = at.screen();
  for (std::string const& line : seen.erased()) CHECK(line.size() == 30);
}

}  // namespace screen_test
