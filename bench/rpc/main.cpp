// SPDX-License-Identifier: Apache-2.0
// Calls side by side: every contestant serves in one process and calls from another, and they take turns, so
// that what else the machine does falls on all of them alike. `bench-rpc [rounds [part of a load's name]]`.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>
#include <tuple>

#include "contestant.hpp"

namespace {

using bench::load;

struct child {
  pid_t id;
  int from;
};

enum class side { serving, calling };

// Each side has a core to itself where the machine has two. Otherwise the scheduler decides anew in every run
// whether a call wakes a process on the caller's core or on another, and that alone is a factor of ten.
void take_core(side of) {
  cpu_set_t allowed, own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  int wanted = of == side::serving ? 1 : 0;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed) && wanted-- == 0) CPU_SET(i, &own);
  ::sched_setaffinity(0, sizeof own, &own);
}

// Runs `work` in a process that ends with this one; what it writes to its descriptor is read from `from`.
template <class Work>
child start(side of, Work&& work) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(1);
  std::fflush(stdout);
  pid_t const id = ::fork();
  if (id < 0) std::exit(1);
  if (id == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    take_core(of);
    ::close(ends[0]);
    try {
      work(ends[1]);
    } catch (std::exception const& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    std::_Exit(0);
  }
  ::close(ends[1]);
  return {id, ends[0]};
}

void write_all(int to, void const* data, std::size_t size) {
  auto const* at = static_cast<char const*>(data);
  while (size > 0) {
    auto const n = ::write(to, at, size);
    if (n <= 0) return;
    at += n;
    size -= std::size_t(n);
  }
}

double quantile(std::vector<double>& v, double q) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, std::size_t(q * double(v.size())))];
}

}  // namespace

int main(int argc, char** argv) {
  int const rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  std::string_view const only = argc > 2 ? argv[2] : "";
  std::vector<bench::contestant> all = bench::bare_sockets();
  for (auto& c : bench::ours()) all.push_back(std::move(c));
#ifdef EDL_BENCH_GRPC
  for (auto& c : bench::grpc()) all.push_back(std::move(c));
#endif
  struct loaded {
    load kind;
    char const* name;
  };
  std::array<loaded, 6> const loads{{{load::ping, "ping, 64 bytes"},
                                     {load::in_flight_16, "pings, 16 in flight"},
                                     {load::push_4, "push 4 MiB"},
                                     {load::pull_4, "pull 4 MiB"},
                                     {load::push_100, "push 100 MB"},
                                     {load::pull_100, "pull 100 MB"}}};
  std::vector<child> servers;
  std::vector<std::string> where;
  for (auto const& c : all) {
    servers.push_back(start(side::serving, [&c](int to) {
      c.serve(
          [to](std::string const& address) { write_all(to, (address + "\n").data(), address.size() + 1); });
    }));
    std::string line;
    for (char letter = 0; ::read(servers.back().from, &letter, 1) == 1 && letter != '\n';) line += letter;
    where.push_back(line);
  }
  std::map<std::pair<load, std::size_t>, std::vector<double>> samples;
  std::map<std::pair<load, std::size_t>, std::vector<double>> processor;  // the caller's seconds for a call
  for (int round = 0; round < rounds; ++round)
    for (auto const& l : loads)
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (std::string_view(l.name).find(only) == std::string_view::npos) continue;
        child const c = start(side::calling, [&](int to) {
          auto const figures = all[i].measure(where[i], l.kind);
          write_all(to, figures.data(), figures.size() * sizeof(double));
        });
        auto& into = samples[{l.kind, i}];
        for (double figure = 0; ::read(c.from, &figure, sizeof figure) == sizeof figure;)
          into.push_back(figure);
        ::close(c.from);
        rusage used{};
        ::wait4(c.id, nullptr, 0, &used);
        auto const seconds = [](timeval const& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
        int const calls = bench::repeats(l.kind) + bench::repeats(l.kind) / 10 + 1;
        processor[{l.kind, i}].push_back((seconds(used.ru_utime) + seconds(used.ru_stime)) / calls);
      }
  for (auto const& s : servers) {
    ::kill(s.id, SIGKILL);
    ::waitpid(s.id, nullptr, 0);
  }
  std::printf("%-20s %-5s %-14s %12s %12s %14s %10s %18s\n", "load", "over", "who", "p50 us", "p99 us", "",
              "to bare", "core at 10 Gbit/s");
  for (auto const& l : loads)
    for (char const* transport : {"TCP", "Unix"}) {
      double bare = 0;
      for (std::size_t i = 0; i < all.size(); ++i) {
        auto& v = samples[{l.kind, i}];
        if (all[i].transport != transport || v.empty()) continue;
        double const p50 = quantile(v, 0.5), p99 = quantile(v, 0.99);
        if (all[i].name == "bare") bare = p50;
        std::printf("%-20s %-5s %-14s ", l.name, transport, all[i].name.c_str());
        if (l.kind == load::in_flight_16)
          std::printf("%12s %12s %8.0f /s  ", "", "", p50);
        else if (bench::bytes_of(l.kind))
          std::printf("%12.0f %12.0f %8.2f GB/s", p50, p99, double(bench::bytes_of(l.kind)) / p50 / 1e3);
        else
          std::printf("%12.1f %12.1f %14s", p50, p99, "");
        if (bare > 0)
          std::printf(bench::bytes_of(l.kind) ? " %8.0f %%" : " %8.2f x",
                      bench::bytes_of(l.kind) ? 100 * bare / p50 : p50 / bare);
        if (bench::bytes_of(l.kind) > 50'000'000)
          std::printf("%*.2f", bare > 0 ? 19 : 30,
                      quantile(processor[{l.kind, i}], 0.5) * 1.25e9 / double(bench::bytes_of(l.kind)));
        std::printf("\n");
      }
    }
}
