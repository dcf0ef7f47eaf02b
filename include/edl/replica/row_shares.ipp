// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <utility>

#include "edl/checkpoint/manifest.hpp"
#include "edl/checkpoint/rows.hpp"
#include "edl/core/inline.hpp"
#include "edl/replica/row_shares.hpp"
#include "edl/wire/edl.pb.h"
#include "edl/wire/message.hpp"
#include "edl/wire/method.hpp"
#include "edl/wire/row_copy.hpp"

namespace edl::replica {
namespace detail {

inline constexpr element_range all_slots{0, sparse::hash_slots};
inline constexpr std::size_t mebibyte = std::size_t{1} << 20;
inline constexpr std::chrono::minutes rows_in{10};  // a stalled connection is given up much earlier

/// Bytes of the files that a checkpoint has of rows, or of an exported model; 0: without any.
EDL_INLINE std::size_t bytes_of_rows(std::string const& from) {
  if (from.empty()) return 0;
  if (!std::filesystem::is_directory(from)) return std::size_t(std::filesystem::file_size(from));
  std::size_t n = 0;
  for (auto const& f : checkpoint::read_manifest(from).files)
    if (checkpoint::is_rows(f.name)) n += std::size_t(f.bytes);
  return n;
}

}  // namespace detail

EDL_INLINE row_shares::row_shares(options o) : options_(std::move(o)) {}

EDL_INLINE void row_shares::enter(int size, int rank) {
  size_ = size, rank_ = rank;
  placement_.emplace(std::vector<slot_set>(std::size_t(size)), options_.copies);
  rows_.emplace(options_.tables, std::uint32_t(placement_->groups()));
}

EDL_INLINE std::size_t row_shares::row_bytes() const {
  std::size_t n = 0;
  for (std::size_t t = 0; t < options_.store->tables(); ++t) n += options_.store->table(t).payload();
  return n;
}

EDL_INLINE void row_shares::prepare(std::string const& from) {
  bool const large = placement_->groups() > 1 && detail::bytes_of_rows(from) > options_.small;
  element_range const slots = large ? own() : detail::all_slots;
  options_.on_node([&] { options_.store->hold(slots); });
  has_ = slots_in(slots);
}

// A member tells its hash slots by 16 bits in a number, which is exact, and the mebibytes after them.
EDL_INLINE std::vector<row_shares::holding> row_shares::exchange(collective::group& with) const {
  constexpr std::size_t bits = 16, words = sparse::hash_slots / bits, each = words + 1;
  std::vector<float> all(std::size_t(size_) * each, 0);
  float* const mine = &all[std::size_t(rank_) * each];
  for (std::size_t w = 0; w < words; ++w) {
    std::uint32_t word = 0;
    for (std::size_t b = 0; b < bits; ++b) word |= std::uint32_t(has_[w * bits + b]) << b;
    mine[w] = float(word);
  }
  if (has_.any()) mine[words] = float(row_bytes() / detail::mebibyte * sparse::hash_slots / has_.count());
  with.all_reduce(all);
  std::vector<holding> holdings(static_cast<std::size_t>(size_));
  for (std::size_t r = 0; r < holdings.size(); ++r) {
    for (std::size_t s = 0; s < sparse::hash_slots; ++s)
      holdings[r].slots[s] = (std::uint32_t(all[r * each + s / bits]) >> s % bits & 1) != 0;
    holdings[r].mebibytes = std::size_t(all[r * each + words]);
  }
  return holdings;
}

EDL_INLINE bool row_shares::agree(collective::group& with, std::uint64_t world) {
  std::vector<holding> const holdings = exchange(with);
  bool parts = false, large = false;
  slot_set there;
  std::vector<slot_set> each;
  for (holding const& h : holdings) {
    each.push_back(h.slots);
    parts = parts || (h.slots.any() && !h.slots.all());
    large = large || h.mebibytes * detail::mebibyte > options_.small;
    there |= h.slots;
  }
  if (!there.all()) return false;

  placement_.emplace(each, options_.copies);
  due_ = false;
  divided_ = placement_->groups() > 1 && (parts || large);
  element_range const wanted = divided_ ? own() : detail::all_slots;
  // What goes stays until all others have what they lack. A world that breaks before leaves all as it is.
  element_range both = wanted;
  for (std::size_t s = 0; s < sparse::hash_slots; ++s)
    if (has_[s]) both = {std::min(both.first, s), std::max(both.last, s + 1)};
  options_.on_node([&] { options_.store->hold(both); });
  fetch(holdings, wanted, world);
  with.barrier();
  options_.on_node([&] { options_.store->hold(wanted); });
  has_ = slots_in(wanted);
  return true;
}

// Different members ask different ones of those that have the same.
EDL_INLINE void row_shares::fetch(std::vector<holding> const& from, element_range slots,
                                  std::uint64_t world) {
  for (std::size_t at = slots.first; at < slots.last;) {
    if (has_[at]) {
      ++at;
      continue;
    }
    std::vector<std::size_t> holders;
    for (std::size_t r = 0; r < from.size(); ++r)
      if (from[r].slots[at]) holders.push_back(r);
    std::size_t const source = holders[std::size_t(rank_) % holders.size()];
    element_range part{at, at + 1};
    while (part.last < slots.last && !has_[part.last] && from[source].slots[part.last]) ++part.last;
    for (std::uint32_t t = 0; t < options_.store->tables(); ++t)
      for (wire::row_copy copy(world, 0, t, part); !copy.done();) {
        auto const answers = options_.call(
            {{source,
              {.method = wire::method::copy_rows, .message = copy.request(), .timeout = detail::rows_in}}});
        copy.take(answers.front(), options_.name(source), [&](bytes rows, std::size_t, bytes candidates) {
          options_.on_node([&] { options_.store->put_rows(t, rows, candidates); });
        });
      }
    for (; at < part.last; ++at) has_.set(at);
  }
}

EDL_INLINE void row_shares::pull(sparse::minibatch_rows& rows, std::uint64_t world, std::uint64_t version) {
  ps::store const& here = *options_.store;
  if (!divided_) {
    for (std::size_t t = 0; t < rows.tables(); ++t) here.pull_rows(t, rows.ids(t), rows.rows(t));
    return;
  }
  for (std::size_t t = 0; t < rows.tables(); ++t) rows_->divide(t, rows.ids(t));
  int const mine = placement_->group_of(rank_);
  std::vector<member_call> calls;
  for (int g = 0; g < placement_->groups(); ++g) {
    if (g == mine) continue;
    wire::PullRowsRequest request;
    request.set_generation(world);
    request.set_version(version);
    net::outgoing what{.method = wire::method::pull_rows, .timeout = detail::rows_in};
    std::size_t wanted = 0;
    for (std::size_t t = 0; t < rows.tables(); ++t) {
      auto const ids = rows_->ids(std::size_t(g), t);
      wanted += ids.size();
      request.add_rows(std::uint32_t(ids.size()));
      what.payload.push_back(std::as_bytes(ids));
      what.into.push_back(std::as_writable_bytes(rows_->values(std::size_t(g), t)));
    }
    what.message = wire::pack(request);
    if (wanted > 0) calls.push_back({std::size_t(placement_->source(g, rank_)), std::move(what)});
  }
  for (std::size_t t = 0; t < rows.tables(); ++t)
    here.pull_rows(t, rows_->ids(std::size_t(mine), t), rows_->values(std::size_t(mine), t));
  if (!calls.empty()) options_.call(std::move(calls));
  for (std::size_t t = 0; t < rows.tables(); ++t) rows_->gather(t, rows.rows(t));
}

EDL_INLINE void row_shares::stepped() {
  due_ = !divided_ && placement_->groups() > 1 && row_bytes() > options_.small;
}

EDL_INLINE bool row_shares::divide() {
  if (!std::exchange(due_, false)) return false;
  element_range const slots = own();
  options_.on_node([&] { options_.store->hold(slots); });
  has_ = slots_in(slots);
  return divided_ = true;
}

}  // namespace edl::replica
