// SPDX-License-Identifier: Apache-2.0
// A model of numbers, ids of any number, and texts, with two heads: for the test of the Python module.
#include <edl/edl.hpp>

namespace nn = edl::nn;

struct mixed {
  static constexpr auto in = nn::inputs(nn::input<"ids">(nn::served_embedding_bag{.most = 40, .width = 4}),
                                        nn::input<"x">(nn::features{.count = 2}));
  static constexpr auto network =
      nn::sequential(in, nn::concat(in.from<"ids">(nn::flatten{}), in.from<"x">(nn::dense{.units = 4})),
                     nn::dense{.units = 4});
  static constexpr auto loss = nn::heads(nn::head<"kind", 3>(nn::softmax_cross_entropy{}),
                                         nn::head<"first", 1>(nn::sigmoid_cross_entropy{}));
  static constexpr edl::adam optimizer{.learning_rate = 0.05f};

  static void feed(edl::example const& record, edl::sample<mixed>& into, edl::mode m) {
    into.input<"x">() = record.floats("x");
    auto ids = into.input<"ids">();
    for (char const c : record.bytes("text")) ids.add(1000 + std::uint64_t(std::uint8_t(c)));
    for (std::int64_t const id : record.integer_values("ids")) ids.add(std::uint64_t(id));
    if (m == edl::mode::prediction) return;
    into.head<"kind">() = float(record.integer("label"));
    into.head<"first">() = record.integer("label") == 0;
  }
};

int main(int argc, char** argv) { return edl::run<mixed>(argc, argv); }
