// SPDX-License-Identifier: Apache-2.0
// Training steps beside those of peers: every contestant is a process, and they take turns, so that what else
// the machine does falls on all of them alike.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "../contestant.hpp"
#include "edl/cli/program.hpp"
#include "edl/core/names.hpp"
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
    for (std::int64_t r = 0; r < rounds; ++r) {
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
    if (!t) return 0;  // it has no such form
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

using edl::cli::flag, edl::cli::words;

template <class E>
words names_of(E e) {
  auto const all = names(e);
  return {all.begin(), all.end()};
}

std::vector<flag> flags() {
  using enum flag::value_type;
  return {{.name = "peer",
           .help = "NAME=COMMAND of a peer, which is given --workload, --batch and --threads (see peer.py)",
           .repeats = true},
          {.name = "workload",
           .help = "these alone: mnist, mlp, cifar, resnet20, resnet18, transformer, lstm, deepfm",
           .repeats = true},
          {.name = "threads",
           .fallback = "1,2",
           .help = "numbers of threads to measure with",
           .type = whole,
           .least = 1,
           .most = 1024,
           .repeats = true},
          {.name = "rounds",
           .fallback = "8",
           .help = "turns of each",
           .type = whole,
           .least = 1,
           .most = 1'000'000},
          {.name = "turn",
           .fallback = "500",
           .help = "milliseconds that a turn takes, about",
           .type = number,
           .lowest = 1,
           .highest = 1e6},
          {.name = "kernels",
           .fallback = "measured",
           .help = "of edl; several to compare them",
           .choices = names_of(edl::kernels{}),
           .repeats = true},
          {.name = "activations",
           .fallback = "recomputed",
           .help = "of edl, likewise",
           .choices = names_of(edl::nn::storage{}),
           .repeats = true},
          {.name = "precision",
           .fallback = "float32",
           .help = "of edl, likewise; int8 with --forward alone",
           .choices = {"float32", "bfloat16", "int8"},
           .repeats = true},
          {.name = "memory_budget",
           .fallback = "0",
           .help = "of edl, likewise: MB that the network may take; 0: no bound",
           .type = whole,
           .least = 0,
           .most = 1'000'000,
           .repeats = true},
          {.name = "form",
           .fallback = "containers",
           .help = "of edl's network, likewise; transformer and deepfm are functions as well",
           .choices = {"containers", "function"},
           .repeats = true},
          {.name = "batch",
           .help = "numbers of samples, instead of the network's own",
           .type = whole,
           .least = 1,
           .most = 1 << 20,
           .repeats = true},
          {.name = "forward",
           .help = "measure the forward pass of an evaluation; peers are given --forward",
           .type = truth},
          {.name = "profile",
           .help = "of `serve`: print where the time goes, layer by layer, and end",
           .type = truth}};
}

int run(edl::cli::command_line const& l) {
  words const peers = l.all("peer"), only = l.all("workload"), kernels = l.all("kernels"),
              activations = l.all("activations"), precisions = l.all("precision"),
              budgets = l.all("memory_budget"), forms = l.all("form");
  auto const numbers = [&](char const* name) {
    std::vector<int> all;
    for (std::string const& n : l.all(name)) all.push_back(edl::cli::parse_number<int>(n));
    return all;
  };
  std::vector<int> const threads = numbers("threads"), batches = numbers("batch");
  if (l.arguments() == words{"serve"}) {
    bench::contest const how{.device = {.threads = threads.front(),
                                        .kernels = *edl::value_of<edl::kernels>(kernels.front()),
                                        .precision = *edl::value_of<edl::precision>(precisions.front()),
                                        .keep_kernels = l.truth("forward")},
                             .keep = *edl::value_of<edl::nn::storage>(activations.front()),
                             .memory_budget = std::stoul(budgets.front()) * 1'000'000,
                             .forward = l.truth("forward"),
                             .function = forms.front() == "function"};
    return serve(only.at(0), batches.at(0), how, l.truth("profile"));
  }
  if (l.arguments() == words{"export"}) {
    for (auto const& w : bench::workloads())
      if (w.export_onnx && (only.empty() || std::ranges::find(only, w.name) != only.end()))
        w.export_onnx(w.name + ".onnx");
    return 0;
  }
  auto const rounds = l.number("rounds");
  auto const budget = edl::cli::parse_number<double>(l.text("turn"));
  double const fastest = peak();
  std::printf("peak of one core: %.0f GFLOP/s\n\n", fastest);
  std::printf(
      "| network | batch | threads | who | step, ms (p10 to p90) | samples/s | GFLOP/s | of the peak | peak "
      "memory, MB | edl is |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|\n");
  for (auto const& w : bench::workloads()) {
    if (!only.empty() && std::ranges::find(only, w.name) == only.end()) continue;
    if (l.truth("forward") && w.forward == 0) continue;
    for (int const b : batches.empty() ? w.batches : batches)
      for (int const n : threads) {
        std::vector<std::string> rest{"--workload",      w.name,      "--batch",
                                      std::to_string(b), "--threads", std::to_string(n)};
        if (l.truth("forward")) rest.push_back("--forward");
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
            for (std::string const& p : precisions)
              for (std::string const& m : budgets)
                for (std::string const& f : forms)
                  add("edl" + (kernels.size() > 1 ? ", " + k : "") +
                          (activations.size() > 1 ? ", " + a : "") + (precisions.size() > 1 ? ", " + p : "") +
                          (budgets.size() > 1 ? ", " + m : "") + (forms.size() > 1 ? ", " + f : ""),
                      {"/proc/self/exe", "serve", "--kernels", k, "--activations", a, "--precision", p,
                       "--memory_budget", m, "--form", f});
        for (std::string const& p : peers) {
          auto const at = p.find('=');
          std::istringstream words(p.substr(at + 1));
          add(p.substr(0, at), {std::istream_iterator<std::string>(words), {}});
        }
        for (std::int64_t r = 0; r < rounds; ++r)
          for (auto& c : all) {
            auto const begin = clock_type::now();
            do c->measure(std::max(1, int(budget / 50 / (c->times.empty() ? 1e9 : c->times.back()))));
            while (milliseconds_since(begin) < budget && !c->times.empty());
          }
        double const ours = all.front()->quantile(0.5);
        for (auto& c : all) {
          double const ms = c->quantile(0.5),
                       rate = 2 * (l.truth("forward") ? w.forward : w.multiplications) * b / (ms * 1e6);
          double const mb = std::stod("0" + c->ask("memory")) / 1e6;
          std::printf("| %s | %d | %d | %s | %.3f (%.3f to %.3f) | %.0f | %.0f | %.0f %% | %.0f | %.2f x |\n",
                      w.name.c_str(), b, n, c->name.c_str(), ms, c->quantile(0.1), c->quantile(0.9),
                      b / ms * 1e3, rate, 100 * rate / (fastest * n), mb, ms / ours);
          std::fflush(stdout);
        }
      }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return edl::cli::run_program({.command = "bench-train",
                                .flags = flags(),
                                .most = 1,
                                .arguments = "`serve`, or `export`: write the networks as NAME.onnx"},
                               "Training steps of this project beside those of peers, in turns.",
                               {argv + 1, argv + argc}, run);
}
