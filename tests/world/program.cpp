// SPDX-License-Identifier: Apache-2.0
#include "world/program.hpp"

#include <malloc.h>
#include <openssl/ssl.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "world/libc/raw.hpp"

namespace world {

void own_random_numbers();

void prepare(int, char** argv) {
  int const persona = ::personality(0xffffffff);
  if (!(persona & ADDR_NO_RANDOMIZE) || ::getenv("PATH")) {
    ::personality(unsigned(persona | ADDR_NO_RANDOMIZE));
    char zone[] = "TZ=UTC0", arenas[] = "MALLOC_ARENA_MAX=1";
    char* const environment[] = {zone, arenas, nullptr};
    ::execve("/proc/self/exe", argv, environment);
    raw::die("cannot begin anew without random addresses");
  }
  cpu_set_t all, one;  // of its OS threads one runs at a time
  ::sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (int i = 0, skip = int(::getpid()) % CPU_COUNT(&all); i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &all) && skip-- == 0) CPU_SET(i, &one);
  ::sched_setaffinity(0, sizeof one, &one);
  ::mallopt(M_ARENA_MAX, 1);
  own_random_numbers();
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

namespace {

void put(std::string& to, auto const& value) {
  to.append(reinterpret_cast<char const*>(&value), sizeof value);
}

bool take(std::string_view& from, auto& value) {
  if (from.size() < sizeof value) return false;
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return true;
}

std::string encode(history_result const& r, std::string const& note) {
  std::string text;
  for (std::uint64_t n : {r.hash, r.events, r.switches, std::uint64_t(r.virtual_time.count()),
                          std::uint64_t(r.real_time.count()), std::uint64_t(r.cpu_time.count()),
                          std::uint64_t(r.failure.size())})
    put(text, n);
  return text + r.failure + note;
}

bool decode(std::string_view text, forked_result& into) {
  std::uint64_t n[7];
  for (std::uint64_t& one : n)
    if (!take(text, one)) return false;
  if (n[6] > text.size()) return false;
  into.hash = n[0], into.events = n[1], into.switches = n[2];
  into.virtual_time = duration(n[3]), into.real_time = duration(n[4]), into.cpu_time = duration(n[5]);
  into.failure = text.substr(0, n[6]);
  into.note = text.substr(n[6]);
  return true;
}

}  // namespace

forked_result run_forked(history_options const& options, std::function<void(std::string&)> driver,
                         unsigned real_seconds) {
  std::fflush(nullptr);  // what the caller has printed is printed once
  int ends[2];
  if (::pipe(ends) != 0) raw::die("no pipe");
  pid_t const child = ::fork();
  if (child < 0) raw::die("no process for a history");
  if (child == 0) {
    ::close(ends[0]);
    ::alarm(real_seconds);
    std::string note;
    std::string const text = encode(run(options, [&] { driver(note); }), note);
    for (std::size_t done = 0; done < text.size();)
      done += std::size_t(
          std::max(0l, raw::call(SYS_write, ends[1], long(text.data() + done), long(text.size() - done))));
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t n; (n = ::read(ends[0], part, sizeof part)) > 0;) text.append(part, std::size_t(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  forked_result result;
  if (decode(text, result)) return result;
  result.failure = !WIFSIGNALED(status)
                       ? "the simulation ended with code " + std::to_string(WEXITSTATUS(status))
                   : WTERMSIG(status) == SIGALRM
                       ? "a thread does not give the processor away: " + std::to_string(real_seconds) +
                             " s of real time are over"
                       : std::string("the simulation crashed: ") + ::strsignal(WTERMSIG(status));
  return result;
}

void print(std::string_view text) { raw::call(SYS_write, 1, long(text.data()), long(text.size())); }

void print(history_result const& of) {
  double const real = double(of.real_time.count()) / 1e9,
               virtual_time = double(of.virtual_time.count()) / 1e9;
  char text[512];
  int const n =
      std::snprintf(text, sizeof text,
                    "history %016llx: %.3f s of virtual time in %.3f s of a processor (%.0f times as fast), "
                    "%llu events and %llu switches "
                    "(%.0f in a second)\n",
                    static_cast<unsigned long long>(of.hash), virtual_time, real, virtual_time / real,
                    static_cast<unsigned long long>(of.events), static_cast<unsigned long long>(of.switches),
                    double(of.events + of.switches) / real);
  print({text, std::size_t(n)});
  if (!of.failure.empty()) print("failed: " + of.failure + "\n");
}

}  // namespace world
