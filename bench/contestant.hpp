// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// A process that is asked by lines and answers by lines.
class contestant {
 public:
  contestant(std::string name, std::vector<std::string> const& command) : name(std::move(name)) {
    int to[2], from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) throw std::runtime_error("no pipe");
    id_ = ::fork();
    if (id_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(to[0], 0), ::dup2(from[1], 1);
      for (int end : {to[0], to[1], from[0], from[1]}) ::close(end);
      std::vector<char*> arguments;
      for (auto const& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      ::execvp(arguments[0], arguments.data());
      std::perror(arguments[0]);
      ::_exit(127);
    }
    ::close(to[0]), ::close(from[1]);
    to_ = ::fdopen(to[1], "w");
    from_ = ::fdopen(from[0], "r");
  }
  contestant(contestant const&) = delete;
  ~contestant() {
    std::fclose(to_), std::fclose(from_);
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

  std::string line() {
    std::string text;
    for (int letter; (letter = std::fgetc(from_)) != EOF && letter != '\n';) text += char(letter);
    return text;
  }
  std::string ask(std::string const& what) {
    std::fprintf(to_, "%s\n", what.c_str());
    std::fflush(to_);
    return line();
  }
  void measure(int steps) {
    std::istringstream answer(ask("steps " + std::to_string(steps)));
    for (double t; answer >> t;) times.push_back(t);
  }
  double quantile(double q) {
    std::sort(times.begin(), times.end());
    return times.empty() ? 0 : times[std::min(times.size() - 1, std::size_t(q * double(times.size())))];
  }

  std::string name;
  std::vector<double> times;

 private:
  pid_t id_;
  std::FILE *to_, *from_;
};

}  // namespace bench
