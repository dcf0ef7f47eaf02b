// SPDX-License-Identifier: Apache-2.0
// Heart disease (UCI, doi 10.24432/C52P4X): numbers, buckets of ages and a vocabulary of one column. The CSV
// file has a row of names, as TensorFlow's tutorials use it.
#include <array>
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct heart {
  struct number {
    char const* name;
    edl::features::normalization of;
  };
  static constexpr std::array<number, 5> numbers{{{"trestbps", {131, 18}},
                                                  {"chol", {246, 52}},
                                                  {"thalach", {149, 23}},
                                                  {"oldpeak", {1, 1.2f}},
                                                  {"slope", {1.6f, 0.6f}}}};
  static constexpr edl::features::discretization age{{18, 25, 30, 35, 40, 45, 50, 55, 60, 65}};
  static constexpr edl::features::string_lookup thal{{"normal", "fixed", "reversible"}};
  static constexpr edl::features::id_ranges ids{age, thal};

  static constexpr auto in = nn::inputs(nn::input<"numbers">(nn::features{.count = 5}),
                                        nn::input<"ids">(nn::ids{.count = 2}));
  static constexpr auto network = nn::sequential(
      in, nn::concat(in.from<"numbers">(),
                     in.from<"ids">(nn::embedding{.vocabulary = ids.size(), .width = 8}, nn::flatten{})),
      nn::dense{.units = 16}, nn::relu{}, nn::dense{.units = 16}, nn::relu{}, nn::dense{.units = 1});
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 3e-3};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;

  static void feed(edl::example const& record, edl::sample<heart>& into, edl::mode m) {
    auto row = into.input<"numbers">();
    for (std::size_t i = 0; i < numbers.size(); ++i) row(i) = numbers[i].of(record.floating(numbers[i].name));
    auto two = into.input<"ids">();
    two(0) = float(ids(0, age(record.floating("age"))));
    two(1) = float(ids(1, thal(record.bytes("thal"))));
    if (m != edl::mode::prediction) into.label = record.floating("target");
  }
};

int main(int argc, char** argv) { return edl::run<heart>(argc, argv); }
