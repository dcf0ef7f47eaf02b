// SPDX-License-Identifier: Apache-2.0
// A model that trains in a second, for tests of whole jobs. The environment can make a worker of it fail or
// dawdle.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <edl/edl.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace nn = edl::nn;

/// Files of a format that edl does not know: 8 floats and a 32-bit label for each record.
class points : public edl::data::source {
 public:
  explicit points(std::string const& path)
      : path_(path), shards_{{path, std::filesystem::file_size(path) / sizeof(point)}} {}

  std::vector<edl::data::shard> const& shards() const override { return shards_; }
  std::unique_ptr<edl::data::reader> open() const override { return std::make_unique<one>(path_); }

 private:
  struct point {
    std::array<float, 8> x;
    std::int32_t label;
  };
  struct one : edl::data::reader {
    explicit one(std::string const& path) : file(path, std::ios::binary) {}
    void read(std::size_t, std::uint64_t record, edl::example& into) override {
      point p{};
      file.seekg(std::streamoff(record * sizeof p));
      if (!file.read(reinterpret_cast<char*>(&p), sizeof p)) throw edl::data_error("a point cannot be read");
      edl::example_builder made(into);
      made.floats("x", p.x);
      made.integer("label", p.label);
    }
    std::ifstream file;
  };

  std::string path_;
  std::vector<edl::data::shard> shards_;
};

struct tiny {
  struct hyperparameters {
    edl::hyperparameter<float> rate{0.05f, "learning rate", 0, 1};
  };
  static constexpr auto network = nn::sequential(nn::features{.count = 8}, nn::dense{.units = 16}, nn::relu{},
                                                 nn::batch_norm{}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static auto optimizer(hyperparameters const& set) {
    return edl::sgd{.learning_rate = set.rate, .momentum = 0.9f};
  }
  using metrics = edl::metrics<edl::accuracy>;
  static constexpr edl::weight_name weight_names[] = {
      {"first.weight", "dense/kernel", edl::weight_order::pytorch}};

  static std::unique_ptr<edl::data::source> open(std::string const& path, edl::data::source_options const&) {
    return path.ends_with(".points") ? std::make_unique<points>(path) : nullptr;
  }

  template <class Sample>
  static void feed(edl::example const& record, Sample& into, edl::mode m) {
    into.features = record.floats("x");
    finish(record, into, m);
  }

 protected:
  template <class Sample>
  static void finish(edl::example const& record, Sample& into, edl::mode m) {
    if (m != edl::mode::prediction) into.label = record.integer("label");
    if (m == edl::mode::training) disturb();
    if (m == edl::mode::evaluation) pause("TINY_EVALUATION_DELAY_US");
    if (m == edl::mode::prediction && !opened()) pause("TINY_PREDICTION_DELAY_US");
  }

  static bool opened() {
    static std::atomic<bool> open{false};
    open = open || there("TINY_GATE");
    return open;
  }

  static bool there(char const* file) {
    char const* const path = std::getenv(file);
    return path && ::access(path, F_OK) == 0;
  }

 private:
  /// TINY_FAILS: "throw", "abort" or "exit" at the first record. TINY_DELAY_US: microseconds per record, so
  /// that a test can act in the middle of a job, until there is a file TINY_GATE; after TINY_SLOWER_AFTER
  /// records a process takes ten times as long, so that the job does not end before the test has acted;
  /// TINY_PREDICTION_DELAY_US: the same of a prediction; TINY_EVALUATION_DELAY_US: of an evaluation.
  static void disturb() {
    if (char const* how = std::getenv("TINY_FAILS")) {
      if (how != std::string_view("throw")) std::fputs("tiny: libdata.so is not there\n", stderr);
      if (how == std::string_view("abort")) std::abort();
      if (how == std::string_view("exit")) std::_Exit(3);
      throw edl::data_error("this worker was told to fail");
    }
    if (opened()) return;
    static std::atomic<int> seen{0};
    char const* const limit = std::getenv("TINY_SLOWER_AFTER");
    pause("TINY_DELAY_US", limit && ++seen > std::atoi(limit) ? 10 : 1);
  }

  static void pause(char const* name, int times = 1) {
    if (char const* delay = std::getenv(name))
      std::this_thread::sleep_for(times * std::chrono::microseconds(std::atoi(delay)));
  }
};

/// Whether this process is the worker whose processor or memory errs: that of TINY_WRONG.
static bool errs(char const* how) {
  static char const* const worker = std::getenv("WORKER_ID");
  static char const* const wrong = std::getenv("TINY_WRONG_WORKER");
  static char const* const what = std::getenv("TINY_WRONG");
  return worker && wrong && what && worker == std::string_view(wrong) && what == std::string_view(how);
}

/// With TINY_WRONG: in the worker TINY_WRONG_WORKER the least bit of a number is another than it is.
/// "record": of each record's first feature, "gradient": of the first gradient of each minibatch's outputs,
/// "late": that from the 40th minibatch on; "exponent": the greatest bit of each record's first exponent,
/// once there is a file TINY_WRONG_FROM.
struct wrong : tiny {
  struct flipped : nn::softmax_cross_entropy {
    template <class T>
    double operator()(edl::shape output, int batch, edl::view<T> outputs, edl::view<label> truth,
                      std::span<std::type_identity_t<T>> gradients) const {
      double const loss = nn::softmax_cross_entropy::operator()(output, batch, outputs, truth, gradients);
      static std::atomic<int> calls{0};
      if (!gradients.empty() && (errs("gradient") || (errs("late") && ++calls >= 40))) flip(gradients[0]);
      return loss;
    }
  };
  static constexpr flipped loss{};

