// SPDX-License-Identifier: Apache-2.0
// DeepFM (Guo et al., 2017) on frappe's log of used apps, in libFM's format: ten ids, and whether the app was
// used (1) or not (-1 or 0).
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct frappe {
  static constexpr int columns = 10, vocabulary = 5'383;

  static constexpr auto deep =
      nn::sequential(nn::flatten{}, nn::dense{.units = 64}, nn::relu{}, nn::dense{.units = 1});
  static constexpr auto network =
      nn::sequential(nn::ids{.count = columns},
                     nn::sum(nn::embedding_bag{.vocabulary = vocabulary, .width = 1},
                             nn::sequential(nn::embedding{.vocabulary = vocabulary, .width = 16},
                                            nn::sum(nn::factorization_machine{}, deep))));
  static constexpr nn::sigmoid_cross_entropy loss{};
  static constexpr edl::adam optimizer{.learning_rate = 1e-3};
  using metrics = edl::metrics<edl::accuracy, edl::auc>;

  static void feed(edl::example const& record, edl::sample<frappe>& into, edl::mode m) {
    auto const ids = record.integer_values("ids");
    if (ids.size() != columns) throw edl::data_error("expected ten ids in a row of frappe's");
    for (std::size_t i = 0; i < columns; ++i) into.features(i) = float(ids[i]);
    if (m != edl::mode::prediction) into.label = record.floating("label") > 0;
  }
};

int main(int argc, char** argv) { return edl::run<frappe>(argc, argv); }
