// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/train/trainers/gpu_samples.hpp"

namespace edl::train {
namespace detail {

inline constexpr std::size_t placement_floats = sizeof(placement) / sizeof(float);

inline std::byte const* labels_of(data::batch const& b) {
  return b.class_size > 0 ? reinterpret_cast<std::byte const*>(b.classes.data())
                          : reinterpret_cast<std::byte const*>(b.targets.data());
}

/// The key of a record's sample.
inline std::uint64_t place_of(data::batch const& b, std::size_t row) {
  return b.first_place + b.records[row];
}

}  // namespace detail

EDL_INLINE gpu_samples::gpu_samples(std::shared_ptr<accelerator> gpu, gpu_sample_options of)
    : gpu_(gpu),
      options_(std::move(of)),
      size_(options_.input.size()),
      given_(gpu_, std::size_t(options_.max_batch) * size_),
      labels_(gpu_, std::size_t(options_.max_batch) * options_.labels),
      rows_(gpu_, std::size_t(options_.max_batch)),
      in_order_(gpu_, std::size_t(options_.max_batch)),
      placements_(gpu_, std::size_t(options_.max_batch) * detail::placement_floats),
      views_(gpu_, (1 + options_.views.size()) * std::size_t(options_.max_batch) * detail::placement_floats),
      host_rows_(gpu_, std::size_t(options_.max_batch)),
      host_placements_(gpu_, std::size_t(options_.max_batch) * detail::placement_floats) {
  std::vector<std::uint32_t> order(std::size_t(options_.max_batch));
  std::iota(order.begin(), order.end(), 0u);
  gpu_->upload(std::as_bytes(std::span(order)), in_order_.span().data());
  std::vector<placement> views(order.size());
  for (placement const& p : options_.views) views.insert(views.end(), order.size(), p);
  gpu_->upload(std::as_bytes(std::span(views)), views_.span().data());
  gpu_->synchronize();
}

EDL_INLINE std::uint64_t gpu_samples::bytes(std::uint64_t samples) const {
  return samples * size_ * sizeof(float);
}

EDL_INLINE std::string gpu_samples::keep(worker::keep_samples how, std::uint64_t training,
                                         std::uint64_t evaluation) {
  using enum worker::keep_samples;
  if (how == off) return {};
  bool const must = how == on;
  if (must && training > 0 && !options_.fed_alike)
    throw usage_error(
        "--keep_samples=on: the model's augmentation is its own, or in an order other than crop, flip, "
        "jitter, cutout: only the processor can do it, while samples are fed; use --keep_samples=auto");
  std::uint64_t const free = gpu_->free_memory();
  std::uint64_t room = must ? free : free / 4, all = 0;
  auto const make = [&](std::unique_ptr<kept_kind>& kind, std::uint64_t samples) {
    bool const fits = samples <= std::numeric_limits<std::uint32_t>::max() && samples <= room / bytes(1);
    if (samples == 0 || (!fits && !must)) return;
    if (!fits)
      throw usage_error(
          fmt::format("--keep_samples=on: {} samples take {} MiB of the GPU's memory, {} are free; "
                      "use --keep_samples=auto",
                      samples, bytes(samples) >> 20, room >> 20));
    kind = std::make_unique<kept_kind>(
        kept_kind{device_buffer<float>(gpu_, std::size_t(samples) * size_),
                  std::vector<std::uint32_t>(std::size_t(samples) * options_.labels),
                  std::vector<std::atomic<std::uint8_t>>(std::size_t(samples))});
    room -= bytes(samples);
    all += samples;
  };
  make(kept_[0], options_.fed_alike ? training : 0);
  make(kept_[1], evaluation);
  if (all == 0) return {};
  return fmt::format("keeps the {} samples of {} in the GPU's memory once they were fed: {:.1f} MiB", all,
                     !kept_[1]  ? "training"
                     : kept_[0] ? "training and evaluation"
                                : "evaluation",
                     double(bytes(all)) / (1 << 20));
}

EDL_INLINE bool gpu_samples::has(data::batch& b) const {
  kept_kind const* const in = kept(b.identity.m);
  if (!in) return false;
  for (std::size_t row = 0; row < b.records.size(); ++row)
    if (in->known[std::size_t(detail::place_of(b, row))].load(std::memory_order_acquire) == 0) return false;
  std::byte* const to = const_cast<std::byte*>(detail::labels_of(b));
  std::size_t const width = options_.labels * sizeof(std::uint32_t);
  for (std::size_t row = 0; row < b.records.size(); ++row)
    std::memcpy(to + row * width, &in->labels[std::size_t(detail::place_of(b, row)) * options_.labels],
                width);
  return true;
}

EDL_INLINE void gpu_samples::remember(kept_kind& in, data::batch const& b,
                                      std::span<std::uint32_t const> places) {
  gpu_->scatter_rows(places.size(), size_, given_.span(), list(rows_), in.features.span());
  std::size_t const width = options_.labels * sizeof(std::uint32_t);
  for (std::size_t row = 0; row < places.size(); ++row) {
    invariant(places[row] < in.known.size(), "a sample has its place among those that are kept");
    auto& known = in.known[places[row]];
    if (known.load(std::memory_order_relaxed) != 0) continue;
    std::memcpy(&in.labels[places[row] * options_.labels], detail::labels_of(b) + row * width, width);
    known.store(1, std::memory_order_release);
  }
}

EDL_INLINE void gpu_samples::give(data::batch const& b) {
  auto const n = std::size_t(b.rows);
  invariant(b.rows <= options_.max_batch, "a minibatch fits into the buffers of the GPU");
  if (!b.kept && !options_.given_apart)
    gpu_->upload(std::as_bytes(std::span(b.features).first(n * size_)), given_.span().data());
  gpu_->upload({detail::labels_of(b), n * options_.labels * sizeof(std::uint32_t)}, labels_.span().data());
  if (kept_kind* const in = kept(b.identity.m)) {
    std::span const places(reinterpret_cast<std::uint32_t*>(host_rows_.span().data()), n);
    for (std::size_t row = 0; row < n; ++row) places[row] = std::uint32_t(detail::place_of(b, row));
    gpu_->upload(std::as_bytes(places), rows_.span().data());
    if (!b.kept) remember(*in, b, places);
  }
  if (options_.placed && b.identity.m == mode::training) {
    auto const placements = std::as_bytes(std::span(b.placements).first(n));
    std::memcpy(host_placements_.span().data(), placements.data(), placements.size());
    gpu_->upload(std::as_bytes(host_placements_.span()).first(placements.size()), placements_.span().data());
  }
}

EDL_INLINE void gpu_samples::choose(data::batch const& b, std::span<std::uint32_t const> rows,
                                    std::span<std::uint32_t const> view_indices) {
  bool const places = kept(b.identity.m) != nullptr;
  auto* const of_rows = reinterpret_cast<std::uint32_t*>(host_rows_.span().data());
  auto* const how = reinterpret_cast<placement*>(host_placements_.span().data());
  invariant(rows.size() == view_indices.size(), "each row is seen in one view");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    of_rows[i] = places ? std::uint32_t(detail::place_of(b, rows[i])) : rows[i];
    how[i] = options_.views[view_indices[i]];
  }
  gpu_->upload(std::as_bytes(std::span(of_rows, rows.size())), rows_.span().data());
  gpu_->upload(std::as_bytes(std::span(how, rows.size())), placements_.span().data());
}

