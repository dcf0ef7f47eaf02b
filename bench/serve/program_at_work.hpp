// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// A process whose lines are read, of both of its outputs; it ends with this.
class program_at_work {
 public:
  explicit program_at_work(std::vector<std::string> const& command) {
    int from[2];
    if (::pipe2(from, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    id_ = ::fork();
    if (id_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(from[1], 1), ::dup2(from[1], 2);
      std::vector<char*> words;
      for (auto const& word : command) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      ::execvp(words[0], words.data());
      ::_exit(127);
    }
    ::close(from[1]);
    from_ = ::fdopen(from[0], "r");
  }
  program_at_work(program_at_work const&) = delete;
  ~program_at_work() {
    std::fclose(from_);
    if (id_ == 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

  /// Reads on to its end. Returns the seconds of a processor that it has taken, with what it has waited for.
  double wait() {
    while (std::fgetc(from_) != EOF) {
    }
    ::rusage used{};
    ::wait4(id_, nullptr, 0, &used);
    id_ = 0;
    auto const seconds = [](::timeval const& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
  }

  /// The next line that has this in it; empty: it has ended before.
  std::string until(std::string const& piece) const {
    std::string text;
    for (int letter; (letter = std::fgetc(from_)) != EOF;) {
      if (letter != '\n')
        text += char(letter);
      else if (text.find(piece) != text.npos)
        return text;
      else
        text.clear();
    }
    return {};
  }

  pid_t id() const { return id_; }

 private:
  pid_t id_;
  std::FILE* from_;
};

/// What a line ends with; 0: no number.
inline std::uint16_t port_of(std::string const& line) {
  return std::uint16_t(std::atoi(line.c_str() + line.find_last_not_of("0123456789") + 1));
}

/// Of a program that must listen.
inline std::uint16_t port_of(program_at_work const& p) {
  if (auto const port = port_of(p.until(" at http"))) return port;
  throw std::runtime_error("the server has ended before it listened");
}

struct scratch_folder {
  scratch_folder() {
    if (!::mkdtemp(path.data())) throw std::runtime_error("no folder for a moment");
  }
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path = (std::filesystem::temp_directory_path() / "bench-serve-XXXXXX").string();
};

/// How busy the machine is.
inline std::string load_average() {
  double minutes[3] = {};
  (void)::getloadavg(minutes, 3);
  char text[80];
  std::snprintf(text, sizeof text, "load: %.2f in the last minute, %.2f in the last five", minutes[0],
                minutes[1]);
  return text;
}

}  // namespace bench
