// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <edl/edl.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../train/networks.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/compute/onnx/network.hpp"

namespace bench {

inline constexpr auto small_mlp =
    nn::sequential(nn::features{.count = 784}, nn::dense{.units = 128}, nn::relu{}, nn::dense{.units = 10});

template <auto const& Net>
struct served {
  static constexpr auto network = Net;
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::sgd optimizer{.learning_rate = 0.01f};
  static void feed(edl::example const& record, edl::sample<served>& into, edl::mode m) {
    if constexpr (Net.input.height > 1)
      into.features = record.floats("image", {std::size_t(Net.input.height), std::size_t(Net.input.width),
                                              std::size_t(Net.input.channels)});
    else
      into.features = record.floats("image");
    if (m != edl::mode::prediction) into.label = record.integer("label");
    static char const* const slowly = std::getenv("BENCH_FEED_US");  // so that a job takes its time
    if (slowly && m == edl::mode::training)
      std::this_thread::sleep_for(std::chrono::microseconds(std::atoi(slowly)));
  }
};

/// A network with random variables, as both servers read it.
struct served_model {
  std::string name;
  std::size_t values;  ///< of a record
  int (*run)(int, char**);
  void (*write)(std::string const& path);  ///< PATH.safetensors and PATH.onnx
};

template <auto const& Net>
served_model one_model(std::string name) {
  return {std::move(name), std::size_t(Net.input.size()),
          [](int argc, char** argv) { return edl::run<served<Net>>(argc, argv); },
          [](std::string const& path) {
            using network = edl::model<Net, edl::any_device>;
            auto const layout = network::layout();
            std::vector<float> values(layout.size());
            network::initialise(1, 0, values);
            edl::checkpoint::export_model(path + ".safetensors", layout, values, {}, 1);
            edl::onnx::graph g(layout, values);
            edl::onnx::add_network(g, Net, {});
            g.write(path + ".onnx");
          }};
}

}  // namespace bench
