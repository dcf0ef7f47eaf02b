// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>

#include "edl/compute/sparse/minibatch_rows.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/random.hpp"

namespace edl::sparse {

EDL_INLINE void row_terms::begin(std::size_t result) {
  at.push_back(std::uint32_t(result));
  end();
}

EDL_INLINE void row_terms::add(std::size_t term, float weight) {
  from.push_back(std::uint32_t(term));
  weights.push_back(weight);
}

EDL_INLINE void row_terms::clear() { at.clear(), first.clear(), from.clear(), weights.clear(); }

EDL_INLINE void turn_around(row_terms const& features, std::size_t rows, std::size_t width, std::size_t most,
                            row_terms& to, row_terms& joined) {
  to.clear(), joined.clear();
  std::vector<std::uint32_t> next(rows + 1);  // at first how many terms a row has
  for (std::uint32_t const from : features.from) ++next[from / width];
  std::size_t all = 0, behind = rows;
  for (std::size_t r = 0; r < rows; ++r) {
    std::size_t const count = next[r];
    next[r] = std::uint32_t(all);
    bool const alone = count <= most;
    if (!alone) joined.begin(r * width);
    for (std::size_t done = 0; done < count || done == 0; done += most) {
      std::size_t const at = (alone ? r : behind++) * width;
      to.at.push_back(std::uint32_t(at));
      to.first.push_back(std::uint32_t(all + done));
      if (!alone) joined.add(at, 1);
    }
    all += count;
  }
  invariant(all == features.from.size(), "each term is turned around once");
  to.from.resize(all), to.weights.resize(all);
  for (std::size_t i = 0; i < features.results(); ++i)
    for (std::size_t k = features.first[i]; k < features.first[i + 1]; ++k) {
      std::size_t const place = next[features.from[k] / width]++;
      to.from[place] = features.at[i];
      to.weights[place] = features.weights[k];
    }
  to.end(), joined.end();
}

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
  for (std::size_t t = 0; t < tables_.size(); ++t)
    invariant(tables_[t].ids.size() <= most_[t] && tables_[t].ids.size() < tables_[t].index.size(),
              "an index of ids has a free place, at which a search ends");
  for (part& t : tables_) t.rows.resize(t.ids.size() * t.width);
}

template <class Begin, class Visit>
void minibatch_rows::each(data::batch const& b, Begin const& begin, Visit const& visit) const {
  invariant(numbers_.size() == std::size_t(b.rows) * layout_.ids,
            "rows are for the batch that was begun with");
  for (std::size_t s = 0; s < std::size_t(b.rows); ++s)
    for (embedded_input const& in : layout_.inputs) {
      std::size_t const first = s * layout_.ids + in.first_id, width = tables_[in.table].width;
      std::size_t at = s * b.feature_size + in.first_feature;
      if (!in.combiner) {
        for (std::size_t i = first; i < first + in.ids; ++i, at += width) {
          begin(in, at);
          visit(in, numbers_[i], at, 1.0f);
        }
        continue;
      }
      begin(in, at);
      nn::weight_norm<float> norm(*in.combiner);
      for (std::size_t i = first; i < first + in.ids; ++i) norm.add(b.weights[i]);
      for (std::size_t i = first; i < first + in.ids; ++i)
        if (b.weights[i] != 0) visit(in, numbers_[i], at, b.weights[i] * norm.reciprocal());
    }
}

EDL_INLINE void minibatch_rows::fill(data::batch& b) const {
  auto const zero = [&](embedded_input const& in, std::size_t at) {
    if (in.combiner) std::fill_n(&b.features[at], tables_[in.table].width, 0.0f);
  };
  each(b, zero, [&](embedded_input const& in, std::uint32_t number, std::size_t at, float weight) {
    part const& t = tables_[in.table];
    float const* const from = &t.rows[number * t.width];
    float* const to = &b.features[at];
    if (in.combiner)
      for (std::size_t k = 0; k < t.width; ++k) to[k] += weight * from[k];
    else
      std::copy_n(from, t.width, to);
  });
}

EDL_INLINE void minibatch_rows::list(data::batch const& b, std::span<row_terms> features) const {
  invariant(features.size() == tables_.size(), "each table has its terms");
  for (row_terms& t : features) t.clear();
  each(
      b, [&](embedded_input const& in, std::size_t at) { features[in.table].begin(at); },
      [&](embedded_input const& in, std::uint32_t number, std::size_t, float weight) {
        features[in.table].add(number * tables_[in.table].width, weight);
      });
  for (row_terms& t : features) t.end();
}

EDL_INLINE std::span<row_gradients const> minibatch_rows::begin_sums() {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    invariant(tables_[t].rows.size() == tables_[t].ids.size() * tables_[t].width, "each id has a row");
    tables_[t].gradients.resize(tables_[t].ids.size() * tables_[t].width);
    summed_[t] = {tables_[t].ids, tables_[t].gradients};
  }
  return summed_;
}

EDL_INLINE std::span<row_gradients const> minibatch_rows::sum(data::batch const& b, view<float> gradients) {
  begin_sums();
  for (part& t : tables_) std::ranges::fill(t.gradients, 0.0f);
  auto const nothing = [](embedded_input const&, std::size_t) {};
  each(b, nothing, [&](embedded_input const& in, std::uint32_t number, std::size_t at, float weight) {
    part& t = tables_[in.table];
    float const* const from = &gradients[at];
    float* const to = &t.gradients[number * t.width];
    for (std::size_t k = 0; k < t.width; ++k) to[k] += weight * from[k];
  });
  return summed_;
}

}  // namespace edl::sparse
