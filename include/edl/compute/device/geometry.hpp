// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "edl/compute/device/activation.hpp"
#include "edl/core/shape.hpp"

namespace edl {

/// On which sides of an operation samples and their gradients are narrow: bfloat16 numbers, two in the place
/// of a scalar. Else each is a scalar. A sample that is narrow has an even number of elements.
struct bfloat16_io {
  bool in = false, out = false;

  constexpr bool any() const { return in || out; }
  friend constexpr bool operator==(bfloat16_io const&, bfloat16_io const&) = default;
};

/// Scalars that so many elements take.
constexpr std::size_t scalars_of(std::size_t elements, bool narrow) {
  return narrow ? (elements + 1) / 2 : elements;
}

/// And back, where a sample that is narrow has an even number of elements.
constexpr std::size_t elements_of(std::size_t scalars, bool narrow) { return narrow ? 2 * scalars : scalars; }

/// A pooling window that slides over one sample. `before` is how far it starts outside, above and to the
/// left.
struct pool_geometry {
  shape in, out;
  extent window, stride, before;
  bfloat16_io narrow{};
};

/// A batch normalisation and what is done with it in one pass over memory. Its input may be what a relu left,
/// whose gradient is then taken along. Its result may go through an activation. Unless that is `curved`,
/// it may then be pooled by the greatest of windows that lie side by side (`window` > 1). What does not fill
/// a window is left out. Beta counts `shift_gain` times. What is added to the result may be narrow, too.
struct norm_chain {
  shape in;
  bool after_relu = false;
  activation f = activation::none;
  int window = 1;
  float shift_gain = 1;
  bfloat16_io narrow{};
  bool narrow_more = false;

  constexpr shape out() const { return {in.height / window, in.width / window, in.channels}; }
};

/// A convolution of one sample, channels last. The kernel is {height, width, in.channels / groups,
/// out.channels}.
struct conv_geometry {
  shape in, out;
  extent kernel, stride, before;
  int groups = 1;
  bfloat16_io narrow{};

  friend constexpr bool operator==(conv_geometry const&, conv_geometry const&) = default;

  /// Elements of the input that one output of a group sees.
  constexpr std::size_t patch() const {
    return std::size_t(kernel.height) * std::size_t(kernel.width) * std::size_t(in.channels / groups);
  }
  constexpr std::size_t positions() const { return std::size_t(out.height) * std::size_t(out.width); }

  /// The input, seen as a matrix of positions, already is the matrix of patches.
  constexpr bool pointwise() const {
    return groups == 1 && kernel == extent{1} && stride == extent{1} && before == extent{0};
  }

  /// How many samples go into one product: enough positions to keep it efficient, few enough to stay in a
  /// cache.
  constexpr int samples_at_once(int batch) const {
    std::size_t const enough = 512 / (positions() ? positions() : 1);
    return enough < 1 ? 1 : enough > std::size_t(batch) ? batch : int(enough);
  }
};

/// A table's rows, which ids name: so many of them in a sample.
struct embedding_geometry {
  int vocabulary = 0, width = 0;  ///< rows, and numbers of a row
  int ids = 0;

  /// Float32 holds every whole number up to here.
  static constexpr int most = 1 << 24;

  /// Whether there is a row of this number.
  template <class T>
  constexpr bool has(T id) const {
    return id >= T(0) && id < T(vocabulary) && T(int(id)) == id;
  }
};

/// Self-attention over the places of one sample. A place has a query, a key and a value of `width` numbers
/// for each of `heads`. All its queries come first, then its keys, then its values.
struct attention_geometry {
  int places = 0, heads = 0, width = 0;
  bool causal = false;    ///< a place sees itself and what is before it
  float rotary_base = 0;  ///< of the angles by which queries and keys are turned; 0: they are not

  constexpr std::size_t channels() const { return std::size_t(heads) * std::size_t(width); }
};

/// Attention of the places of one sample, which have queries, to `keys` places of another, which have keys
/// and values. Of those all keys of a place come first.
struct cross_attention_geometry {
  int places = 0, keys = 0, heads = 0, width = 0;

  constexpr std::size_t channels() const { return std::size_t(heads) * std::size_t(width); }
};

/// So many products of matrices of these extents, `rows` × `inner` by `inner` × `columns`. What is turned
/// lies transposed in memory.
struct product_geometry {
  std::size_t products = 1, rows = 1, inner = 1, columns = 1;
  bool turned_left = false, turned_right = false;
};

/// What a recurrent layer is made of.
enum class recurrence {
  lstm,  ///< four gates: input, forget, candidate, output
  gru    ///< three: update, reset, candidate; the reset gate acts behind the product
};

/// A recurrent layer over the steps of one sample.
struct recurrent_geometry {
  recurrence kind = recurrence::lstm;
  int steps = 0, units = 0;
  bool reverse = false;   ///< from the last step to the first
  bool last = false;      ///< only the last result has a gradient
  float forget_bias = 0;  ///< what is added within the forget gate of an lstm

  constexpr std::size_t gates() const { return kind == recurrence::lstm ? 4 : 3; }
  constexpr std::size_t gate_columns() const { return gates() * std::size_t(units); }
};

}  // namespace edl
