// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <variant>

#include "edl/core/random.hpp"
#include "edl/core/shape.hpp"

namespace edl::nn {

/// The fan-in and fan-out of a weight, as Keras counts them.
struct fans {
  double in = 1, out = 1;

  constexpr fans() = default;
  constexpr fans(double inputs, double outputs) : in(inputs), out(outputs) {}
  /// For a variable whose last two extents are inputs and outputs, and whose first ones are a window.
  constexpr explicit fans(extents const& e) {
    if (e.rank == 0) return;
    auto const rank = std::size_t(e.rank);
    double window = 1;
    for (std::size_t i = 0; i + 2 < rank; ++i) window *= e.sizes[i];
    in = window * e.sizes[rank < 2 ? 0 : rank - 2];
    out = window * e.sizes[rank - 1];
  }
};

/// Uniform in ±√(6 / (in + out)) (Glorot and Bengio, 2010): the default for kernels.
struct glorot_uniform {};
/// Truncated normal of variance 2 / (in + out).
struct glorot_normal {};
/// Uniform in ±√(6 / in) (He et al., 2015).
struct he_uniform {};
/// Truncated normal of variance 2 / in.
struct he_normal {};
struct uniform {
  double low = -0.05, high = 0.05;
};
struct normal {
  double mean = 0, stddev = 0.05;
};
/// A normal distribution; values beyond two standard deviations are redrawn.
struct truncated_normal {
  double mean = 0, stddev = 0.05;
};
struct constant {
  double value = 0;
};
/// For a convolution: the first filters pass one channel each, as far as there are filters or channels. They
/// have a one in the middle of the window, and zeros elsewhere (Zagoruyko and Komodakis, "DiracNets", 2017).
/// The others are uniform in ±1 / √in, as in PyTorch.
struct pass_through {};

using initializer = std::variant<glorot_uniform, glorot_normal, he_uniform, he_normal, uniform, normal,
                                 truncated_normal, constant, pass_through>;

/// Elements [first, first + to.size()) of a variable. Element i depends only on the stream and i, so any part
/// of a variable can be drawn by itself. Thread safety: safe.
template <class T>
void fill(initializer const& how, extents const& dims, random_stream const& random, std::size_t first,
          std::span<T> to);

}  // namespace edl::nn

#ifdef EDL_HEADER_ONLY
#include "edl/compute/nn/initializer.ipp"
#endif
