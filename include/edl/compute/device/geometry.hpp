// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>

#include "edl/compute/device/activation.hpp"
#include "edl/core/shape.hpp"

namespace edl {

/// Which samples and gradients of an operation are narrow: bfloat16 numbers, two in the place of one scalar.
/// All others hold one number per scalar. A narrow sample has an even number of elements.
struct bfloat16_io {
  bool in = false, out = false;

  constexpr bool any() const { return in || out; }
  friend constexpr bool operator==(bfloat16_io const&, bfloat16_io const&) = default;
};

/// Scalars that this many elements take.
constexpr std::size_t scalars_of(std::size_t elements, bool narrow) {
  return narrow ? (elements + 1) / 2 : elements;
}

/// The inverse. A narrow sample has an even number of elements.
constexpr std::size_t elements_of(std::size_t scalars, bool narrow) { return narrow ? 2 * scalars : scalars; }

/// A pooling window that slides over one sample. `before` is how far outside the sample it starts, above and
/// to the left.
struct pool_geometry {
  shape in, out;
  extent window, stride, before;
  bfloat16_io narrow{};
};

/// A batch normalisation and the operations fused with it into one pass over memory. If its input is the
/// result of a relu, its backward pass includes the relu's gradient. An activation may follow. Unless that is
/// `curved`, max pooling with adjacent windows may follow, too (`window` > 1); places that do not fill a
/// window are left out. Beta counts `shift_gain` times. A term that is added to the result may be narrow,
/// too.
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

  /// Elements of the input that contribute to one output of a group.
  constexpr std::size_t patch() const {
    return std::size_t(kernel.height) * std::size_t(kernel.width) * std::size_t(in.channels / groups);
  }
  constexpr std::size_t positions() const { return std::size_t(out.height) * std::size_t(out.width); }

  /// Whether the input, read as a matrix of positions, already is the matrix of patches.
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

/// The rows of a table that ids select, and the number of ids in a sample.
struct embedding_geometry {
  int vocabulary = 0, width = 0;  ///< rows, and numbers of a row
  int ids = 0;
  bool adds_gradient = false;  ///< dtable is added to, instead of overwritten

  /// Float32 represents every whole number up to this one exactly.
  static constexpr int most = 1 << 24;

  /// Whether the table has a row of this number.
  template <class T>
  constexpr bool has(T id) const {
    return id >= T(0) && id < T(vocabulary) && T(int(id)) == id;
  }
};

/// Slows down the slow rotations of rotary positions, so that a model sees longer texts than it was trained
/// on (Llama 3.1's rule: Grattafiori et al., "The Llama 3 herd of models", 2024, and its published code). A
/// pair that turns at most `low` times in `original` places is `factor` times as slow, one that turns `high`
/// times or more as fast as before. Between them the share of its own speed grows with the number of turns.
struct rotary_scaling {
  float factor = 1;  ///< 1: none
  float low = 1, high = 4;
  int original = 8192;

  constexpr bool valid() const { return factor >= 1 && low > 0 && high > low && original > 0; }
  /// The angle of a place with this one, in radians.
  double slowed(double angle_of_one) const {
    if (factor == 1) return angle_of_one;
    double const turns = double(original) * angle_of_one / 6.283185307179586,
                 kept = (turns - double(low)) / (double(high) - double(low)),
                 own = kept < 0   ? 0
                       : kept > 1 ? 1
                                  : kept;
    return angle_of_one * (own + (1 - own) / double(factor));
  }
};

/// Self-attention over the places of one sample. A place has a query, a key and a value of `width` numbers
/// for each of `heads`. Within a place, the queries of all heads come first, then the keys, then the values.
struct attention_geometry {
  int places = 0, heads = 0, width = 0;
  bool causal = false;    ///< a place sees itself and what is before it
  float rotary_base = 0;  ///< base of the rotary embeddings' angles; 0: no rotation
  rotary_scaling scaling{};
  int group = 1;      ///< neighbouring heads with the same keys and values, of which a cache has one copy
  int window = 0;     ///< with `causal`: places that a place sees, itself the last; 0: all
  float softcap = 0;  ///< scores become softcap · tanh(score / softcap); 0: they stay
  bool interleaved = false;  ///< pairs are 2i and 2i + 1, instead of i and i + width / 2

  /// By how much a place turns pair i of a query or key, in radians.
  double turn(std::size_t place, std::size_t i) const {
    return double(place) * scaling.slowed(std::pow(double(rotary_base), -2 * double(i) / double(width)));
  }
  /// The first place that this one sees.
  constexpr std::size_t first_seen(std::size_t place) const {
    return window > 0 && place + 1 > std::size_t(window) ? place + 1 - std::size_t(window) : 0;
  }
  constexpr std::size_t channels() const { return std::size_t(heads) * std::size_t(width); }
};

/// A place of a sequence whose earlier places are in a cache.
struct sequence_place {
  int sequence = 0, place = 0;
};

/// Attention from the places of one sample, which have queries, to `keys` places of another, which have keys
/// and values. Within such a place the keys of all heads come first.
struct cross_attention_geometry {
  int places = 0, keys = 0, heads = 0, width = 0;

  constexpr std::size_t channels() const { return std::size_t(heads) * std::size_t(width); }
};

/// Several products of matrices of these extents: `rows` × `inner` by `inner` × `columns`. A factor marked as
/// turned is transposed in memory.
struct product_geometry {
  std::size_t products = 1, rows = 1, inner = 1, columns = 1;
  bool turned_left = false, turned_right = false;
};

/// The kinds of recurrent cells.
enum class recurrence {
  lstm,  ///< four gates: input, forget, candidate, output
  gru    ///< three: update, reset, candidate; the reset gate acts behind the product
};

/// A recurrent layer over the steps of one sample.
struct recurrent_geometry {
  recurrence kind = recurrence::lstm;
  int steps = 0, units = 0;
  bool reverse = false;   ///< from the last step to the first
  bool last = false;      ///< only the last step's result has a gradient
  float forget_bias = 0;  ///< added within the forget gate of an lstm

  constexpr std::size_t gates() const { return kind == recurrence::lstm ? 4 : 3; }
  constexpr std::size_t gate_columns() const { return gates() * std::size_t(units); }
};

}  // namespace edl
