// SPDX-License-Identifier: Apache-2.0
// Training steps on a GPU beside those of peers: every contestant is a process, and they take turns. A turn
// is as many steps as are told, one after the other, with one wait at their end; samples lie on the GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <edl/edl.hpp>
#include <functional>
#include <iostream>
#include <memory>

#include "../contestant.hpp"
#include "edl/cli/program.hpp"
#include "edl/compute/device/cuda.hpp"
#include "edl/compute/nn/loss/on_accelerator.hpp"
#include "edl/compute/optim/on_accelerator.hpp"
#include "edl/core/error.hpp"
#include "edl/core/names.hpp"
#include "kernels.hpp"
#include "networks.hpp"

namespace {

namespace nn = edl::nn;
using clock_type = std::chrono::steady_clock;
using edl::cuda, edl::precision;

double microseconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

class trainer {
 public:
  virtual ~trainer() = default;
  virtual void step() = 0;
  virtual void wait() = 0;
  /// Prints where the time of some steps goes; each layer is waited for.
  virtual void trace(int steps) = 0;
  /// What the operations of a step read and write.
  virtual std::vector<edl::memory_traffic> traffic() = 0;
};

template <auto const& Net>
class step_of final : public trainer {
 public:
  step_of(int batch, precision p, bool measured)
      : batch_(batch),
        model_({.max_batch = batch, .device = {.precision = p, .measured = measured}}),
        gpu_(model_.device()),
        given_(gpu_, std::size_t(batch) * Net.input.size()),
        x_(gpu_, std::size_t(batch) * Net.input.size()),
        labels_(gpu_, std::size_t(batch)),
        loss_(gpu_, 1),
        velocity_(gpu_, model_.gradients().size()) {
    edl::random_stream const random(1, 0);
    std::vector<float> x(given_.span().size());
    std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = random.uniform(i);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = std::int32_t(i % 10);
    gpu_->write(x, given_.span());
    gpu_->upload(std::as_bytes(std::span(labels)), labels_.span().data());
    gpu_->synchronize();
  }

  void step() override {
    gpu_->replay(1, step_, [this] { pass(); });
    std::span<float> const slots[] = {velocity_.span()};
    edl::apply(*gpu_, edl::sgd{.momentum = 0.9f}, model_.parameters(), model_.gradients(), slots, 0.01f,
               step_);
    ++step_;
  }
  void wait() override { gpu_->synchronize(); }

  void trace(int steps) override {
    nn::trace all;
    model_.set_trace(&all);
    for (int i = 0; i < steps; ++i) pass();
    all.write_table(std::cout);
  }

  std::vector<edl::memory_traffic> traffic() override {
    gpu_->take_traffic();
    step();
    wait();
    return gpu_->take_traffic();
  }

 private:
  void pass() {
    gpu_->store(given_.span(), x_.span());
    auto const y = model_.forward(x_.span(), batch_, edl::mode::training, step_);
    nn::compute_loss(*gpu_, nn::softmax_cross_entropy{}, model_.output, batch_, y, labels_.span(),
                     model_.output_gradient(), loss_.span());
    model_.backward(x_.span(), batch_);
  }

  int batch_;
  edl::model<Net, cuda> model_;
  std::shared_ptr<edl::accelerator> gpu_;
  edl::device_buffer<float> given_, x_, labels_, loss_, velocity_;
  std::uint64_t step_ = 0;
};

struct workload {
  std::string name;
  std::vector<int> batches;
  double multiplications;  // of a step, per sample: what products and convolutions must compute
  std::function<std::unique_ptr<trainer>(int batch, precision, bool measured)> make;
};

template <auto const& Net>
workload one(std::string name, std::vector<int> batches) {
  double first = 0;
  Net.body.children(Net.input, [&](auto const& child, edl::shape s, std::string_view) {
    first = bench::forward_of(child, s);
    return first == 0;
  });
  return {std::move(name), std::move(batches), 3 * bench::forward_of(Net.body, Net.input) - first,
          [](int batch, precision p, bool measured) {
            return std::make_unique<step_of<Net>>(batch, p, measured);
          }};
}

std::vector<workload> workloads() {
  return {one<bench::mnist>("mnist", {64, 1024}), one<bench::mlp>("mlp", {256, 4096}),
          one<bench::cifar>("cifar", {128, 1024}), one<resnet::of_20_layers>("resnet20", {128, 1024}),
          one<resnet::of_18_layers>("resnet18", {128, 1024})};
}

/// Multiplications and additions of a large product in a nanosecond: what the card gives to this library.
double matrix_rate(precision p) {
  constexpr std::size_t n = 8192;
  auto const gpu = cuda::open({.precision = p});
  edl::device_buffer<float> a(gpu, n * n), b(gpu, n * n), c(gpu, n * n);
  std::vector<float> host(n * n);
  edl::random_stream const random(1, 0);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = random.uniform(i) - 0.5f;
  gpu->write(host, c.span());
  gpu->store(c.span(), a.span());
  gpu->write(host, b.span());
  gpu->bind(b.span());
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    gpu->synchronize();
    auto const begin = clock_type::now();
    for (int k = 0; k < 10; ++k)
      gpu->dense_forward(n, n, n, edl::activation::none, a.span(), b.span(), {}, c.span());
    gpu->synchronize();
    best = std::max(best, 2.0 * n * n * n * 10 / (microseconds_since(begin) * 1e3));
  }
  return best;
}

