// SPDX-License-Identifier: Apache-2.0
// How much of its speed a job keeps while its processes are killed, stopped and cut off: the same job without
// faults and with them, in pairs. Each process has a place in a network of namespaces; whoever started the
// processes replaces those that end, and those that the master has given up, as a cluster does.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/job.hpp"
#include "chaos/handle.hpp"
#include "chaos/network.hpp"
#include "chaos/watcher.hpp"
#include "edl/cli/program.hpp"
#include "edl/core/error.hpp"
#include "edl/core/random.hpp"

namespace {

using namespace std::chrono_literals;
using edl::cli::flag;
using clock_type = std::chrono::steady_clock;

enum class kind { kill, stop, cut, half };
constexpr std::array names{"kill", "stop", "cut", "half of the workers killed"};

/// Something that is to happen, in seconds of the job's time.
struct fault {
  double at = 0, length = 0;  ///< a stop or a cut lasts `length`
  kind what = kind::kill;
  std::uint64_t choice = 0;  ///< of a victim, as a random number
};

struct bench_options {
  std::string program, data;
  int workers = 2, servers = 2;
  int pause = 0;  ///< milliseconds of a minibatch of the small model; 0: MNIST is trained
  bool allreduce = false;
};

/// Records of the small model, 8 numbers and a label each, in a file.
void write_points(std::string const& path, std::size_t records) {
  edl::random_stream const random(1, 0);
  std::ofstream out(path, std::ios::binary);
  for (std::size_t i = 0; i < records; ++i) {
    float x[8];
    for (std::size_t k = 0; k < 8; ++k) x[k] = random.uniform(8 * i + k);
    std::int32_t const label = x[0] > x[1] ? 0 : x[2] > x[3] ? 1 : 2;
    out.write(reinterpret_cast<char const*>(x), sizeof x);
    out.write(reinterpret_cast<char const*>(&label), sizeof label);
  }
  if (!out.flush()) throw std::runtime_error(path + " cannot be written");
}

/// A job whose roles are started by hand, each in a place of its own.
class site {
 public:
  site(bench_options const& o, int epochs) : o_(o), network_(places(o)), mends_(std::size_t(places(o)), -1) {
    command_ = {"train",
                "--training_data=" + o.data,
                fmt::format("--num_epochs={}", epochs),
                fmt::format("--num_workers={}", o.workers),
                "--checkpoint_dir=" + dir_ / "checkpoints",
                "--checkpoint_steps=200",
                "--keep_checkpoint_max=3",
                "--num_threads=1",
                fmt::format("--minibatch_size={}", o.pause > 0 ? 16 : 64),
                "--job_name=goodput",
                "--log_file_path=" + log_path()};
    if (o.allreduce)
      command_.push_back("--distribution_strategy=AllreduceStrategy");
    else
      command_.insert(command_.end(),
                      {fmt::format("--num_ps_pods={}", o.servers),
                       fmt::format("--ps_replicas={}", std::min(2, o.servers)), "--use_async"});
    int place = 0;
    for (int i = 0; i < o.workers; ++i)
      seats_.push_back({.role = "worker", .id = next_worker_++, .place = place++});
    seats_.push_back({.role = "master", .place = place++});
    for (int i = 0; !o.allreduce && i < o.servers; ++i)
      seats_.push_back({.role = "ps", .id = i, .place = place++});
    spare_ = place;
    began_ = clock_type::now();
  }

  double now() const { return std::chrono::duration<double>(clock_type::now() - began_).count(); }

  /// Runs the job to its end, and returns the seconds until all was trained. Throws std::runtime_error if it
  /// fails, or is not done within `limit` seconds.
  double run(std::vector<fault> const& faults, double limit) {
    std::size_t next = 0;
    for (;;) {
      for (; next < faults.size() && faults[next].at <= now(); ++next) strike(faults[next]);
      for (std::size_t i = 0; i < mends_.size(); ++i)
        if (mends_[i] >= 0 && now() >= mends_[i]) network_.mend(int(i)), mends_[i] = -1;
      for (seat& s : seats_) tend(s);
      if (done_) return trained_;
      if (now() > limit)
        throw std::runtime_error(fmt::format("the job does not end within {:.0f} s: {}", limit, log()));
      seen_.read();
      for (; taken_ < seen_.lines().size(); ++taken_) replace_lost(seen_.lines()[taken_]);
      std::this_thread::sleep_for(10ms);
    }
  }

