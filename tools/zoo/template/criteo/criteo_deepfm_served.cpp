// SPDX-License-Identifier: Apache-2.0
// DeepFM (Guo et al., 2017) on click logs in the format of Criteo's challenge, with embeddings that are rows
// of tables. Every value that a column ever has gets a row of its own, however many there are; no vocabulary
// is stated. `synthetic:clicks` are drawn ones.
#include <cmath>
#include <edl/edl.hpp>
#include <string>

namespace nn = edl::nn;

struct criteo {
  static constexpr int counts = 13, columns = 26;

  static constexpr auto in =
      nn::inputs(nn::input<"counts">(nn::features{.count = counts}),
                 nn::input<"weights">(nn::served_embedding_bag{.most = columns, .width = 1}),
                 nn::input<"vectors">(nn::served_embedding{.count = columns, .width = 8}));
  static constexpr auto deep = nn::sequential(nn::flatten{}, nn::dense{.units = 64}, nn::relu{},
                                              nn::dense{.units = 32}, nn::relu{}, nn::dense{.units = 1});
  static constexpr auto network =
      nn::sequential(in, nn::sum(in.from<"counts">(nn::dense{.units = 1}), in.from<"weights">(nn::identity{}),
                                 in.from<"vectors">(nn::sum(nn::factorization_machine{}, deep))));
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 2e-3};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;

  static void feed(edl::example const& record, edl::sample<criteo>& into, edl::mode m) {
    auto numbers = into.input<"counts">();
    for (std::size_t i = 0; i < counts; ++i) {
      std::string const name = 'i' + std::to_string(i + 1);
      numbers(i) = record.contains(name) ? std::log1p(std::max(0.0f, record.floating(name))) / 3 : 0;
    }
    auto vectors = into.input<"vectors">();
    auto weights = into.input<"weights">();
    for (std::size_t i = 0; i < columns; ++i) {
      std::string const name = 'c' + std::to_string(i + 1);
      vectors[i] = edl::features::fingerprint(name + '=' + std::string(record.bytes(name)));
      weights.add(vectors[i]);
    }
    if (m != edl::mode::prediction) into.label = record.floating("label");
  }
};

int main(int argc, char** argv) { return edl::run<criteo>(argc, argv); }
