// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>

#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/random.hpp"

namespace edl::sparse {

EDL_INLINE minibatch_rows::minibatch_rows(embedding_layout const& of)
    : layout_(of), tables_(of.tables.size()), summed_(of.tables.size()) {
  for (std::size_t t = 0; t < tables_.size(); ++t) tables_[t].width = std::size_t(of.tables[t].width);
}

EDL_INLINE std::uint32_t minibatch_rows::number_of(part& t, std::uint64_t id) {
  std::size_t const mask = t.index.size() - 1;
  for (std::size_t at = mix(1, id) & mask;; at = (at + 1) & mask) {
    if (t.index[at] == 0) {
      t.ids.push_back(id);
      return (t.index[at] = std::uint32_t(t.ids.size())) - 1;
    }
    if (t.ids[t.index[at] - 1] == id) return t.index[at] - 1;
  }
}

EDL_INLINE void minibatch_rows::begin(data::batch const& b) {
  auto const samples = std::size_t(b.rows);
  most_.assign(tables_.size(), 0);
  for (embedded_input const& in : layout_.inputs) most_[in.table] += samples * in.ids;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    tables_[t].ids.clear();
    tables_[t].index.assign(std::bit_ceil(2 * most_[t] + 1), 0);
  }
  numbers_.resize(samples * layout_.ids);
  for (std::size_t s = 0; s < samples; ++s)
    for (embedded_input const& in : layout_.inputs)
      for (std::size_t i = s * layout_.ids + in.first_id, end = i + in.ids; i < end; ++i)
        if (!in.combiner || b.weights[i] != 0) numbers_[i] = number_of(tables_[in.table], b.ids[i]);
  for (part& t : tables_) t.rows.resize(t.ids.size() * t.width);
}

template <class Visit>
void minibatch_rows::each(data::batch const& b, Visit const& visit) const {
  for (std::size_t s = 0; s < std::size_t(b.rows); ++s)
    for (embedded_input const& in : layout_.inputs) {
      std::size_t const first = s * layout_.ids + in.first_id, width = tables_[in.table].width;
      std::size_t at = s * b.feature_size + in.first_feature;
      if (!in.combiner) {
        for (std::size_t i = first; i < first + in.ids; ++i, at += width) visit(in, numbers_[i], at, 1.0f);
        continue;
      }
      nn::weight_norm<float> norm(*in.combiner);
      for (std::size_t i = first; i < first + in.ids; ++i) norm.add(b.weights[i]);
      for (std::size_t i = first; i < first + in.ids; ++i)
        if (b.weights[i] != 0) visit(in, numbers_[i], at, b.weights[i] * norm.reciprocal());
    }
}

EDL_INLINE void minibatch_rows::fill(data::batch& b) const {
  for (std::size_t s = 0; s < std::size_t(b.rows); ++s)
    for (embedded_input const& in : layout_.inputs)
      if (in.combiner)
        std::fill_n(&b.features[s * b.feature_size + in.first_feature], tables_[in.table].width, 0.0f);
  each(b, [&](embedded_input const& in, std::uint32_t number, std::size_t at, float weight) {
    part const& t = tables_[in.table];
    float const* const from = &t.rows[number * t.width];
    float* const to = &b.features[at];
    if (in.combiner)
      for (std::size_t k = 0; k < t.width; ++k) to[k] += weight * from[k];
    else
      std::copy_n(from, t.width, to);
  });
}

EDL_INLINE std::span<row_gradients const> minibatch_rows::sum(data::batch const& b, view<float> gradients) {
  for (part& t : tables_) t.gradients.assign(t.ids.size() * t.width, 0.0f);
  each(b, [&](embedded_input const& in, std::uint32_t number, std::size_t at, float weight) {
    part& t = tables_[in.table];
    float const* const from = &gradients[at];
    float* const to = &t.gradients[number * t.width];
    for (std::size_t k = 0; k < t.width; ++k) to[k] += weight * from[k];
  });
  for (std::size_t t = 0; t < tables_.size(); ++t) summed_[t] = {tables_[t].ids, tables_[t].gradients};
  return summed_;
}

}  // namespace edl::sparse
