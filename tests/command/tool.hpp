// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "commands.hpp"
#include "common/command_line.hpp"
#include "compute/data/support.hpp"
#include "edl/core/error.hpp"

/// For the tests of the command line tool.
namespace tool_test {

/// What a shell makes of a command line: blanks separate, quotes join, a backslash continues a line.
/// `${NAME}` and `$NAME` become "NAME" in small letters.
inline edl::tool::words shell_words(std::string const& text) {
  edl::tool::words all;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (c == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
    } else if (quote == 0 && (c == ' ' || c == '\n')) {
      if (in_word) all.push_back(word);
      word.clear();
      in_word = false;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      in_word = true;
    } else if (c == quote) {
      quote = 0;
    } else if (c == '$' && i + 1 < text.size() && text[i + 1] == '{') {
      for (i += 2; i < text.size() && text[i] != '}'; ++i)
        word += char(std::tolower(static_cast<unsigned char>(text[i])));
      in_word = true;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) all.push_back(word);
  return all;
}

/// What a command says, and its exit code.
struct said {
  int code = 0;
  std::string out, err;
};

/// Runs a command in this process.
inline said run(edl::tool::words const& line) {
  support::scratch const dir;
  auto const into = [&](int fd, std::string const& file) {
    int const kept = ::dup(fd), to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(to, fd);
    ::close(to);
    return kept;
  };
  auto const back = [](int fd, int kept) {
    ::dup2(kept, fd);
    ::close(kept);
  };
  std::fflush(stdout);
  std::fflush(stderr);
  int const out = into(1, dir / "out"), err = into(2, dir / "err");
  said all;
  all.code = edl::tool::run(line);
  std::fflush(stdout);
  std::fflush(stderr);
  back(1, out);
  back(2, err);
  all.out = support::read(dir / "out");
  all.err = support::read(dir / "err");
  return all;
}

using ::refusal;

/// The folder `name` beside the data sets; empty where this machine has none, which the test then says.
inline std::filesystem::path shared(std::string const& name) {
  char const* const data = std::getenv("EDL_TEST_DATA");
  std::filesystem::path const path = data == nullptr ? "" : std::filesystem::path(data) / ".." / name;
  if (data != nullptr && std::filesystem::is_directory(path)) return path;
  MESSAGE("skipped: " << name << " is not here");
  return {};
}

/// The body of a recorded answer.
inline std::string recorded(std::filesystem::path const& file) {
  std::string const text = support::read(file.string());
  auto const answer = text.find("\n=====\n");
  auto const body = text.find("\n\n", answer);
  return body == text.npos ? "" : text.substr(body + 2);
}

}  // namespace tool_test
