// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "edl/compute/nn/combiner.hpp"
#include "edl/compute/nn/initializer.hpp"
#include "edl/compute/nn/row_policy.hpp"
#include "edl/core/shape.hpp"

namespace edl::nn {

/// What a network starts with: a picture, channels last.
struct image {
  int height = 1, width = 1, channels = 1;

  constexpr shape input() const { return {height, width, channels}; }
};

/// What a network starts with: a row of numbers.
struct features {
  int count = 1;

  constexpr shape input() const { return {1, 1, count}; }
};

/// What a network starts with: a row of whole numbers, each below a vocabulary, for `embedding` alone. They
/// are float32 on every device, whatever the precision of activations: bfloat16 has 256 of them.
///
/// `lengths` are shorter ones, up to eight, that a minibatch is cut to where none of its samples has more
/// places than padding behind them. The network begins with `masked` then. It is all of the network's input.
struct ids {
  static constexpr bool of_ids = true;

  int count = 1;
  std::array<int, 8> lengths{};

  constexpr shape input() const { return {1, 1, count}; }
};

/// What a network starts with: up to `most` whole numbers with a weight each, for `embedding_bag` alone.
struct weighted_ids {
  static constexpr bool of_ids = true;

  int most = 1;

  /// Ids, of which those behind the last are −1; then weights.
  constexpr shape input() const { return {1, 2, most}; }
};

/// A named input: how many places of a sample count, 0 to `most`. Those behind are padding. It is for
/// `inputs::mask` alone, and as exact as ids are.
struct length {
  static constexpr bool of_ids = true;

  int most = 1;

  constexpr shape input() const { return {1, 1, 1}; }
};

/// A named input: the rows of a table for `count` ids of a sample. The table is kept beside the network's
/// variables. Ids are any 64-bit numbers, and an id gets a row when it is first trained. Gives (1, count,
/// width).
struct served_embedding {
  static constexpr bool of_table = true;

  int count = 0;
  int width = 0;
  initializer initial = uniform{};
  row_policy rows{};

  constexpr shape input() const { return {1, count, width}; }
};

/// The same for up to `most` ids, of which each sample has as many as it likes, with a weight each. Their
/// rows are combined to one. A sample without ids, or weights that sum to 0, gets zeros. Gives (width).
struct served_embedding_bag {
  static constexpr bool of_table = true;

  int most = 0;
  int width = 0;
  nn::combiner combiner = nn::combiner::sum;
  initializer initial = uniform{};
  row_policy rows{};

  constexpr shape input() const { return {1, 1, width}; }
};

/// Whether an input of this kind is rows of a table.
template <class Kind>
constexpr bool holds_rows = requires { requires Kind::of_table; };

/// Ids of a sample that such an input looks up; 0 for any other.
template <class Kind>
constexpr int ids_of_sample(Kind const& kind) {
  if constexpr (requires { kind.most; } && holds_rows<Kind>)
    return kind.most;
  else if constexpr (holds_rows<Kind>)
    return kind.count;
  else
    return 0;
}

/// Whether an input has a size that it can have; tables have other sizes (`table_options_fit`).
template <class Kind>
constexpr bool sizes_fit(Kind const& kind) {
  shape const s = kind.input();
  bool const some = s.height > 0 && s.width > 0 && s.channels > 0;
  if constexpr (holds_rows<Kind>)
    return true;
  else if constexpr (requires { kind.most; })
    return some && kind.most > 0;
  else
    return some;
}

/// Whether the options of an input are ones that it can have; of those that are no rows of a table they are.
template <class Kind>
constexpr bool table_options_fit(Kind const& kind) {
  if constexpr (holds_rows<Kind>)
    return ids_of_sample(kind) >= 1 && kind.width >= 1 && kind.width <= 65'536 && kind.rows.admission >= 1;
  else
    return true;
}

/// Whether an input of this kind holds ids.
template <class Kind>
constexpr bool holds_ids = requires { requires Kind::of_ids; };

}  // namespace edl::nn
