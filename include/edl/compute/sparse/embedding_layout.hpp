// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "edl/compute/nn/combiner.hpp"
#include "edl/compute/nn/initializer.hpp"
#include "edl/compute/nn/inputs.hpp"
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

template <class Start>
embedding_layout embedding_layout_of(Start const&) {
  return {};
}

/// That of a network with these inputs, of which those that share a table agree (`tables_agree`).
template <class... Named>
embedding_layout embedding_layout_of(nn::input_list<Named...> const& all) {
  embedding_layout out;
  std::size_t feature = 0;
  auto const one = [&](auto const& n) {
    auto const& kind = n.spec;
    if constexpr (nn::holds_rows<std::remove_cvref_t<decltype(kind)>>) {
      std::size_t table = 0;
      while (table < out.tables.size() && out.tables[table].name != n.table) ++table;
      if (table == out.tables.size()) {
        out.tables.push_back({std::string(n.table), kind.width});
        out.initials.push_back(kind.initial);
        out.policies.push_back(kind.rows);
      }
      auto const ids = std::size_t(nn::ids_of_sample(kind));
      out.inputs.push_back({.table = table, .first_id = out.ids, .ids = ids, .first_feature = feature});
      if constexpr (requires { kind.combiner; }) out.inputs.back().combiner = kind.combiner;
      out.ids += ids;
    }
    feature += kind.input().size();
  };
  std::apply([&](auto const&... n) { (one(n), ...); }, all.all);
  return out;
}

}  // namespace edl::sparse
