// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/train/trainers/gpu_rows.hpp"

namespace edl::train {
namespace detail {

/// The number of terms of a row's gradient that one group of threads adds sequentially.
inline constexpr std::size_t most_terms = 64;

}  // namespace detail

EDL_INLINE gpu_rows::gpu_rows(std::shared_ptr<accelerator> gpu, sparse::embedding_layout const& of,
                              std::size_t feature_size, int max_batch)
    : gpu_(std::move(gpu)), feature_size_(feature_size), tables_(of.tables.size()), terms_(tables_.size()) {
  if (tables_.empty()) return;
  std::vector<std::size_t> numbers(tables_.size());  // of rows per sample
  for (std::size_t t = 0; t < tables_.size(); ++t) tables_[t].width = std::size_t(of.tables[t].width);
  for (sparse::embedded_input const& in : of.inputs) numbers[in.table] += in.ids * tables_[in.table].width;
  // Rows, and partial sums of at most this many terms: fewer than twice as many, plus one for each full part.
  std::size_t const most = std::ranges::max(numbers);
  if (std::max(feature_size, 2 * most + most / detail::most_terms) >
      std::numeric_limits<std::uint32_t>::max() / std::size_t(max_batch))
    throw usage_error("a minibatch has more than 2^32 numbers: use a smaller --minibatch_size");
  std::vector<bool> row(feature_size);
  for (sparse::embedded_input const& in : of.inputs) {
    std::size_t const count = tables_[in.table].width * (in.combiner ? 1 : in.ids);
    std::fill_n(row.begin() + std::ptrdiff_t(in.first_feature), count, true);
  }
  for (std::size_t i = 0; i < feature_size; ++i)
    if (!row[i]) places_.push_back(i);
  numbers_of_one_ = places_.size();
  for (std::size_t i = 0, end; i < numbers_of_one_; i = end) {
    for (end = i + 1; end < numbers_of_one_ && places_[end] == places_[end - 1] + 1;) ++end;
    sparse::row_terms copied;
    for (std::size_t s = 0; s < std::size_t(max_batch); ++s) {
      copied.begin(s * feature_size + places_[i]);
      copied.add(s * numbers_of_one_ + i, 1);
    }
    copied.end();
    bring(copied, end - i, numbers_.emplace_back());
  }
}

EDL_INLINE void gpu_rows::reserve(device_buffer<float>& memory, std::size_t floats) {
  if (memory.span().size() >= floats) return;
  memory = {};
  memory = device_buffer<float>(gpu_, floats + floats / 4);
}

EDL_INLINE void gpu_rows::bring(sparse::row_terms const& terms, std::size_t width, lists& to) {
  std::size_t const results = terms.results(), n = terms.from.size();
  invariant(terms.first.size() == results + 1 && terms.weights.size() == n, "each term has its weight");
  reserve(to.memory, 2 * results + 1 + 2 * n);
  float* const at = to.memory.span().data();
  float *const first = at + results, *const from = first + results + 1, *const weights = from + n;
  auto const put = [&](auto const& list, float* there) {
    if (!list.empty()) gpu_->upload(std::as_bytes(std::span(list)), there);
  };
  put(terms.at, at), put(terms.first, first), put(terms.from, from), put(terms.weights, weights);
  auto const list = [](float const* of) { return reinterpret_cast<std::uint32_t const*>(of); };
  to.sums = {results, n, width, list(at), list(first), list(from), weights};
}

/// Writes the features that are not rows.
EDL_INLINE void gpu_rows::give_numbers(data::batch const& b, std::span<float> features) {
  auto const n = std::size_t(b.rows);
  if (numbers_of_one_ == 0) return;
  packed_.resize(n * numbers_of_one_);
  for (std::size_t s = 0, i = 0; s < n; ++s)
    for (std::size_t const place : places_) packed_[i++] = b.features[s * feature_size_ + place];
  reserve(packed_there_, packed_.size());
  gpu_->upload(std::as_bytes(std::span(packed_)), packed_there_.span().data());
  for (lists const& each : numbers_) {
    row_sums copied = each.sums;
    copied.results = copied.terms = n;
    gpu_->add_rows(copied, packed_there_.span(), true, features);
  }
}

EDL_INLINE void gpu_rows::give(data::batch const& b, sparse::minibatch_rows const& rows,
                               std::span<float> features) {
  rows.list(b, terms_);
  if (b.rows == 0) return;
  give_numbers(b, features);
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    table& to = tables_[t];
    view<float> const values = rows.rows(t);
    reserve(to.rows, values.size());
    if (!values.empty()) gpu_->upload(std::as_bytes(values), to.rows.span().data());
    bring(terms_[t], to.width, to.features);
    gpu_->add_rows(to.features.sums, to.rows.span(), true, features);
  }
}

EDL_INLINE std::span<sparse::row_gradients const> gpu_rows::sum(view<float> features,
                                                                sparse::minibatch_rows& rows) {
  auto const summed = rows.begin_sums();
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    table& of = tables_[t];
    std::size_t const ids = rows.ids(t).size();
    if (ids == 0) continue;
    sparse::turn_around(terms_[t], ids, of.width, detail::most_terms, turned_, joined_);
    invariant(joined_.results() <= ids, "each id has one sum");
    std::size_t const behind = joined_.from.size();
    reserve(of.gradients, (ids + behind) * of.width);
    bring(turned_, of.width, of.parts);
    bring(joined_, of.width, of.joined);
    auto const to = of.gradients.span();
    gpu_->add_rows(of.parts.sums, features, false, to);
    gpu_->add_rows(of.joined.sums, to, true, to);
    gpu_->download(to.data(), std::as_writable_bytes(rows.gradients(t)));
  }
  gpu_->synchronize();
  return summed;
}

}  // namespace edl::train
