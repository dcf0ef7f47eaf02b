// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "world/program.hpp"
#include "world/world.hpp"

/// Histories of tests, each in an OS process of its own. What is to be checked is written down there.
namespace harness {

using namespace std::chrono_literals;

struct outcome : world::forked_result {
  std::vector<std::string> said;
};

/// A driver's notes.
class notes {
 public:
  explicit notes(std::string& to) : to_(to) {}
  template <class... A>
  void operator()(fmt::format_string<A...> text, A&&... a) {
    to_ += fmt::format(text, std::forward<A>(a)...) + '\n';
  }

 private:
  std::string& to_;
};

template <class Driver>
outcome history(Driver driver, std::uint64_t seed = 1) {
  outcome o;
  static_cast<world::forked_result&>(o) =
      world::run_forked({.seed = seed}, [&](std::string& note) { driver(notes(note)); }, 30);
  std::string line;
  for (char c : o.note)
    if (c == '\n')
      o.said.push_back(std::move(line)), line.clear();
    else
      line += c;
  return o;
}

/// Lines, for doctest to show.
inline std::string text(std::vector<std::string> const& all) {
  std::string one;
  for (std::string const& l : all) one += l + '\n';
  return one;
}

/// Of a system call.
inline std::string result(long n) { return n < 0 ? ::strerrorname_np(errno) : std::to_string(n); }

using lines = std::vector<std::string>;

}  // namespace harness
