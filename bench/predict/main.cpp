// SPDX-License-Identifier: Apache-2.0
// Microseconds of one call of a predictor on one core, `feed` included: the least, the median and the 99th
// percentile of many.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <edl/edl.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "edl/base/checkpoint/model_file.hpp"

namespace {

namespace nn = edl::nn;

template <int... Units>
struct mlp {
  static constexpr auto network =
      nn::sequential(nn::features{.count = 784}, nn::sequential(nn::dense{.units = Units}, nn::relu{})...,
                     nn::dense{.units = 10});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<mlp>& into, edl::mode m) {
    into.features = record.floats("image") / 255.0f;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

template <class Model>
void measure(char const* name, std::string const& directory) {
  using network = edl::model<Model::network, edl::cpu>;
  auto const layout = network::layout();
  std::vector<float> values(layout.size());
  network::initialise(1, 0, values);
  std::string const path = directory + "/model.safetensors";
  edl::checkpoint::export_model(path, layout, values, {}, 1);
  for (auto const precision : {edl::precision::float32, edl::precision::int8})
    for (std::size_t const batch : {1, 8, 64}) {
      if (!edl::multiplies(precision)) continue;
      edl::predictor<Model> const p(path, {.precision = precision});
      std::vector<edl::example> records(batch);
      for (auto& r : records) {
        edl::example_builder to(r);
        std::ranges::fill(to.floats("image", 784), 100.0f);
      }
      std::vector<double> all;
      for (int i = 0; i < 4000; ++i) {
        auto const begin = std::chrono::steady_clock::now();
        p(records);
        all.push_back(
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
      }
      std::ranges::sort(all);
      fmt::print("{:22} {:7} batch {:3}: least {:7.1f}, median {:7.1f}, 99 % {:7.1f} microseconds\n", name,
                 names(precision)[std::size_t(precision)], batch, all.front(), all[all.size() / 2],
                 all[all.size() * 99 / 100]);
    }
}

}  // namespace

int main() {
  std::string directory = (std::filesystem::temp_directory_path() / "bench-predict-XXXXXX").string();
  if (!::mkdtemp(directory.data())) return 1;
  measure<mlp<128>>("MLP 784-128-10", directory);
  measure<mlp<512, 512>>("MLP 784-512-512-10", directory);
  std::filesystem::remove_all(directory);
}
