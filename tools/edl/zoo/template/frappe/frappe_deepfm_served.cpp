// SPDX-License-Identifier: Apache-2.0
// DeepFM (Guo et al., 2017) on frappe's log of used apps, in libFM's format: ten ids, and whether the app was
// used (1) or not (-1 or 0). Its embeddings are rows of tables, which need no vocabulary.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct frappe {
  static constexpr int columns = 10;

  static constexpr auto in =
      nn::inputs(nn::input<"weights">(nn::served_embedding_bag{.most = columns, .width = 1}),
                 nn::input<"vectors">(nn::served_embedding{.count = columns, .width = 16}));
  static constexpr auto deep =
      nn::sequential(nn::flatten{}, nn::dense{.units = 64}, nn::relu{}, nn::dense{.units = 1});
  static constexpr auto network =
      nn::sequential(in, nn::sum(in.from<"weights">(nn::identity{}),
                                 in.from<"vectors">(nn::sum(nn::factorization_machine{}, deep))));
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 1e-3};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;

  static void feed(edl::example const& record, edl::sample<frappe>& into, edl::mode m) {
    auto const ids = record.integer_values("ids");
    if (ids.size() != columns) throw edl::data_error("expected ten ids in a row of frappe's");
    auto weights = into.input<"weights">();
    auto vectors = into.input<"vectors">();
    for (std::size_t i = 0; i < columns; ++i) {
      vectors[i] = std::uint64_t(ids[i]);
      weights.add(vectors[i]);
    }
    if (m != edl::mode::prediction) into.label = record.floating("label") > 0;
  }
};

int main(int argc, char** argv) { return edl::run<frappe>(argc, argv); }
