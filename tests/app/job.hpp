// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/core/random.hpp"
#include "eventually.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

/// Jobs of real processes, for tests.
namespace job {

using namespace std::chrono_literals;

using ::scratch, ::slurp, ::count, ::eventually;

inline constexpr auto& has = ::contains;

/// Whether a log's account says this of an epoch: on a line of its own, or of several that are alike.
inline bool accounts(std::string const& log, int epoch, std::string const& what) {
  if (has(log, "Epoch " + std::to_string(epoch) + ": " + what)) return true;
  std::string const begin = "Epochs ";
  for (auto at = log.find(begin); at != std::string::npos; at = log.find(begin, at + 1)) {
    int first = 0, last = -1, length = 0;
    std::sscanf(log.c_str() + at, "Epochs %d to %d: each %n", &first, &last, &length);
    if (first <= epoch && epoch <= last && length > 0 &&
        log.compare(at + std::size_t(length), what.size(), what) == 0)
      return true;
  }
  return false;
}

/// Records of three classes, one cloud of points each: "x", 8 floats, and "label". `spoil` may change them.
inline void write_shard(std::string const& path, std::uint64_t records, std::uint64_t seed,
                        std::function<void(std::uint64_t record, edl::example&)> const& spoil = {}) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  edl::data::recordio_writer out(path, {.max_chunk_bytes = 4096});
  edl::random_stream const random(seed, 0);
  edl::example e;
  std::string bytes;
  for (std::uint64_t i = 0, drawn = 0; i < records; ++i) {
    auto const label = std::int64_t(random.below(3, drawn++));
    std::array<float, 8> x{};
    for (std::size_t k = 0; k < x.size(); ++k)
      x[k] = float(random.below(2000, drawn++)) / 1000 - 1 + (k % 3 == std::size_t(label) ? 0.8f : 0.0f);
    {
      edl::example_builder b(e);
      b.floats("x", x);
      b.integer("label", label);
    }
    if (spoil) spoil(i, e);
    edl::encode(e, bytes);
    out.write(bytes);
  }
  out.close();
}

/// 2,048 records to train on, in 4 files, and 512 to evaluate on: made once, read by all tests.
struct data_set {
  static constexpr int records = 2048, shards = 4, validation_records = 512;
  scratch dir;
  std::string training = dir / "train", validation = dir / "test";

  data_set() {
    for (int i = 0; i < shards; ++i)
      write_shard(training + "/part-" + std::to_string(i), records / shards, std::uint64_t(i + 1));
    write_shard(validation + "/part-0", validation_records, 100);
  }
};

inline data_set const& data() {
  static data_set const set;
  return set;
}

using environment = std::vector<std::pair<std::string, std::string>>;

struct process {
  pid_t pid;
  std::string role;  ///< EDL_ROLE; empty for the user's process
  int id;
};

struct options {
  environment env;
  std::string program = EDL_TINY;
  int terminal = -1;                  ///< of the command, which types there; negative: it writes to a file
  rlim_t file_bytes = RLIM_INFINITY;  ///< no process of the job may write a larger file, as on a full disk
  std::string log;                    ///< its output is appended there; empty: to a file of its own
  bool own_group = false;             ///< `kill(-pid)` signals all of the job, and nobody else
};