  /// The sums of the last checkpoint's account: records lost, records repeated.
  std::pair<std::uint64_t, std::uint64_t> audit() const {
    job::run a({"audit", dir_ / "checkpoints"}, {.program = o_.program});
    int const code = a.wait();
    std::string const text = a.log();
    std::istringstream in(text);
    std::uint64_t lost = 0, repeated = 0;
    bool any = false;
    for (std::string one; std::getline(in, one);) {
      std::istringstream fields(one);
      std::uint64_t first, records, applied, skipped, left, l, r;
      if (!(fields >> first)) continue;
      std::uint64_t last = first;
      if (fields.peek() == '-') fields.ignore() >> last;  // epochs that are alike share a row
      if (!(fields >> records >> applied >> skipped >> left >> l >> r)) continue;
      any = true, lost += l, repeated += r;
      if (left || applied != records) throw std::runtime_error("the account is not complete: " + one);
    }
    if (code != 0 || !any) throw std::runtime_error("audit: " + text);
    return {lost, repeated};
  }

  std::map<std::string, int> const& struck() const { return struck_; }

  /// Seconds of all workers' time together in which one was stopped or cut off: nobody else has its
  /// processor.
  double absent() const { return absent_; }
  std::string log() const { return job::slurp(log_path()); }

 private:
  struct seat {
    std::string role;
    int id = 0, place = 0;
    std::unique_ptr<job::run> process;
    double wakes = -1;      ///< when its stop ends; below 0: it is not stopped
    bool silenced = false;  ///< it was stopped or cut off since its start

    std::string name() const { return role == "master" ? role : fmt::format("{}-{}", role, id); }
  };

  static constexpr int killed = 128 + SIGKILL, given_up = 75;

  std::string log_path() const { return dir_ / "log"; }
  static int places(bench_options const& o) { return o.workers + 1 + (o.allreduce ? 0 : o.servers + 1); }

  void start(seat& s) {
    job::environment env{{"EDL_ROLE", s.role},
                         {"EDL_JOB_NAME", "goodput"},
                         {"EDL_JOB_TOKEN", "0123456789abcdef0123456789abcdef"},
                         {"MY_POD_IP", network_.address(s.place)}};
    if (o_.pause > 0) env.emplace_back("TINY_DELAY_US", std::to_string(o_.pause * 1000 / 16));
    if (s.role == "master")
      env.insert(env.end(), {{"EDL_PORT", "7000"}, {"EDL_JOURNAL", dir_ / "journal"}});
    else
      env.emplace_back("MASTER_ADDR", network_.address(o_.workers) + ":7000");
    if (s.role != "master") env.emplace_back(s.role == "ps" ? "PS_ID" : "WORKER_ID", std::to_string(s.id));
    std::vector<std::string> line = network_.inside(s.place);
    std::string const first = line.front();
    line.erase(line.begin());
    line.push_back(o_.program);
    line.insert(line.end(), command_.begin(), command_.end());
    s.process =
        std::make_unique<job::run>(line, job::options{.env = env, .program = first, .log = dir_ / s.name()});
  }

  // Ends a stop whose time has come, and starts what does not run: in the spare place if its own is cut off,
  // but for a worker, whose processor nobody else has.
  void tend(seat& s) {
    if (s.wakes >= 0 && now() >= s.wakes) {
      if (s.process) chaos::handle(s.process->pid()).send(SIGCONT);
      s.wakes = -1;
    }
    if (s.process && !s.process->ended()) return;
    int const code = s.process ? s.process->wait(0ms) : killed;
    if (code == 0 && s.role == "master") done_ = true;
    // All is trained. The master stays for a while for those who may not have heard of it.
    if (code == 0) {
      if (trained_ < 0) trained_ = now();
      return;
    }
    // Whom the master has given up ends by itself.
    if (code != killed && code != given_up)
      throw std::runtime_error(fmt::format("{} ended with {}: {}", s.name(), code, s.process->log()));
    if (mends_[std::size_t(s.place)] >= 0) {
      if (s.role != "ps" || mends_[std::size_t(spare_)] >= 0) return;
      std::swap(s.place, spare_);
    }
    if (s.process && s.role == "worker") s.id = next_worker_++;
    s.wakes = -1;
    s.silenced = false;
    start(s);
  }

