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

/// What a network starts with: a row of whole numbers, each below a vocabulary, for `embedding` only. They
/// are float32 on every device, for any precision of activations: bfloat16 can represent only 256 of them.
///
/// `lengths` are up to eight shorter lengths. A minibatch is cut to one of them if the rest of all its
/// samples is padding. The network then must begin with `masked`, and have no other input.
struct ids {
  static constexpr bool of_ids = true;

  int count = 1;
  std::array<int, 8> lengths{};

  constexpr shape input() const { return {1, 1, count}; }
};

/// What a network starts with: up to `most` whole numbers with a weight each, for `embedding_bag` only.
struct weighted_ids {
  static constexpr bool of_ids = true;

  int most = 1;

  /// Ids, with −1 after the last; then weights.
  constexpr shape input() const { return {1, 2, most}; }
};

/// A named input: the number of places of a sample that count, 0 to `most`. The rest is padding. It is for
/// `inputs::mask` only, and as exact as ids.
struct length {
  static constexpr bool of_ids = true;

  int most = 1;

  constexpr shape input() const { return {1, 1, 1}; }
};

/// A named input: the rows of a table for `count` ids of a sample. The table is stored beside the network's
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

/// The same for any number of ids per sample, up to `most`, with a weight each. Their rows are combined into
/// one. A sample without ids, or weights that sum to 0, gets zeros. Gives (width).
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

/// Number of ids of a sample that this input looks up; 0 for any other kind.
template <class Kind>
constexpr int ids_of_sample(Kind const& kind) {
  if constexpr (requires { kind.most; } && holds_rows<Kind>)
    return kind.most;
  else if constexpr (holds_rows<Kind>)
    return kind.count;
  else
    return 0;
}

/// Whether an input has a valid size; for tables see `table_options_fit`.
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

/// Whether the options of an input are valid; always true for inputs that are not rows of a table.
template <class Kind>
constexpr bool table_options_fit(Kind const& kind) {
  if constexpr (holds_rows<Kind>)
    return ids_of_sample(kind) >= 1 && kind.width >= 1 && kind.width <= 65'536 && kind.rows.admission >= 1;
  else
    return true;
}

/// Whether an input of this kind contains ids.
template <class Kind>
constexpr bool holds_ids = requires { requires Kind::of_ids; };

}  // namespace edl::nn
