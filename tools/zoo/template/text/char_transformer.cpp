// SPDX-License-Identifier: Apache-2.0
// A transformer that says which character comes next: that of nanoGPT for characters, whose order of layers is GPT-2's
// (Radford et al., "Language models are unsupervised multitask learners", 2019). Bytes are ids: train it with
// --training_data=text:256:FILE.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct text {
  static constexpr int length = 256, width = 384, heads = 6, blocks = 6, characters = 256;
  static constexpr nn::dropout dropout{.rate = 0.2f};

  static constexpr auto attention =
      nn::sequential(nn::layer_norm{}, nn::attention{.heads = heads, .causal = true}, dropout);
  static constexpr auto perceptron =
      nn::sequential(nn::layer_norm{}, nn::dense{.units = 4 * width, .each_place = true}, nn::gelu{},
                     nn::dense{.units = width, .each_place = true}, dropout);
  static constexpr auto network =
      nn::sequential(nn::ids{.count = length}, nn::embedding{.vocabulary = characters, .width = width},
                     nn::positions{.most = length}, dropout,
                     nn::repeat<blocks>(nn::sequential(nn::residual(attention), nn::residual(perceptron))),
                     nn::layer_norm{}, nn::dense{.units = characters, .each_place = true});
  static constexpr nn::sequence_cross_entropy loss{};
  static constexpr edl::adam optimizer{.beta_2 = 0.99, .weight_decay = 0.1};
  static constexpr edl::warmup<edl::cosine_decay> schedule{.steps = 100,
                                                           .then = {.rate = 1e-3f, .steps = 5000, .end = 1e-4f}};
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