  // Whom the master gives up is ended, to be replaced; whoever was killed has been replaced already.
  void replace_lost(chaos::line const& l) {
    int worker = -1, server = -1, length = 0;
    if (l.process != "master") return;
    if (std::sscanf(l.text.c_str(), "worker %d is lost%n", &worker, &length) != 1 || length == 0) worker = -1;
    length = 0;
    if (std::sscanf(l.text.c_str(), "server %d is lost%n", &server, &length) != 1 || length == 0) server = -1;
    for (seat& s : seats_)
      if ((s.role == "worker" && s.id == worker) || (s.role == "ps" && s.id == server))
        if (s.process && s.silenced) chaos::handle(s.process->pid()).send(SIGKILL);
  }

  void strike(fault const& f) {
    if (f.what == kind::half) {
      for (int i = 0; i < (o_.workers + 1) / 2; ++i) hit(seats_[std::size_t(i)], f);
      return;
    }
    hit(seats_[f.choice % seats_.size()], f);
  }

  void hit(seat& s, fault const& f) {
    if (!s.process || s.process->ended() || s.wakes >= 0 || mends_[std::size_t(s.place)] >= 0) return;
    ++struck_[fmt::format("{} {}", s.role, names[std::size_t(f.what)])];
    fmt::print("  {:7.1f} s: {} {}{}\n", now(), s.name(), names[std::size_t(f.what)],
               f.length > 0 ? fmt::format(" for {:.1f} s", f.length) : "");
    std::fflush(stdout);
    s.silenced = f.what == kind::stop || f.what == kind::cut;
    if (s.role == "worker") absent_ += f.length;
    if (f.what == kind::cut) {
      network_.cut(s.place, f.choice / 7 % 2 == 0);
      mends_[std::size_t(s.place)] = now() + f.length;
    } else if (f.what == kind::stop) {
      chaos::handle(s.process->pid()).send(SIGSTOP);
      s.wakes = now() + f.length;
    } else {
      chaos::handle(s.process->pid()).send(SIGKILL);
    }
  }

