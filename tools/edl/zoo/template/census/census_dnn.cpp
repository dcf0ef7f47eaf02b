// SPDX-License-Identifier: Apache-2.0
// A perceptron on the census data of UCI (doi 10.24432/C5XW20): does a person earn more than 50,000 dollars a year?
// Four numbers, and a vector for each of eight categories by their hashes.
#include <array>
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct census {
  static constexpr std::array<char const*, 4> numbers{"age", "capital_gain", "capital_loss", "hours_per_week"};
  static constexpr std::array<edl::features::normalization, 4> normal{
      {{38.6f, 13.6f}, {1078, 7385}, {87, 403}, {40.4f, 12.3f}}};
  static constexpr std::array<char const*, 8> fields{"workclass",  "education",     "marital_status",
                                                     "occupation", "relationship",  "race",
                                                     "sex",        "native_country"};
  static constexpr edl::features::hashing field{.buckets = 64};
  static constexpr edl::features::id_ranges<8> ids{field};

  static constexpr auto in = nn::inputs(nn::input<"numbers">(nn::features{.count = 4}),
                                        nn::input<"categories">(nn::ids{.count = 8}));
  static constexpr auto network = nn::sequential(
      in, nn::concat(in.from<"numbers">(),
                     in.from<"categories">(nn::embedding{.vocabulary = ids.size(), .width = 16}, nn::flatten{})),
      nn::dense{.units = 16}, nn::relu{}, nn::dense{.units = 16}, nn::relu{}, nn::dense{.units = 1});
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 1e-3};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;

  static void feed(edl::example const& record, edl::sample<census>& into, edl::mode m) {
    auto row = into.input<"numbers">();
    for (std::size_t i = 0; i < numbers.size(); ++i) row(i) = normal[i](record.floating(numbers[i]));
    auto categories = into.input<"categories">();
    for (std::size_t i = 0; i < fields.size(); ++i)
      categories(i) = float(ids(i, field(record.bytes(fields[i]))));
    if (m != edl::mode::prediction) into.label = record.bytes("label") == ">50K";
  }
};

int main(int argc, char** argv) { return edl::run<census>(argc, argv); }
