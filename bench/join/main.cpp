// SPDX-License-Identifier: Apache-2.0
// How long the workers of a job wait while another one joins: the longest time between two of their passes
// from then on, beside the usual one, for models of several sizes. The program is model, job and benchmark.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <edl/edl.hpp>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/job.hpp"

namespace {

namespace nn = edl::nn;
using namespace std::chrono_literals;

constexpr std::size_t inputs = 256;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Records without end, of which all are alike.
class constant : public edl::data::source {
 public:
  std::vector<edl::data::shard> const& shards() const override { return shards_; }
  std::unique_ptr<edl::data::reader> open() const override { return std::make_unique<one>(); }

 private:
  struct one : edl::data::reader {
    void read(std::size_t, std::uint64_t record, edl::example& into) override {
      edl::example_builder made(into);
      made.floats("x", std::vector<float>(inputs, float(record % 7)));
      made.integer("label", std::int64_t(record % 2));
    }
  };
  std::vector<edl::data::shard> shards_{{"constant", 1 << 24}};
};

/// (inputs + 3) · Units + 2 parameters; each pass of a worker leaves its time in a file.
template <int Units>
struct model {
  struct timed : nn::softmax_cross_entropy {
    template <class T>
    double operator()(edl::shape output, int batch, edl::view<T> outputs, edl::view<label> truth,
                      std::span<std::type_identity_t<T>> gradients) const {
      static std::ofstream times(fmt::format("{}/{}", std::getenv("JOIN_TIMES"), std::getenv("WORKER_ID")));
      times << fmt::format("{:.6f}\n", now()) << std::flush;
      return nn::softmax_cross_entropy::operator()(output, batch, outputs, truth, gradients);
    }
  };
  static constexpr auto network = nn::sequential(nn::features{.count = inputs}, nn::dense{.units = Units},
                                                 nn::relu{}, nn::dense{.units = 2});
  static constexpr timed loss{};
  static constexpr edl::sgd optimizer{.learning_rate = 0.001f, .momentum = 0.9f};
  static std::unique_ptr<edl::data::source> open(std::string const&, edl::data::source_options const&) {
    return std::make_unique<constant>();
  }
  static void feed(edl::example const& record, edl::sample<model>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

std::vector<double> times_of(std::string const& directory, int worker) {
  std::vector<double> all;
  std::ifstream in(fmt::format("{}/{}", directory, worker));
  for (double t; in >> t;) all.push_back(t);
  return all;
}

/// A job of two workers that another one joins.
void measure(std::string const& title, std::string const& units, std::vector<std::string> flags) {
  constexpr std::size_t before = 24, after = 24;
  job::scratch const dir;
  job::options const with{.env = {{"JOIN_UNITS", units}, {"JOIN_TIMES", dir / ""}}};
  flags.insert(flags.begin(), {"train", "--training_data=constant", "--minibatch_size=8", "--num_workers=2",
                               "--num_threads=1", "--job_name=join", "--log_level=DEBUG", "--num_epochs=0"});
  job::run j(flags, with);
  auto const reached = [&](int worker, std::size_t n) { return times_of(dir / "", worker).size() >= n; };
  auto const wait = [&](auto const& done) {
    for (auto const until = now() + 240; !done();) {
      if (j.ended() || now() > until) throw std::runtime_error(title + ": " + j.log());
      std::this_thread::sleep_for(50ms);
    }
  };
  wait([&] { return reached(0, before) && reached(1, before); });
  double const asked = now();
  job::run scale({"scale", "--num_workers=3", "--job_name=join"}, with);
  wait([&] { return reached(2, after); });
  std::vector<double> usual;
  double longest = 0;
  for (int const worker : {0, 1}) {
    auto const t = times_of(dir / "", worker);
    for (std::size_t i = 8; i + 1 < t.size(); ++i)
      t[i + 1] < asked ? usual.push_back(t[i + 1] - t[i])
                       : void(longest = std::max(longest, t[i + 1] - t[i]));
  }
  std::ranges::sort(usual);
  double const step = usual.at(usual.size() / 2), worst = usual.back();
  std::string const log = j.log();
  auto const at = log.find("] took version ");
  std::string const copied =
      at == std::string::npos ? "" : log.substr(log.find('(', at), log.find(')', at) - log.find('(', at) + 1);
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {} |\n", title, 1000 * step, 1000 * worst,
             1000 * longest, longest / step, copied);
  std::fflush(stdout);
}

template <int Units>
bool is(std::string const& units, int argc, char** argv, int& code) {
  if (units != std::to_string(Units)) return false;
  code = edl::run<model<Units>>(argc, argv);
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  if (char const* const units = std::getenv("JOIN_UNITS")) {
    int code = 1;
    is<1012>(units, argc, argv, code) || is<64777>(units, argc, argv, code) ||
        is<518215>(units, argc, argv, code);
    return code;
  }
  fmt::print("A third worker joins two, one thread each:\n\n");
  fmt::print(
      "| model | a step, ms | longest before | longest from then on | in steps | copied "
      "|\n|---|---|---|---|---|---|\n");
  for (auto const& [mib, units] : {std::pair(1, "1012"), std::pair(64, "64777"), std::pair(512, "518215")}) {
    if (argc > 1 && std::atoi(argv[1]) < mib) break;
    measure(fmt::format("{} MiB, all-reduce", mib), units, {"--distribution_strategy=AllreduceStrategy"});
    measure(fmt::format("{} MiB, a server", mib), units, {"--num_ps_pods=1", "--use_async"});
  }
} catch (std::exception const& e) {
  fmt::print(stderr, "bench-join: {}\n", e.what());
  return 1;
}
