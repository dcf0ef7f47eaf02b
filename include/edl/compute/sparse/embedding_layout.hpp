// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "edl/compute/nn/combiner.hpp"
#include "edl/compute/nn/initializer.hpp"
#include "edl/compute/nn/row_policy.hpp"
#include "edl/core/layout.hpp"

namespace edl::sparse {

/// An input of a network that consists of rows of a table, and its place in a batch.
struct embedded_input {
  std::size_t table = 0;                 ///< the index of the table in the layout
  std::size_t first_id = 0, ids = 0;     ///< of a sample's ids
  std::size_t first_feature = 0;         ///< of a sample's features, where the values begin
  std::optional<nn::combiner> combiner;  ///< combines the rows into one; none: they are concatenated
};

/// The tables of a network, and the inputs that consist of their rows. A network without tables has an empty
/// one.
struct embedding_layout {
  std::vector<table_shape> tables;
  std::vector<nn::initializer> initials;  ///< of the rows of each
  std::vector<nn::row_policy> policies;   ///< of each
  std::vector<embedded_input> inputs;
  std::size_t ids = 0;  ///< of a sample
};

}  // namespace edl::sparse
