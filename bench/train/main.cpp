// SPDX-License-Identifier: Apache-2.0
// Training steps beside those of peers: every contestant is a process, and they take turns, so that what else
// the machine does falls on all of them alike.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "../contestant.hpp"
#include "measured.hpp"

namespace {

using clock_type = std::chrono::steady_clock;

double milliseconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
}

typedef float lanes_8 __attribute__((vector_size(32)));
typedef float lanes_16 __attribute__((vector_size(64)));

/// Multiplications and additions that one core computes in a nanosecond, by independent chains of vectors
/// that stay in registers.
template <class vector>
[[gnu::always_inline]] inline double peak_of_one_core() {
  constexpr int chains = 12, rounds = 4'000'000;
  vector sum[chains]{}, a = vector{} + 0.999f, b = vector{} + 1e-3f;
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    auto const begin = clock_type::now();
    for (int r = 0; r < rounds; ++r) {
      for (vector& s : sum) s = s * a + b;
      asm volatile("" : "+x"(a), "+x"(b));
    }
    best = std::max(best, 2.0 * rounds * chains * (sizeof(vector) / 4) / (milliseconds_since(begin) * 1e6));
  }
  float volatile keep = 0;
  for (vector const& s : sum) keep = keep + s[0];
  return best;
}

__attribute__((target("avx512f"))) double peak_512() { return peak_of_one_core<lanes_16>(); }
double peak() {
  return __builtin_cpu_supports("avx512f") ? std::max(peak_512(), peak_of_one_core<lanes_8>())
                                           : peak_of_one_core<lanes_8>();
}

int serve(std::string const& name, int batch, bench::contest const& how, bool profile) {
  for (auto const& w : bench::workloads()) {
    if (w.name != name) continue;
    auto const t = w.make(batch, how);
    for (int i = 0; i < 3; ++i) t->step();
    if (profile) return t->trace(50), 0;
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      if (line.starts_with("steps ")) {
        std::ostringstream all;
        for (int i = std::stoi(line.substr(6)); i > 0; --i) {
          auto const begin = clock_type::now();
          t->step();
          all << milliseconds_since(begin) << ' ';
        }
        std::cout << all.str() << std::endl;
      } else {
        std::ifstream status("/proc/self/status");
        for (std::string entry; std::getline(status, entry);)
          if (entry.starts_with("VmHWM:")) std::cout << std::stoll(entry.substr(6)) * 1024 << std::endl;
      }
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Training steps of this project beside those of peers, in turns");
  std::vector<std::string> peers, only;
  std::vector<int> threads{1, 2};
  int rounds = 8;
  double budget = 500;
  std::vector<std::string> kernels{"measured"}, activations{"recomputed"};
  app.add_option("--peer", peers,
                 "NAME=COMMAND of a peer, which is given --workload, --batch and --threads (see peer.py)");
  app.add_option("--workload", only, "these alone: mnist, mlp, cifar, resnet20, resnet18");
  app.add_option("--threads", threads, "numbers of threads to measure with");
  app.add_option("--rounds", rounds, "turns of each");
  app.add_option("--turn", budget, "milliseconds that a turn takes, about");
  app.add_option("--kernels", kernels, "of edl: measured, fixed, direct and own; several to compare them")
      ->check(CLI::IsMember(edl::kernels_names));
  app.add_option("--activations", activations, "of edl: recomputed, float32 and bfloat16 likewise")
      ->check(CLI::IsMember(edl::nn::storage_names));
  std::string served;
  int batch = 0;
  bool profile = false;
  auto* const server = app.add_subcommand("serve", "be a contestant");
  server->add_option("--workload", served)->required();
  server->add_option("--batch", batch)->required();
  server->add_option("--threads", threads)->required();
  server->add_option("--kernels", kernels);
  server->add_option("--activations", activations);
  server->add_flag("--profile", profile, "print where the time goes, layer by layer, and end");
  CLI11_PARSE(app, argc, argv);
  if (*server) {
    auto const place = [](auto const& names, std::string const& name) {
      return std::find(names.begin(), names.end(), name) - names.begin();
    };
    bench::contest const how{.device = {.threads = threads.front(),
                                        .kernels = edl::kernels(place(edl::kernels_names, kernels.front()))},
                             .keep = edl::nn::storage(place(edl::nn::storage_names, activations.front()))};
    return serve(served, batch, how, profile);
  }

  double const fastest = peak();
  std::printf("peak of one core: %.0f GFLOP/s\n\n", fastest);
  std::printf(
      "| network | batch | threads | who | step, ms (p10 to p90) | samples/s | GFLOP/s | of the peak | peak "
      "memory, MB | edl is |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|\n");
  for (auto const& w : bench::workloads()) {
    if (!only.empty() && std::find(only.begin(), only.end(), w.name) == only.end()) continue;
    for (int const b : w.batches)
      for (int const n : threads) {
        std::vector<std::string> const rest{"--workload",      w.name,      "--batch",
                                            std::to_string(b), "--threads", std::to_string(n)};
        std::vector<std::unique_ptr<bench::contestant>> all;
        auto const add = [&](std::string const& name, std::vector<std::string> command) {
          command.insert(command.end(), rest.begin(), rest.end());
          all.push_back(std::make_unique<bench::contestant>(name, command));
          if (all.back()->line() != "ready") {
            std::fprintf(stderr, "%s does not answer and is left out\n", name.c_str());
            all.pop_back();
          }
        };
        for (std::string const& k : kernels)
          for (std::string const& a : activations)
            add("edl" + (kernels.size() > 1 ? ", " + k : "") + (activations.size() > 1 ? ", " + a : ""),
                {"/proc/self/exe", "serve", "--kernels", k, "--activations", a});
        for (std::string const& p : peers) {
          auto const at = p.find('=');
          std::istringstream words(p.substr(at + 1));
          add(p.substr(0, at), {std::istream_iterator<std::string>(words), {}});
        }
        for (int r = 0; r < rounds; ++r)
          for (auto& c : all) {
            auto const begin = clock_type::now();
            do c->measure(std::max(1, int(budget / 50 / (c->times.empty() ? 1e9 : c->times.back()))));
            while (milliseconds_since(begin) < budget && !c->times.empty());
          }
        double const ours = all.front()->quantile(0.5);
        for (auto& c : all) {
          double const ms = c->quantile(0.5), rate = 2 * w.multiplications * b / (ms * 1e6);
          double const mb = std::stod("0" + c->ask("memory")) / 1e6;
          std::printf("| %s | %d | %d | %s | %.3f (%.3f to %.3f) | %.0f | %.0f | %.0f %% | %.0f | %.2f x |\n",
                      w.name.c_str(), b, n, c->name.c_str(), ms, c->quantile(0.1), c->quantile(0.9),
                      b / ms * 1e3, rate, 100 * rate / (fastest * n), mb, ms / ours);
          std::fflush(stdout);
        }
      }
  }
}
