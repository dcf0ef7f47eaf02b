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

/// An input of a network that is rows of a table: where it is in a batch.
struct embedded_input {
  std::size_t table = 0;                 ///< whose number this is among the layout's
  std::size_t first_id = 0, ids = 0;     ///< of a sample's ids
  std::size_t first_feature = 0;         ///< of a sample's features, where the values begin
  std::optional<nn::combiner> combiner;  ///< the rows become one; none: they stand one after the other
};

/// The tables of a network, and what of it is rows of theirs. Without tables it is empty.
struct embedding_layout {
  std::vector<table_shape> tables;
  std::vector<nn::initializer> initials;  ///< of the rows of each
  std::vector<nn::row_policy> policies;   ///< of each
  std::vector<embedded_input> inputs;
  std::size_t ids = 0;  ///< of a sample
};

}  // namespace edl::sparse
