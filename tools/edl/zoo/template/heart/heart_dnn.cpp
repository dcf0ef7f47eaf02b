// SPDX-License-Identifier: Apache-2.0
// Heart disease (UCI, doi 10.24432/C52P4X): numbers, buckets of ages and a vocabulary of one column. The CSV
// file has a row of names, as TensorFlow's tutorials use it.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct heart {
  // A file that the variable EDL_COLUMNS names says it anew without a build, with as many numbers and ids.
  static constexpr char const* columns = R"(
trestbps | normalization subtract=131 divide=18
chol     | normalization subtract=246 divide=52
thalach  | normalization subtract=149 divide=23
oldpeak  | normalization subtract=1 divide=1.2
slope    | normalization subtract=1.6 divide=0.6
age      | discretization boundaries=18,25,30,35,40,45,50,55,60,65
thal     | string_lookup words=normal,fixed,reversible
)";
  static constexpr edl::features::pipeline_room room{.numbers = 5, .ids = 2, .vocabulary = 32};

  static constexpr auto in = nn::inputs(nn::input<"numbers">(nn::features{.count = int(room.numbers)}),
                                        nn::input<"ids">(nn::ids{.count = int(room.ids)}));
  static constexpr auto network = nn::sequential(
      in, nn::concat(in.from<"numbers">(),
                     in.from<"ids">(nn::embedding{.vocabulary = int(room.vocabulary), .width = 8}, nn::flatten{})),
      nn::dense{.units = 16}, nn::relu{}, nn::dense{.units = 16}, nn::relu{}, nn::dense{.units = 1});
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 3e-3};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;

  static void feed(edl::example const& record, edl::sample<heart>& into, edl::mode m) {
    static auto const of = edl::features::pipeline::chosen(columns, room);
    of.write_numbers(record, into.input<"numbers">());
    of.write_ids(record, into.input<"ids">());
    if (m != edl::mode::prediction) into.label = record.floating("target");
  }
};

int main(int argc, char** argv) { return edl::run<heart>(argc, argv); }
