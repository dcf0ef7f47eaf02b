// SPDX-License-Identifier: Apache-2.0
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>

#include "world/kernel/disk.hpp"
#include "world/kernel/network.hpp"
#include "world/kernel/process.hpp"
#include "world/libc/raw.hpp"

namespace world {

void await_history();
void own_standard_streams();

namespace {

std::int64_t real_clock(clockid_t which) {
  timespec t{};
  raw::call(SYS_clock_gettime, which, long(&t));
  return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

process& existing(pid number) {
  process* const p = process_of(number);
  if (!p) fail("there is no process " + std::to_string(number));
  return *p;
}

}  // namespace

history_result run(history_options const& options, std::function<void()> driver) {
  if (os) raw::die("an OS process runs one history");
  std::int64_t const began = real_clock(CLOCK_MONOTONIC), used = real_clock(CLOCK_PROCESS_CPUTIME_ID);
  own_standard_streams();
  os = new kernel(options);
  process& p = make_process(
      {.name = "world", .main = [driver = std::move(driver)](int, char**) { return driver(), 0; }}, nullptr);
  os->serve(p);
  run_main(p);
  os->begin();
  await_history();
  return {.hash = os->hash,
          .events = os->events,
          .switches = os->switches,
          .virtual_time = duration(os->now),
          .real_time = duration(real_clock(CLOCK_MONOTONIC) - began),
          .cpu_time = duration(real_clock(CLOCK_PROCESS_CPUTIME_ID) - used),
          .failure = os->failure};
}

void fail(std::string why) { os->finish(why.empty() ? "it has failed" : std::move(why)); }

duration now() { return duration(os->now); }
std::uint64_t draw(std::uint64_t below) { return os->driver.below(below); }
double draw_fraction() { return os->driver.fraction(); }
void at(duration when, std::function<void()> what) { os->at(when.count(), std::move(what)); }
void on_line(std::function<void(line const&)> hears) { os->line_listeners.push_back(std::move(hears)); }
void on_end(std::function<void(pid, ending const&)> hears) { os->end_listeners.push_back(std::move(hears)); }
void on_call(std::function<void(call const&)> hears) { os->call_listeners.push_back(std::move(hears)); }

// ---- Processes ----

pid start(program what) {
  process& p = make_process(what, process_of(1));
  run_main(p);
  return p.number;
}

bool alive(pid of) { return !existing(of).end; }
std::optional<ending> ended(pid of) { return existing(of).end; }

bool wait_for(pid of, duration timeout) {
  process& p = existing(of);
  std::int64_t const until = os->now + timeout.count();
  while (!p.end && os->now < until) os->block(p.waiters, until, "the end of a process");
  return p.end.has_value();
}

void wait(pid of) {
  process& p = existing(of);
  while (!p.end) os->block(p.waiters, never, "the end of a process");
}

std::vector<pid> processes() {
  std::vector<pid> all;
  for (auto const& p : all_processes())
    if (p->number != 1 && !p->end) all.push_back(p->number);
  return all;
}

std::string name_of(pid of) { return existing(of).name; }
std::string host_of(pid of) { return existing(of).at->name; }
void kill(pid of, int signal) { send_signal(existing(of), signal, 1); }

void fail_forks(pid of, int count) { existing(of).failing_forks = count; }

void set_wall_clock(std::string const& name, duration ahead) {
  host_called(name).clock_offset = ahead.count();
}

void set_slack(pid of, duration slack) { existing(of).slack = slack.count(); }

void power_off(std::string const& name) {
  host& h = host_called(name);
  os->note("power off", name);
  host_lost(h);  // first: what its processes close is not told
  for (auto const& p : all_processes())
    if (p->at == &h && !p->end) end_process(*p, 0, SIGKILL);
  lose_unforced(name);
}

void boot(std::string const& name) {
  os->note("boot", name);
  host_back(host_called(name));
}

}  // namespace world