EDL_INLINE void gpu_samples::show_chosen(int count, mode m, std::span<float> x) {
  kept_kind const* const in = kept(m);
  gpu_->show(options_.input, std::size_t(count), in ? in->features.span() : std::as_const(given_).span(),
             list(rows_), reinterpret_cast<placement const*>(placements_.span().data()), options_.exact, x);
}

EDL_INLINE void gpu_samples::show(int rows, mode m, std::size_t view_index, std::span<float> x) {
  kept_kind const* const in = kept(m);
  bool const training = m == mode::training, placed = training ? options_.placed : !options_.views.empty();
  if (!in && !placed) {
    view<float> const from = std::as_const(given_).span().first(x.size());
    return options_.exact ? gpu_->move(from, x) : gpu_->store(from, x);
  }
  invariant(rows <= options_.max_batch && (training || !placed || view_index < options_.views.size()),
            "a view of a minibatch is one of the model's");
  std::size_t const which = !training && placed ? 1 + view_index : 0;
  device_buffer<float> const& how = training && placed ? placements_ : views_;
  auto const* const first = reinterpret_cast<placement const*>(how.span().data());
  gpu_->show(options_.input, std::size_t(rows), in ? in->features.span() : std::as_const(given_).span(),
             list(in ? rows_ : in_order_), first + which * std::size_t(options_.max_batch), options_.exact,
             x);
}

}  // namespace edl::train
