// SPDX-License-Identifier: Apache-2.0
// Wide & deep (Cheng et al., 2016) on click logs in the format of Criteo's challenge: a weight for each id beside
// a perceptron over vectors. `synthetic:clicks` are drawn ones.
#include <cmath>
#include <edl/edl.hpp>
#include <string>

namespace nn = edl::nn;

struct criteo {
  static constexpr int counts = 13, columns = 26;
  static constexpr edl::features::hashing id{.buckets = 10'000};
  static constexpr edl::features::id_ranges<columns> ids{id};

  static constexpr auto in = nn::inputs(nn::input<"counts">(nn::features{.count = counts}),
                                        nn::input<"ids">(nn::ids{.count = columns}));
  static constexpr auto wide = nn::sum(in.from<"counts">(nn::dense{.units = 1}),
                                       in.from<"ids">(nn::embedding_bag{.vocabulary = ids.size(), .width = 1}));
  static constexpr auto deep = nn::sequential(
      nn::concat(in.from<"counts">(),
                 in.from<"ids">(nn::embedding{.vocabulary = ids.size(), .width = 8}, nn::flatten{})),
      nn::dense{.units = 64}, nn::relu{}, nn::dense{.units = 32}, nn::relu{}, nn::dense{.units = 1});
  static constexpr auto network = nn::sequential(in, nn::sum(wide, deep));
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 2e-3};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;

  static void feed(edl::example const& record, edl::sample<criteo>& into, edl::mode m) {
    auto numbers = into.input<"counts">();
    for (std::size_t i = 0; i < counts; ++i) {
      std::string const name = 'i' + std::to_string(i + 1);
      numbers(i) = record.contains(name) ? std::log1p(std::max(0.0f, record.floating(name))) / 3 : 0;
    }
    auto row = into.input<"ids">();
    for (std::size_t i = 0; i < columns; ++i)
      row(i) = float(ids(i, id(record.bytes('c' + std::to_string(i + 1)))));
    if (m != edl::mode::prediction) into.label = record.floating("label");
  }
};

int main(int argc, char** argv) { return edl::run<criteo>(argc, argv); }
