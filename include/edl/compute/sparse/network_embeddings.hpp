// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>

#include "edl/compute/nn/inputs.hpp"
#include "edl/compute/sparse/embedding_layout.hpp"
#include "edl/core/unpack.hpp"

namespace edl::sparse {

/// The embedding layout of a network whose start (`Start`) names no inputs: it has no tables.
template <class Start>
embedding_layout embedding_layout_of(Start const&) {
  return {};
}

/// The embedding layout of a network with these inputs. Inputs that share a table must agree
/// (`tables_agree`).
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
  edl::unpack([&](auto const&... n) { (one(n), ...); }, all.all);
  return out;
}

}  // namespace edl::sparse