/// One run of a command, with all processes that come of it. They carry a mark in their environment, by which
/// they are found, and end with this object.
class run {
 public:
  explicit run(std::vector<std::string> arguments, options o = {}) {
    static int number = 0;
    mark_ = "EDL_TEST_RUN=" + std::to_string(::getpid()) + "-" + std::to_string(++number);
    arguments.insert(arguments.begin(), o.program);
    static scratch const cache;  // nothing is left in, or taken from, the user's
    std::vector<std::string> variables{mark_, "XDG_CACHE_HOME=" + cache / "cache",
                                       "TINY_GATE=" + dir_ / "gate"};
    for (auto const& [name, value] : o.env) variables.push_back(name + "=" + value);  // the first counts
    for (char** e = ::environ; *e; ++e) variables.emplace_back(*e);
    auto const pointers = [](std::vector<std::string>& of) {
      std::vector<char*> out;
      for (std::string& s : of) out.push_back(s.data());
      out.push_back(nullptr);
      return out;
    };
    auto const argv = pointers(arguments), env = pointers(variables);
    if (!o.log.empty()) log_path_ = o.log;
    std::string const path = log_path();
    pid_t const parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
      // The test program may itself be killed: nothing of it stays behind.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(127);
      int const log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644),
                nothing = ::open("/dev/null", O_RDONLY);
      ::dup2(nothing, 0), ::dup2(log, 1), ::dup2(log, 2);
      ::signal(SIGINT, SIG_DFL);  // a shell starts what is in the background with it ignored
      if (o.own_group) ::setpgid(0, 0);
      if (o.terminal >= 0) {
        ::setsid();
        ::ioctl(o.terminal, TIOCSCTTY, 0);
        for (int fd : {0, 1, 2}) ::dup2(o.terminal, fd);
      }
      if (o.file_bytes != RLIM_INFINITY) {
        rlimit const limit{o.file_bytes, o.file_bytes};
        ::setrlimit(RLIMIT_FSIZE, &limit);
      }
      rlimit const none{0, 0};
      ::setrlimit(RLIMIT_CORE, &none);
      ::execve(argv[0], argv.data(), env.data());
      ::_exit(127);
    }
  }
  run(run const&) = delete;
  ~run() {
    // Once more for what was being started while the others were killed.
    eventually([&] {
      for (process const& p : processes()) ::kill(p.pid, SIGKILL);
      return processes().empty();
    });
    if (!status_) ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  std::string log_path() const { return log_path_; }
  std::string log() const { return slurp(log_path()); }

  /// From here on no record is delayed any more. A test that needs a job that still runs delays it for longer
  /// than the test can take. It ends the delay when it has done what it has to do.
  void open_gate() const { std::ofstream(dir_ / "gate").put('\n'); }

  /// Waits for a line of the log, or for a number of them. False when it does not come, or the command ends
  /// first.
  bool says(std::string const& text, std::size_t times = 1) {
    bool const seen = eventually([&] { return count(log(), text) >= times || ended(); });
    return seen && count(log(), text) >= times;
  }

  /// Waits until SIGTERM no longer ends the command by itself.
  bool takes_signals_as_events() const {
    return eventually([&] {
      std::ifstream in("/proc/" + std::to_string(pid_) + "/status");
      for (std::string one; std::getline(in, one);)
        if (one.starts_with("SigBlk:"))
          return (std::stoull(one.substr(7), nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
      return false;
    });
  }

  bool ended() {
    int status;
    if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_.has_value();
  }

  /// The exit code, 128 + the signal that ended it, or -1 when it does not end in time.
  int wait(std::chrono::milliseconds deadline = 60s) {
    if (!eventually([&] { return ended(); }, deadline)) return -1;
    return WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_);
  }

  /// Everything that runs of this job now.
  std::vector<process> processes() const {
    std::vector<process> found;
    std::error_code gone;
    for (auto const& entry : std::filesystem::directory_iterator("/proc", gone)) {
      std::string const name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      process p{pid_t(std::stol(name)), "", 0};
      std::ifstream in("/proc/" + name + "/environ");
      bool ours = false;
      for (std::string line; std::getline(in, line, '\0');) {
        if (line == mark_) ours = true;
        if (line.starts_with("EDL_ROLE=")) p.role = line.substr(9);
        // Other tests' processes are here, too, some of them with ids that are none.
        for (std::string_view const id : {"WORKER_ID=", "PS_ID="})
          if (line.starts_with(id)) std::from_chars(line.data() + id.size(), line.data() + line.size(), p.id);
      }
      if (ours) found.push_back(p);
    }
    return found;
  }

  /// The process of a role, or 0.
  pid_t find(std::string const& role, int id = 0) const {
    for (process const& p : processes())
      if (p.role == role && p.id == id) return p.pid;
    return 0;
  }

  /// Nothing of the job runs any more, at once or within a time.
  bool nothing_left(std::chrono::milliseconds within = 0ms) const {
    return eventually([&] { return processes().empty(); }, within);
  }

 private:
  scratch dir_;
  std::string log_path_ = dir_ / "log", mark_;
  pid_t pid_ = 0;
  std::optional<int> status_;
};

/// A command line that trains on the common records, with `more` in the place of what is usual.
inline std::vector<std::string> train(std::vector<std::string> const& more = {}) {
  std::vector<std::string> line{"train"};
  for (std::string const& usual : {"--training_data=" + data().training, std::string("--minibatch_size=32"),
                                   std::string("--num_minibatches_per_task=4"), std::string("--seed=7"),
                                   std::string("--log_level=DEBUG")}) {
    auto const same = [&](std::string const& m) {
      return m.starts_with(usual.substr(0, usual.find('=') + 1));
    };
    if (std::none_of(more.begin(), more.end(), same)) line.push_back(usual);
  }
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

}  // namespace job