  static void feed(edl::example const& record, edl::sample<wrong>& into, edl::mode m) {
    auto const x = record.floats("x");
    for (std::size_t i = 0; i < 8; ++i) into.features[i] = x(i);
    if (errs("record")) flip(into.features[0]);
    if (errs("exponent") && there("TINY_WRONG_FROM")) flip(into.features[0], 0x40000000);
    finish(record, into, m);
  }

 private:
  static void flip(float& x, std::uint32_t bit = 1) {
    x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ bit);
  }
};

/// With TINY_WIDE: ten megabytes of parameters, more than one bucket of a sum.
struct wide : tiny {
  static constexpr auto network =
      nn::sequential(nn::features{.count = 8}, nn::dense{.units = 1500}, nn::relu{}, nn::dense{.units = 1600},
                     nn::relu{}, nn::batch_norm{}, nn::dense{.units = 3});
};

/// With TINY_SLOPE: a model whose evaluation depends on a hyperparameter, and tells the loss.
struct sloped : tiny {
  struct hyperparameters {
    edl::hyperparameter<float> rate{0.05f, "learning rate", 0, 1};
    edl::hyperparameter<float> slope{0, "slope below 0", 0, 4};
  };
  static constexpr auto network =
      nn::sequential(nn::features{.count = 8}, nn::dense{.units = 16},
                     nn::leaky_relu{.slope = edl::set_by<&hyperparameters::slope>}, nn::dense{.units = 3});
  static auto optimizer(hyperparameters const& set) { return edl::sgd{.learning_rate = set.rate}; }
  using metrics = edl::metrics<edl::accuracy, edl::mean_loss>;
};

/// With TINY_OPTIMIZER: one that needs whole variables.
struct by_lamb : tiny {
  static constexpr edl::lamb optimizer{.learning_rate = 0.02f, .weight_decay = 0.01f, .decay_biases = false};
};
struct by_muon : tiny {
  static constexpr edl::muon optimizer{
      .learning_rate = 0.02f, .adamw_for = "dense_1/kernel", .weight_decay = 0.01f};
};
/// With TINY_OPTIMIZER=planned: one whose rate reaches 0 at the end of the training, whatever its length.
struct planned : tiny {
  static constexpr edl::cosine_decay schedule{.rate = 0.1f, .steps = edl::share_of_training(1)};
  static constexpr edl::sgd optimizer{.momentum = 0.9f};
};
/// With TINY_OPTIMIZER=plateau: one whose rate is halved by each evaluation after the first, as no accuracy
/// is better by 1.
struct reduced : tiny {
  static constexpr edl::warmup<edl::reduce_on_plateau<edl::constant_rate>> schedule{
      .steps = 4,
      .then = {.then = {0.1f}, .metric = "accuracy", .factor = 0.5f, .patience = 1, .min_delta = 1}};
  static constexpr edl::sgd optimizer{.momentum = 0.9f};
};

