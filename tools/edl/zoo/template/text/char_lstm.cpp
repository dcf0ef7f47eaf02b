// SPDX-License-Identifier: Apache-2.0
// An LSTM of three layers that says which character comes next (Karpathy, "The unreasonable effectiveness of recurrent
// neural networks", 2015). Bytes are ids: train it with --training_data=text:128:FILE.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct text {
  static constexpr int length = 128, width = 512, characters = 256;

  static constexpr auto network = nn::sequential(
      nn::ids{.count = length},
      nn::embedding{.vocabulary = characters, .width = width, .initial = nn::normal{.stddev = 1}},
      nn::repeat<3>(nn::sequential(nn::lstm{.units = width}, nn::dropout{.rate = 0.2f})),
      nn::dense{.units = characters, .each_place = true});
  static constexpr nn::sequence_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 2e-3};
  using metrics = edl::metrics<edl::mean_loss, edl::accuracy>;

  static void feed(edl::example const& record, edl::sample<text>& into, edl::mode) {
    auto const bytes = record.bytes("text");  // length + 1 of them, as a rule
    into.features.fill(0);  // a short one has fewer
    for (std::size_t i = 0; i < length && i + 1 < bytes.size(); ++i) {
      into.features(i) = float(std::uint8_t(bytes[i]));
      into.label(i) = std::uint8_t(bytes[i + 1]);
    }
  }
};

int main(int argc, char** argv) { return edl::run<text>(argc, argv); }
