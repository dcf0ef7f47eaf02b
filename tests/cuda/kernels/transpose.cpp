// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/board.hpp"

namespace transpose_test {

TEST_CASE("kernels of convolutions, for cuDNN and back") {
  struct matrix {
    std::size_t inputs, outputs;
  };
  in_all_ways([](bool half) {
    gpu g(half);
    for (auto const [inputs, outputs] :
         {matrix{1, 1}, matrix{27, 64}, matrix{576, 65}, matrix{100, 3}, matrix{32, 32}}) {
      CAPTURE(inputs);
      CAPTURE(outputs);
      std::size_t const n = inputs * outputs;
      auto const weights = gpu(true).draw<float>(n, 1);  // in either precision
      std::vector<float> turned(n);
      std::vector<std::uint16_t> small(n);
      for (std::size_t i = 0; i < inputs; ++i)
        for (std::size_t k = 0; k < outputs; ++k) turned[k * inputs + i] = weights[i * outputs + k];
      std::transform(weights.begin(), weights.end(), small.begin(), edl::to_bfloat16);
      void* const to = g.activations(n);
      kernels::transpose_weights(g.q, inputs, outputs, g.put(weights), false, to);
      CHECK(g.get_activations(to, n) == turned);
      kernels::transpose_weights(g.q, inputs, outputs, g.put(small), true, to);
      CHECK(g.get_activations(to, n) == turned);
      auto* const back = g.room<float>(n);
      kernels::transpose_gradients(g.q, inputs, outputs, g.put_activations(turned), back);
      CHECK(g.get(back, n) == weights);
    }
  });
}

}  // namespace transpose_test
