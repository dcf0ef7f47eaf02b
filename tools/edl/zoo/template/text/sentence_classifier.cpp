// SPDX-License-Identifier: Apache-2.0
// Says of a sentence which of two classes it is. Words become ids by a hash; 0 fills up short sentences, and `masked`
// passes it over. A minibatch is as long as the least of the lengths that holds its longest sentence. Records have a
// text, with blanks between words, and a label: train it with --training_data=FILE.jsonl.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct sentence {
  static constexpr int length = 64, width = 32;
  static constexpr edl::features::hashing words{.buckets = 5'000};

  static constexpr auto network = nn::sequential(
      nn::ids{.count = length, .lengths = {8, 16, 32}},
      nn::masked(nn::embedding{.vocabulary = int(words.size()) + 1, .width = width}, nn::dropout{.rate = 0.1f},
                 nn::bidirectional(nn::lstm{.units = 32}),
                 nn::residual(nn::sequential(nn::layer_norm{}, nn::attention{.heads = 4, .dropout = 0.1f})),
                 nn::concat(nn::global_average_pool{}, nn::global_max_pool{})),
      nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 3e-3f};

  static void feed(edl::example const& record, edl::sample<sentence>& into, edl::mode m) {
    std::size_t place = 0;
    for (std::string_view const word : edl::features::pieces(record.bytes("text"), ' '))
      if (place < length) into.features(place++) = float(1 + words(word));
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

int main(int argc, char** argv) { return edl::run<sentence>(argc, argv); }
