// SPDX-License-Identifier: Apache-2.0
// Sums side by side: 2 and then 4 processes, each a member of every contestant, which take turns sample by
// sample, so that what else the machine does falls on all of them alike.
// `bench-allreduce [rounds [largest MB]]`.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "contestant.hpp"

namespace {

using bench::contestant;

struct load {
  char const* name;
  std::size_t bytes;
  int repeats;  // sums in a row, of which a sample is the mean
};
constexpr load loads[]{{"4 KB", 4 << 10, 200},
                       {"64 KB", 64 << 10, 60},
                       {"1 MB", 1 << 20, 15},
                       {"16 MB", 16 << 20, 3},
                       {"100 MB", 100'000'000, 1}};

// Where the members' processes wait for each other, outside of what is measured.
struct place {
  pthread_barrier_t barrier;
};

struct figures {
  double p10 = 0, p50 = 0, p90 = 0;
  explicit figures(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    auto const at = [&](double q) { return v[std::min(v.size() - 1, std::size_t(q * double(v.size())))]; };
    p10 = at(0.1), p50 = at(0.5), p90 = at(0.9);
  }
};

float drawn(std::size_t i, int rank) { return float((i * 7 + std::size_t(rank) * 13) % 1000) - 500; }

void check(contestant const& c, bench::ready const& sum, std::span<float> values, int rank, int size) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = drawn(i, rank);
  sum();
  if (!c.sums) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    float right = 0;
    for (int r = 0; r < size; ++r) right += drawn(i, r);
    if (values[i] == right) continue;
    std::fprintf(stderr, "%s %s over %s: number %zu is %g instead of %g\n", c.family.c_str(), c.name.c_str(),
                 c.over.c_str(), i, double(values[i]), double(right));
    std::_Exit(1);
  }
}

void print(std::vector<contestant> const& all,
           std::map<std::pair<std::size_t, std::size_t>, std::vector<double>>& samples, int size,
           std::size_t largest) {
  for (std::size_t l = 0; l < std::size(loads); ++l) {
    if (loads[l].bytes > largest) continue;
    std::size_t best = all.size();
    std::vector<figures> f;
    for (std::size_t i = 0; i < all.size(); ++i) {
      f.emplace_back(samples[{l, i}]);
      if (all[i].family == "Gloo" && (best == all.size() || f[i].p50 < f[best].p50)) best = i;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      bool const gloo = all[i].family == "Gloo";
      if (gloo && i != best && !std::getenv("BENCH_ALL")) continue;
      std::string const who = gloo ? "Gloo, " + all[i].name : all[i].name;
      std::printf("| %d | %s | %s | %s | %.1f (%.1f to %.1f) | %.2f | ", size, loads[l].name,
                  all[i].over.c_str(), who.c_str(), f[i].p50, f[i].p10, f[i].p90,
                  double(loads[l].bytes) / f[i].p50 / 1e3);
      if (!gloo) std::printf("%.2f ×", f[best].p50 / f[i].p50);
      std::printf(" |\n");
    }
  }
  std::fflush(stdout);
}

void work(std::vector<contestant> const& all, place& here, int rank, int size, int rounds,
          std::size_t largest) {
  using clock = std::chrono::steady_clock;
  std::vector<bench::member> members;
  for (auto const& c : all) members.push_back(c.join(rank));
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> samples;
  std::vector<float> memory(loads[std::size(loads) - 1].bytes / sizeof(float));
  for (int round = -1; round < rounds; ++round)
    for (std::size_t l = 0; l < std::size(loads); ++l)
      for (std::size_t turn = 0; turn < all.size(); ++turn) {
        if (loads[l].bytes > largest) continue;
        std::size_t const i = (turn + std::size_t(round + 1)) % all.size();
        auto const values = std::span(memory).first(loads[l].bytes / sizeof(float));
        auto const sum = members[i](values);
        ::pthread_barrier_wait(&here.barrier);
        // The first round only checks, and warms up.
        if (round < 0) {
          check(all[i], sum, values, rank, size);
          continue;
        }
        std::fill(values.begin(), values.end(), 0.0f);
        sum();
        ::pthread_barrier_wait(&here.barrier);
        auto const begin = clock::now();
        for (int k = 0; k < loads[l].repeats; ++k) sum();
        samples[{l, i}].push_back(std::chrono::duration<double, std::micro>(clock::now() - begin).count() /
                                  loads[l].repeats);
        ::pthread_barrier_wait(&here.barrier);
      }
  if (rank == 0) print(all, samples, size, largest);
  ::pthread_barrier_wait(&here.barrier);
}

bool measure(int size, int rounds, std::size_t largest) {
  std::vector<contestant> all = bench::bare_sockets(size);
  for (auto& c : bench::ours(size)) all.push_back(std::move(c));
  for (auto& c : bench::gloo(size)) all.push_back(std::move(c));
  void* const shared =
      ::mmap(nullptr, sizeof(place), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  auto& here = *new (shared) place;
  pthread_barrierattr_t attributes;
  ::pthread_barrierattr_init(&attributes);
  ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_barrier_init(&here.barrier, &attributes, unsigned(size));
  std::fflush(stdout);
  std::vector<pid_t> members;
  for (int rank = 0; rank < size; ++rank) {
    pid_t const id = ::fork();
    if (id < 0) std::exit(1);
    if (id == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        work(all, here, rank, size, rounds, largest);
        std::_Exit(0);
      } catch (std::exception const& e) {
        std::fprintf(stderr, "member %d: %s\n", rank, e.what());
      }
      std::_Exit(1);
    }
    members.push_back(id);
  }
  bool well = true;
  for (std::size_t ended = 0; ended < members.size(); ++ended) {
    int status = 0;
    ::wait(&status);
    if (status == 0 || !well) continue;
    well = false;
    for (pid_t const id : members) ::kill(id, SIGKILL);
  }
  ::munmap(shared, sizeof(place));
  return well;
}

}  // namespace

int main(int argc, char** argv) {
  int const rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 11;
  std::size_t const largest = argc > 2 ? std::size_t(std::atof(argv[2]) * 1e6) + (1 << 20) : ~std::size_t(0);
  std::printf(
      "| members | bytes | over | who | µs (p10 to p90) | GB/s | to Gloo's best "
      "|\n|---|---|---|---|---|---|---|\n");
  for (int const size : {2, 4})
    if (!measure(size, rounds, largest)) return 1;
}
