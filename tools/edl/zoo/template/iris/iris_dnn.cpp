// SPDX-License-Identifier: Apache-2.0
// Iris (Fisher, 1936): four lengths of a flower say which of three kinds it is. The CSV file has the columns
// sepal_length, sepal_width, petal_length, petal_width (in cm) and class (0, 1 or 2).
#include <array>
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct iris {
  static constexpr std::array<char const*, 4> columns{"sepal_length", "sepal_width", "petal_length",
                                                      "petal_width"};
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 10}, nn::relu{},
                                                 nn::dense{.units = 10}, nn::relu{}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 0.01};
  using metrics = edl::metrics<edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<iris>& into, edl::mode m) {
    for (std::size_t i = 0; i < columns.size(); ++i) into.features(i) = record.floating(columns[i]) - 4;
    if (m != edl::mode::prediction) into.label = record.integer("class");
  }
};

int main(int argc, char** argv) { return edl::run<iris>(argc, argv); }