  bench_options o_;
  job::scratch dir_;
  chaos::network network_;
  std::vector<double> mends_;  ///< by place: when its cut ends; below 0: it is not cut off
  int spare_ = 0;              ///< a place without a process
  std::vector<std::string> command_;
  std::vector<seat> seats_;
  int next_worker_ = 0;
  bool done_ = false;
  double trained_ = -1;  ///< when the first process learned that all is trained
  double absent_ = 0;
  chaos::watcher seen_{log_path()};
  std::size_t taken_ = 0;
  std::map<std::string, int> struck_;
  clock_type::time_point began_;
};

/// As many faults as asked for, at times without memory, ascending; always the same for the same seed.
std::vector<fault> draw(std::uint64_t seed, int count, double seconds, std::string const& kinds) {
  edl::random_stream const random(seed, 0);
  std::uint64_t drawn = 0;
  std::vector<fault> all;
  std::vector<kind> from;
  if (kinds == "half") from = {kind::half};
  if (kinds != "half") from.insert(from.end(), 6, kind::kill);
  if (kinds == "all") from.insert(from.end(), {kind::stop, kind::stop, kind::cut, kind::cut});
  for (int i = 0; i < count; ++i) {
    fault f{.at = random.uniform(drawn++) * seconds,
            .what = from[random.below(from.size(), drawn++)],
            .choice = random.below(1u << 30, drawn++)};
    if (f.what == kind::stop || f.what == kind::cut) f.length = 5 + 25 * random.uniform(drawn++);
    if (f.what == kind::half) f.at = seconds * (i + 1) / (count + 1);
    all.push_back(f);
  }
  std::ranges::sort(all, {}, &fault::at);
  return all;
}

std::vector<flag> flags() {
  using enum flag::value_type;
  return {
      {.name = "minutes",
       .fallback = "30",
       .help = "that the job takes without faults, about",
       .type = whole,
       .least = 1},
      {.name = "faults", .fallback = "62", .help = "within these minutes", .type = whole, .least = 1},
      {.name = "kinds",
       .fallback = "all",
       .help =
           "all: kills, stops and cuts of 5 to 30 s, of any process; kill: kills alone; half: half of the "
           "workers killed at once, each fifth minute, instead of --faults",
       .choices = {"all", "kill", "half"}},
      {.name = "strategy", .fallback = "both", .help = "of the job", .choices = {"both", "ps", "allreduce"}},
      {.name = "workers",
       .fallback = "2",
       .help = "no more than processors, so that each that is lost is missed; with --pause any number",
       .type = whole,
       .least = 1},
      {.name = "pause",
       .fallback = "0",
       .help =
           "milliseconds of a minibatch, which a worker of a small model waits: so the processors and other "
           "work on them do not count. 0: MNIST is trained",
       .type = whole,
       .least = 0},
      {.name = "pairs",
       .fallback = "1",
       .help = "of runs without faults and with them",
       .type = whole,
       .least = 1},
      {.name = "seed", .fallback = "1", .help = "of the faults of the first pair", .type = whole, .least = 0},
      {.name = "data", .help = "MNIST's files to train on; without: $EDL_DATA_DIR/mnist/train"}};
}

int run(edl::cli::command_line const& l) {
  auto const number = [&](char const* name) { return edl::cli::parse_number<int>(l.text(name)); };
  char const* const root = std::getenv("EDL_DATA_DIR");
  bench_options o{.program = EDL_MNIST, .data = l.text("data"), .workers = number("workers")};
  o.pause = number("pause");
  job::scratch drawn;
  if (o.pause > 0) {
    o.program = EDL_TINY;
    o.data = drawn / "data.points";
    write_points(o.data, 16'384);
  }
  if (o.data.empty() && root) o.data = std::string(root) + "/mnist/train";
  if (o.data.empty()) throw edl::usage_error("there is no data: give --data, MNIST's files to train on");
  std::string const strategy = l.text("strategy"), kinds = l.text("kinds");
  double const seconds = 60.0 * number("minutes");
  int const faults = kinds == "half" ? std::max(1, number("minutes") / 5) : number("faults");
  for (bool const allreduce : {false, true}) {
    if (strategy != "both" && (strategy == "allreduce") != allreduce) continue;
    o.allreduce = allreduce;
    // How long an epoch takes: what two runs differ by.
    double const two = site(o, 2).run({}, 600), six = site(o, 6).run({}, 600);
    double const epoch = std::max(0.1, (six - two) / 4);
    int const epochs = std::max(1, int(seconds / epoch));
    char const* const title = allreduce ? "all-reduce" : "servers, asynchronous";
    fmt::print("{}: {} workers, an epoch takes {:.2f} s, a run has {}\n", title, o.workers, epoch, epochs);
    for (int pair = 0; pair < number("pairs"); ++pair) {
      auto const seed = std::uint64_t(number("seed") + pair);
      double const plain = site(o, epochs).run({}, 4 * seconds + 60);
      site disturbed(o, epochs);
      double const with = disturbed.run(draw(seed, faults, plain, kinds), 8 * seconds + 60);
      auto const [lost, repeated] = disturbed.audit();
      int struck = 0;
      std::string of;
      for (auto const& [what, times] : disturbed.struck())
        struck += times, of += fmt::format("{}{} × {}", of.empty() ? "" : ", ", times, what);
      fmt::print(
          "{}, seed {}: {:.1f} s without faults, {:.1f} s with {} ({}): {:.1f} % kept, {:.1f} % of what the "
          "workers that were there could do; lost {}, repeated {}\n",
          title, seed, plain, with, struck, of, 100 * plain / with,
          100 * plain / (with - disturbed.absent() / o.workers), lost, repeated);
      std::fflush(stdout);
      if (lost || repeated) return 1;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return edl::cli::run_program(
      {.command = "bench-goodput", .flags = flags()},
      "Kills, stops and cuts off the processes of a job, and says how much of its speed it keeps.",
      {argv + 1, argv + argc}, run);
}