/// With TINY_PREPARED: a model that looks at its data before it begins. The kernel that is not trained is the
/// mean of the records.
struct prepared {
  static constexpr auto network =
      nn::sequential(nn::image{.height = 2, .width = 2, .channels = 2},
                     nn::conv2d{.filters = 1, .kernel = 2, .train_kernel = false}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::lookahead<edl::sgd> optimizer{.optimizer = {.learning_rate = 0.05f}};

  static void feed(edl::example const& record, edl::sample<prepared>& into, edl::mode m) {
    into.features = record.floats("x", {2, 2, 2});
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }

  static void prepare(edl::first_samples const& data, edl::initial_variables& into) {
    auto const kernel = into["conv2d/kernel"];
    for (std::size_t i = 0; i < data.features.size(); ++i)
      kernel[i % kernel.size()] += data.features[i] / float(data.count);
  }
};

/// With TINY_TABLES: what it knows is in rows of two tables, one of lists with weights, whose rows come and
/// go; there is no bias.
struct tabled : tiny {
  static constexpr auto in = nn::inputs(
      nn::input<"coarse">(nn::served_embedding{.count = 8, .width = 3}),
      nn::input<"fine">(nn::served_embedding_bag{
          .most = 8,
          .width = 3,
          .combiner = nn::combiner::mean,
          .rows = {
              .admission = 2, .unused_steps = 300, .most_rows = 4096, .values = nn::row_values::bfloat16}}));
  static constexpr auto network =
      nn::sequential(in, nn::concat(in.from<"coarse">(nn::flatten{}), in.from<"fine">(nn::flatten{})),
                     nn::dense{.units = 16}, nn::relu{}, nn::dense{.units = 3});

  static void feed(edl::example const& record, edl::sample<tabled>& into, edl::mode m) {
    auto const x = record.floats("x");
    auto coarse = into.input<"coarse">();
    auto fine = into.input<"fine">();
    for (std::size_t i = 0; i < 8; ++i) {
      coarse[i] = i << 32 | std::uint64_t(x(i) > 0);
      fine.add(std::uint64_t(std::int64_t(std::floor(x(i) * 20))) * 8 + i, 1 + std::abs(x(i)));
    }
    finish(record, into, m);
  }
};

/// With TINY_HOOKS: each call of a hook adds a line to that file. TINY_HOOKS_FAIL: every call throws.
/// TINY_HOOKS_STOP: the version from which on an evaluation ends the job.
struct hooked : tiny {
  static void on_step(edl::step_report const& of) {
    note("step " + std::to_string(of.version) + " worker " + std::to_string(of.worker) + " records " +
         std::to_string(of.records) + (of.loss > 0 ? "" : " without a loss") + "\n");
  }
  static std::string on_evaluation(edl::evaluation_report const& of) {
    note("evaluation " + std::to_string(of.version) + " records " + std::to_string(of.records) +
         (of.metric("accuracy") > 0.5 ? " good\n" : " bad\n"));
    char const* const stop = std::getenv("TINY_HOOKS_STOP");
    return stop && of.version >= std::stoull(stop) ? "it is good enough" : "";
  }

 private:
  static void note(std::string const& line) {
    std::ofstream(std::getenv("TINY_HOOKS"), std::ios::app) << line;
    if (std::getenv("TINY_HOOKS_FAIL") && line.starts_with("step"))
      throw std::runtime_error("no room for notes");
    if (std::getenv("TINY_HOOKS_FAIL")) throw 1;
  }
};

/// TINY_LATE: the second worker does nothing until that file is there.
static void come_late() {
  char const* const gate = std::getenv("TINY_LATE");
  char const* const worker = std::getenv("WORKER_ID");
  if (!gate || !worker || worker != std::string_view("1")) return;
  while (!std::filesystem::exists(gate)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

/// TINY_SYNCS: a file that gets a line for each file and directory that this program forces to the disk.
extern "C" int fsync(int fd) {
  if (char const* list = std::getenv("TINY_SYNCS"))
    std::ofstream(list, std::ios::app)
        << std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string() + '\n';
  static auto const next = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"));
  return next(fd);
}

int main(int argc, char** argv) {
  come_late();
  if (std::getenv("TINY_WRONG")) return edl::run<wrong>(argc, argv);
  if (std::getenv("TINY_TABLES")) return edl::run<tabled>(argc, argv);
  if (char const* by = std::getenv("TINY_OPTIMIZER"); by && by == std::string_view("planned"))
    return edl::run<planned>(argc, argv);
  else if (by && by == std::string_view("plateau"))
    return edl::run<reduced>(argc, argv);
  else if (by)
    return by == std::string_view("lamb") ? edl::run<by_lamb>(argc, argv) : edl::run<by_muon>(argc, argv);
  if (std::getenv("TINY_HOOKS")) return edl::run<hooked>(argc, argv);
  if (std::getenv("TINY_SLOPE")) return edl::run<sloped>(argc, argv);
  if (std::getenv("TINY_PREPARED")) return edl::run<prepared>(argc, argv);
  return std::getenv("TINY_WIDE") ? edl::run<wide>(argc, argv) : edl::run<tiny>(argc, argv);
}