/// Bytes that copies read and write in a nanosecond.
double copy_rate() {
  constexpr std::size_t n = std::size_t(1) << 28;
  auto const gpu = cuda::open();
  edl::device_buffer<float> a(gpu, n), b(gpu, n);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    gpu->synchronize();
    auto const begin = clock_type::now();
    for (int k = 0; k < 10; ++k) gpu->move(a.span(), b.span());
    gpu->synchronize();
    best = std::max(best, 2.0 * n * sizeof(float) * 10 / (microseconds_since(begin) * 1e3));
  }
  return best;
}

/// What a step reads and writes, by operations. Each is a line in the number of samples, which two steps
/// tell.
std::vector<edl::memory_traffic> traffic_of(workload const& w, int batch, precision p) {
  auto all = w.make(1, p, false)->traffic();
  auto const two = w.make(2, p, false)->traffic();
  auto const extend = [&](std::uint64_t& one, std::uint64_t of_two) {
    one += (of_two - one) * std::uint64_t(batch - 1);
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    extend(all[i].least, two.at(i).least), extend(all[i].again, two[i].again);
  return all;
}

void print_operations(std::vector<edl::memory_traffic> all, double rate) {
  std::ranges::sort(all, std::ranges::greater(), &edl::memory_traffic::least);
  std::printf("| operation | calls | least, MB | read again, MB | floor, µs |\n|---|---|---|---|---|\n");
  for (auto const& t : all)
    std::printf("| %.*s | %llu | %.1f | %.1f | %.1f |\n", int(t.operation.size()), t.operation.data(),
                static_cast<unsigned long long>(t.calls), double(t.least) / 1e6, double(t.again) / 1e6,
                double(t.least) / (rate * 1e3));
}

double step_time(trainer& t) {
  for (int i = 0; i < 5; ++i) t.step();
  t.wait();
  auto const begin = clock_type::now();
  int steps = 0;
  for (; microseconds_since(begin) < 2e5; t.wait())
    for (int i = 0; i < 20; ++i, ++steps) t.step();
  return microseconds_since(begin) / steps;
}

/// A step's floor is the time in which memory moves what its operations must read and write.
void print_roofline(std::vector<workload> const& of, std::vector<std::string> const& precisions,
                    double given) {
  double const rate = given > 0 ? given : copy_rate();
  std::printf("%s; memory moves %.0f GB/s\n\n", cuda::open()->describe().c_str(), rate);
  std::printf(
      "| network | batch | precision | operations | least, MB | read again, MB | floor, µs | step, µs | "
      "of the floor |\n|---|---|---|---|---|---|---|---|---|\n");
  for (auto const& w : of)
    for (std::string const& name : precisions)
      for (int const batch : w.batches) {
        precision const p = *edl::value_of<precision>(name);
        edl::memory_traffic all;
        for (auto const& t : traffic_of(w, batch, p))
          all.calls += t.calls, all.least += t.least, all.again += t.again;
        double const floor = double(all.least) / (rate * 1e3);
        double const step = given > 0 ? 0 : step_time(*w.make(batch, p, true));
        std::printf("| %s | %d | %s | %llu | %.1f | %.1f | %.1f | ", w.name.c_str(), batch, name.c_str(),
                    static_cast<unsigned long long>(all.calls), double(all.least) / 1e6,
                    double(all.again) / 1e6, floor);
        step > 0 ? std::printf("%.1f | %.2f x |\n", step, step / floor) : std::printf("- | - |\n");
        std::fflush(stdout);
      }
}

/// Where a step's time goes: by layers, each waited for, and by kernels as they are replayed.
void print_profile(workload const& w, int batch, precision p) {
  std::string why;
  bench::kernel_listing kernels(why);
  auto const t = w.make(batch, p, true);
  for (int i = 0; i < 5; ++i) t->step();
  t->wait();
  if (kernels.works()) {
    constexpr int steps = 20;
    (void)kernels.taken();
    for (int i = 0; i < steps; ++i) t->step();
    t->wait();
    bench::print_kernels(kernels.taken(), steps);
  } else {
    std::printf("kernels are not told, as CUPTI is not to be had: %s\n", why.c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
  t->trace(50);
}

int serve(std::string const& name, int batch, precision p, bool profile, double roofline) {
  for (auto const& w : workloads()) {
    if (w.name != name) continue;
    if (roofline > 0) return print_operations(traffic_of(w, batch, p), roofline), 0;
    if (profile) return print_profile(w, batch, p), 0;
    auto const t = w.make(batch, p, true);
    for (int i = 0; i < 5; ++i) t->step();
    t->wait();
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      int const steps = std::max(1, std::atoi(line.substr(line.find(' ') + 1).c_str()));
      auto const begin = clock_type::now();
      for (int i = 0; i < steps; ++i) t->step();
      t->wait();
      std::cout << microseconds_since(begin) / 1e3 / steps << std::endl;
    }
  }
  return 0;
}

using edl::cli::flag, edl::cli::words;

words names_of_workloads() {
  words all;
  for (auto const& w : workloads()) all.push_back(w.name);
  return all;
}

/// Throws usage_error where flags do not go together.
void check_line(edl::cli::command_line const& l) {
  bool const serves = l.arguments() == words{"serve"};
  auto const refuse = [](std::string const& why) { throw edl::usage_error(why); };
  if (!serves && !l.arguments().empty())
    refuse("'" + l.arguments().front() + "': expected `serve`, or flags alone");
  if (serves && l.all("workload").size() != 1)
    refuse(fmt::format("serve: name one --workload: {}", fmt::join(names_of_workloads(), ", ")));
  if (serves && l.given("precision") && l.all("precision").size() != 1) refuse("serve: name one --precision");
  for (char const* mine : {"batch", "profile"})
    if (!serves && l.given(mine)) refuse(fmt::format("--{} is of `serve`", mine));
  for (char const* others : {"peer", "rounds", "turn"})
    if ((serves || l.truth("roofline")) && l.given(others))
      refuse(fmt::format("--{} is for steps beside those of peers, without `serve` and --roofline", others));
  if (l.truth("profile") && l.truth("roofline")) refuse("--profile and --roofline: name one of them");
  if (l.given("rate") && !l.truth("roofline")) refuse("--rate is of --roofline");
  for (std::string const& peer : l.all("peer"))
    if (auto const at = peer.find('='); at == 0 || at == peer.npos || at + 1 == peer.size())
      refuse("--peer=" + peer + ": expected NAME=COMMAND, as 'PyTorch=python3 peer.py'");
}

std::vector<flag> flags() {
  using enum flag::value_type;
  words precisions;
  for (auto const name : names(precision{}))
    if (name != "int8") precisions.emplace_back(name);  // which is no GPU's
  return {
      {.name = "peer",
       .help = "NAME=COMMAND of a peer, which is given --workload, --batch and --precision (see peer.py)",
       .repeats = true},
      {.name = "workload",
       .help = "these alone: " + fmt::format("{}", fmt::join(names_of_workloads(), ", ")),
       .choices = names_of_workloads(),
       .repeats = true},
      {.name = "precision",
       .fallback = "tf32,bfloat16",
       .help = "of products",
       .choices = precisions,
       .repeats = true},
      {.name = "rounds",
       .fallback = "9",
       .help = "turns of each",
       .type = whole,
       .least = 1,
       .most = 1'000'000},
      {.name = "turn",
       .fallback = "200",
       .help = "milliseconds that a turn takes, about",
       .type = number,
       .lowest = 1,
       .highest = 1e6},
      {.name = "batch",
       .fallback = "64",
       .help = "of `serve`, which is a contestant",
       .type = whole,
       .least = 1,
       .most = 1 << 20},
      {.name = "profile",
       .help = "of `serve`: print where the time goes, kernel by kernel (where CUPTI is found) and layer by "
               "layer, and end",
       .type = truth},
      {.name = "roofline",
       .help = "print the bytes that a step must read and write beside its time, and end; of `serve`: "
               "print them by operations",
       .type = truth},
      {.name = "rate",
       .fallback = "0",
       .help = "GB/s of memory, for --roofline without times; 0: copies and steps are measured",
       .type = number,
       .lowest = 0,
       .highest = 1e6}};
}

int run(edl::cli::command_line const& l) {
  check_line(l);
  words const peers = l.all("peer"), only = l.all("workload"), precisions = l.all("precision");
  bool const roofline = l.truth("roofline");
  auto const rate = edl::cli::parse_number<double>(l.text("rate"));
  if (l.arguments() == words{"serve"})
    return serve(only.at(0), int(l.number("batch")), *edl::value_of<precision>(precisions.front()),
                 l.truth("profile"),
                 !roofline  ? 0
                 : rate > 0 ? rate
                            : copy_rate());
  auto chosen = workloads();
  if (!only.empty())
    std::erase_if(chosen, [&](auto const& w) { return std::ranges::find(only, w.name) == only.end(); });
  if (roofline) return print_roofline(chosen, precisions, rate), 0;
  auto const rounds = l.number("rounds");
  auto const turn = edl::cli::parse_number<double>(l.text("turn"));

  std::printf("%s\n\n", cuda::open()->describe().c_str());
  std::printf(
      "| network | batch | precision | who | step, µs (p10 to p90) | samples/s | TFLOP/s | of a large "
      "product's | edl is |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|\n");
  for (std::string const& p : precisions) {
    double const fastest = matrix_rate(*edl::value_of<precision>(p));
    std::printf("| 8192³ product | | %s | edl | | | %.0f | 100 %% | |\n", p.c_str(), fastest / 1e3);
    for (auto const& w : chosen) {
      for (int const b : w.batches) {
        std::vector<std::string> const rest{"--workload",      w.name,        "--batch",
                                            std::to_string(b), "--precision", p};
        std::vector<std::unique_ptr<bench::contestant>> all;
        auto const add = [&](std::string const& name, std::vector<std::string> command) {
          command.insert(command.end(), rest.begin(), rest.end());
          all.push_back(std::make_unique<bench::contestant>(name, command));
          if (all.back()->line() == "ready") return;
          std::fprintf(stderr, "%s does not answer (%s, %d, %s) and is left out\n", name.c_str(),
                       w.name.c_str(), b, p.c_str());
          all.pop_back();
        };
        add("edl", {"/proc/self/exe", "serve"});
        if (all.empty()) continue;
        for (std::string const& peer : peers) {
          auto const at = peer.find('=');
          std::istringstream words(peer.substr(at + 1));
          add(peer.substr(0, at), {std::istream_iterator<std::string>(words), {}});
        }
        for (std::int64_t r = 0; r < rounds; ++r)
          for (auto& c : all)
            c->measure(std::clamp(int(turn / (c->times.empty() ? 5 : c->times.back())), 1, 5000));
        double const ours = all.front()->quantile(0.5);
        for (auto& c : all) {
          double const ms = c->quantile(0.5), rate = 2 * w.multiplications * b / (ms * 1e6);
          std::printf("| %s | %d | %s | %s | %.1f (%.1f to %.1f) | %.0f | %.1f | %.0f %% | %.2f x |\n",
                      w.name.c_str(), b, p.c_str(), c->name.c_str(), ms * 1e3, c->quantile(0.1) * 1e3,
                      c->quantile(0.9) * 1e3, b / ms * 1e3, rate / 1e3, 100 * rate / fastest, ms / ours);
          std::fflush(stdout);
        }
      }
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return edl::cli::run_program({.command = "bench-gpu", .flags = flags(), .most = 1, .arguments = "`serve`"},
                               "Training steps of this project on a GPU beside those of peers, in turns.",
                               {argv + 1, argv + argc}, run);
}
