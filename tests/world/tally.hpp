// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <edl/edl.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

/// Models that count what they are trained with: each record adds exactly 1 to the weight of its own, so that
/// a lost or repeated one shows. Their data is of the form "tally:RECORDS/SHARDS".
namespace tally {

inline constexpr int weights = 64;  ///< record i adds to weight i % 64
inline constexpr int minibatch =
    16;  ///< the flag that goes with the rate: full minibatches add 1 for a record

struct source final : edl::data::source {
  struct one final : edl::data::reader {
    explicit one(std::uint64_t n) : each(n) {}
    void read(std::size_t shard, std::uint64_t record, edl::example& into) override {
      edl::example_builder made(into);
      made.integer("record", std::int64_t(shard * each + record));
    }
    std::uint64_t each;
  };
  source(std::uint64_t records, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) all.push_back({"part-" + std::to_string(i), records / count});
  }
  std::vector<edl::data::shard> const& shards() const override { return all; }
  std::unique_ptr<edl::data::reader> open() const override { return std::make_unique<one>(all[0].records); }
  std::vector<edl::data::shard> all;
};

inline std::unique_ptr<edl::data::source> open_tally(std::string const& path,
                                                     edl::data::source_options const&) {
  if (!path.starts_with("tally:")) return nullptr;
  char* end = nullptr;
  std::uint64_t const records = std::strtoull(path.c_str() + 6, &end, 10);
  return std::make_unique<source>(records, std::strtoull(end + 1, nullptr, 10));
}

/// Its derivative by each output is -1. A minibatch takes TALLY_BATCH_US of time.
struct count_up {
  using label = float;
  static constexpr bool class_labels = false;
  static constexpr std::size_t labels(edl::shape) { return 1; }
  static constexpr bool valid(float, edl::shape) { return true; }
  double operator()(edl::shape output, int batch, edl::view<float> outputs, edl::view<float>,
                    std::span<float> gradients) const {
    if (char const* us = std::getenv("TALLY_BATCH_US"))
      std::this_thread::sleep_for(std::chrono::microseconds(std::atoll(us)));
    double sum = 0;
    for (float o : outputs) sum -= o;
    for (float& g : gradients) g = -1.0f / float(batch);
    static_cast<void>(output);
    return batch ? sum / batch : 0;
  }
};

/// Weights in a dense layer.
struct dense_model {
  static constexpr auto network = edl::nn::sequential(
      edl::nn::features{.count = weights},
      edl::nn::dense{.units = 1, .use_bias = false, .kernel_initializer = edl::nn::constant{0}});
  static constexpr count_up loss{};
  static constexpr edl::sgd optimizer{.learning_rate = float(minibatch)};
  using metrics = edl::metrics<edl::mean_loss>;
  static std::unique_ptr<edl::data::source> open(std::string const& path,
                                                 edl::data::source_options const& o) {
    return open_tally(path, o);
  }
  template <class Sample>
  static void feed(edl::example const& record, Sample& into, edl::mode) {
    for (int i = 0; i < weights; ++i)
      into.features(i) = i == record.integer("record") % weights ? 1.0f : 0.0f;
    into.label = 0;
  }
};

}  // namespace tally
