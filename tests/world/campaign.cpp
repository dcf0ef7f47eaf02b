// SPDX-License-Identifier: Apache-2.0
#include "world/campaign.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <utility>

#include "world/cluster.hpp"
#include "world/cluster_history.hpp"
#include "world/history.hpp"
#include "world/libc/raw.hpp"
#include "world/timeline.hpp"

namespace simulation {
namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t most_failures = 30;  // then the next ones tell nothing more
constexpr std::size_t report_size = std::size_t{1} << 20;
constexpr auto pause = 2ms;        // between two looks at who runs
constexpr int most_idle = 30'000;  // looks in a row at a history that computes nothing: its threads are stuck

std::string to_json(history const& h) {
  return nlohmann::json{
      {"hash", h.hash},          {"events", h.events},
      {"steps", h.steps},        {"met", h.met},
      {"job", to_string(h.job)}, {"faults", to_string(h.faults)},
      {"findings", h.findings},  {"timeline", h.timeline},
      {"paths", h.paths},        {"virtual", std::chrono::duration<double>(h.virtual_time).count()}}
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

nlohmann::json const& definition() {
  static auto const of = world::read_definition(EDL_MANIFESTS "/trainingjob-crd.yaml");
  return of;
}

/// Each history has one processor: on which the parent does not stay.
void take_processor(int number) {
  int const count = int(std::max(1l, ::sysconf(_SC_NPROCESSORS_CONF)));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(std::size_t(number % count), &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

/// A history that runs in a process of its own, which tells its outcome in memory that both have.
class child {
 public:
  child(std::uint64_t seed, std::optional<std::vector<fault>> const& faults, campaign_options const& o)
      : seed_(seed), cluster_(o.cluster), given_(faults), limit_(o.limit) {
    void* const memory =
        ::mmap(nullptr, report_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for a history's report");
    report_ = static_cast<char*>(memory);
    if (o.cluster) definition();
    std::fflush(stdout);
    pid_t const parent = ::getpid();
    static int started = 0;
    int const number = started++;
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    take_processor(number);
    if (::getppid() != parent) ::_exit(127);
    std::string const text = to_json(o.cluster ? run_cluster_history(seed, definition(), o.trace)
                                               : run_history(seed, faults, o.trace));
    std::memcpy(report_, text.data(), std::min(text.size(), report_size - 1));
    ::_exit(0);
  }
  child(child const&) = delete;
  ~child() { ::munmap(report_, report_size); }

  // On a busy machine a history takes long, and computes as much as ever.
  bool ended() {
    if (ended_) return true;
    auto const now = used();
    idle_ = now == used_ ? idle_ + 1 : 0;
    used_ = now;
    if ((used_ > limit_ || idle_ > most_idle) && !std::exchange(late_, true)) ::kill(pid_, SIGKILL);
    return ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  }

  outcome result() const {
    outcome r{.seed = seed_, .cluster = cluster_, .seconds = std::chrono::duration<double>(used_).count()};
    auto const j = nlohmann::json::parse(report_, report_ + std::strlen(report_), nullptr, false);
    if (!j.is_object()) {
      plan const p = draw_plan(seed_);
      r.job = to_string(p);
      r.faults = given_ ? *given_ : draw_faults(p);
      r.findings.push_back(late_ ? fmt::format("it has not ended within {} s of a processor", limit_.count())
                           : WIFSIGNALED(status_)
                               ? fmt::format("the simulation was ended by signal {}", WTERMSIG(status_))
                               : fmt::format("the simulation ended with code {}", WEXITSTATUS(status_)));
      return r;
    }
    r.hash = j.at("hash"), r.events = j.at("events"), r.steps = j.at("steps"), r.met = j.at("met");
    r.job = j.at("job"), r.timeline = j.at("timeline");
    r.faults = parse_faults(std::string(j.at("faults")));
    r.findings = j.at("findings").get<std::vector<std::string>>();
    r.paths = j.at("paths").get<std::map<std::string, std::uint64_t>>();
    r.virtual_seconds = j.at("virtual");
    return r;
  }

 private:
  /// Time of a processor, of all of its threads.
  std::chrono::nanoseconds used() const {
    timespec t{};
    world::raw::call(SYS_clock_gettime, long(int(~unsigned(pid_) << 3 | 2)),
                     long(&t));  // its clock (clock_getcpuclockid)
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  }

  std::uint64_t seed_;
  bool cluster_;
  std::optional<std::vector<fault>> given_;
  std::chrono::seconds limit_;
  char* report_;
  pid_t pid_;
  std::chrono::nanoseconds used_{};
  int status_ = 0, idle_ = 0;
  bool late_ = false, ended_ = false;
};

/// What a campaign has seen.
struct totals {
  std::uint64_t histories = 0, faults = 0, met = 0, events = 0, steps = 0;
  double virtual_seconds = 0, seconds = 0;
  std::map<std::string, std::uint64_t> paths, kinds;
  std::vector<outcome> failed;

  void add(outcome const& r) {
    ++histories;
    faults += r.cluster ? r.met : r.faults.size(), met += r.met, events += r.events, steps += r.steps;
    virtual_seconds += r.virtual_seconds, seconds += r.seconds;
    for (auto const& [path, n] : r.paths) paths[path] += n;
    for (fault const& f : r.faults) ++kinds[name_of(f.what)];
    if (!r.findings.empty()) failed.push_back(r);
  }

  void print(clock::duration since) const {
    double const real = std::chrono::duration<double>(since).count();
    fmt::print(
        "{:.0f} s: {} histories, {} faults, {} events, {} steps, {:.0f} s virtual ({:.0f} times real), "
        "{:.0f} s of a processor, {} failed\n",
        real, histories, faults, events, steps, virtual_seconds, virtual_seconds / real, seconds,
        failed.size());
    std::fflush(stdout);
  }
};

}  // namespace

outcome run_child(std::uint64_t seed, std::optional<std::vector<fault>> const& faults,
                  campaign_options const& o) {
  child one(seed, faults, o);
  while (!one.ended()) std::this_thread::sleep_for(pause);
  return one.result();
}

outcome shrink(outcome failing, campaign_options const& o) {
  int tries = 0;
  constexpr int most_tries = 80;
  campaign_options quiet = o;
  quiet.trace.clear();
  auto const fails = [&](std::vector<fault> const& with) {
    if (++tries > most_tries) return false;
    outcome r = run_child(failing.seed, with, quiet);
    if (r.findings.empty()) return false;
    failing = std::move(r);
    failing.faults = with;
    return true;
  };
  // Delta debugging: parts are left out, as large ones as go.
  for (std::size_t part = failing.faults.size(); part > 0 && tries <= most_tries;) {
    bool fewer = false;
    for (std::size_t at = 0; at < failing.faults.size();) {
      std::vector<fault> rest = failing.faults;
      rest.erase(rest.begin() + std::ptrdiff_t(at),
                 rest.begin() + std::ptrdiff_t(std::min(at + part, rest.size())));
      if (fails(rest))
        fewer = true;
      else
        at += part;
    }
    if (!fewer || part > failing.faults.size()) part = std::min(part / 2, failing.faults.size());
  }
  return failing;
}

void print(outcome const& one) {
  fmt::print("\nseed {}: {}\n", one.seed, one.cluster ? "a cluster" : one.job);
  for (std::string const& f : one.findings) fmt::print("  FAILED: {}\n", f);
  std::string const how =
      one.cluster ? "--cluster --print" : fmt::format("--faults='{}'", to_string(one.faults));
  fmt::print("again: edl-world --seed={} {}\n{}\n", one.seed, how, one.timeline);
  std::fflush(stdout);
}

int replay(std::string const& list, campaign_options const& o) {
  std::ifstream in(list);
  if (!in) throw std::runtime_error(list + " cannot be read");
  int failed = 0, all = 0;
  for (std::string line; std::getline(in, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_of("0123456789") == line.npos) continue;
    std::size_t end = 0;
    std::uint64_t const seed = std::stoull(line, &end);
    bool const given = line.find_first_not_of(' ', end) != line.npos;
    auto const faults = given ? std::optional(parse_faults(line.substr(end))) : std::nullopt;
    outcome const r = run_child(seed, faults, o);
    ++all;
    if (r.findings.empty()) continue;
    ++failed;
    print(r);
  }
  fmt::print("{} histories, {} failed\n", all, failed);
  return failed;
}

int run_campaign(campaign_options const& o) {
  fmt::print("seeds from {} on\n", o.first);
  auto const began = clock::now();
  totals all;
  std::list<child> running;
  auto told = began;
  std::uint64_t next = o.first;
  auto const more = [&] {
    if (all.failed.size() >= (o.stop_at_first ? 1 : most_failures)) return false;
    if (o.processor.count() > 0) return all.seconds < double(o.processor.count());
    return o.time.count() > 0 ? clock::now() - began < o.time : next == o.first;
  };
  while (more() || !running.empty()) {
    while (more() && running.size() < std::size_t(o.jobs)) running.emplace_back(next++, o.faults, o);
    for (auto it = running.begin(); it != running.end();) {
      if (!it->ended()) {
        ++it;
        continue;
      }
      outcome const r = it->result();
      it = running.erase(it);
      all.add(r);
      if (r.findings.empty()) continue;
      fmt::print("seed {} fails: {}\n", r.seed, r.findings.front());
      std::fflush(stdout);
    }
    if (clock::now() - told > 10s) {
      told = clock::now();
      all.print(told - began);
    }
    std::this_thread::sleep_for(pause);
  }
  all.print(clock::now() - began);
  constexpr std::size_t most_shown = 3;
  for (std::size_t i = 0; i < std::min(all.failed.size(), most_shown); ++i)
    print(o.shrink ? shrink(all.failed[i], o) : all.failed[i]);
  if (o.time.count() == 0 && o.processor.count() == 0) return int(all.failed.size());
  fmt::print("faults:");
  for (auto const& [kind, n] : all.kinds) fmt::print(" {} {}", kind, n);
  fmt::print("\nrare paths:\n");
  for (std::string const& path : timeline::all_paths())
    fmt::print("  {:>6}  {}\n", all.paths.contains(path) ? all.paths.at(path) : 0, path);
  if (!all.failed.empty()) {
    fmt::print("failing seeds:");
    for (outcome const& r : all.failed) fmt::print(" {}", r.seed);
    fmt::print("\n");
  }
  return int(all.failed.size());
}

}  // namespace simulation
