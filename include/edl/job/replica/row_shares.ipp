// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/checkpoint/rows.hpp"
#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/message.hpp"
#include "edl/base/wire/method.hpp"
#include "edl/base/wire/row_copy.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/replica/row_shares.hpp"

namespace edl::replica {
namespace detail {

inline constexpr element_range all_slots{0, sparse::hash_slots};
inline constexpr std::size_t mebibyte = std::size_t{1} << 20;
inline constexpr std::chrono::minutes rows_in{10};  // a stalled connection is given up much earlier

/// The size in bytes of the files of rows of a checkpoint or an exported model; 0: it has none.
EDL_INLINE std::size_t bytes_of_rows(std::string const& from) {
  if (from.empty()) return 0;
  std::error_code not_there;  // the code that reads the file reports a missing one
  if (!std::filesystem::is_directory(from, not_there)) {
    auto const size = std::filesystem::file_size(from, not_there);
    return not_there ? 0 : std::size_t(size);
  }
  std::size_t n = 0;
  for (auto const& f : checkpoint::read_manifest(from).files)
    if (checkpoint::is_rows(f.name)) n += std::size_t(f.bytes);
  return n;
}

}  // namespace detail

EDL_INLINE row_shares::row_shares(options o) : options_(std::move(o)) {}

EDL_INLINE void row_shares::check() const {
  invariant(placement_.has_value() && rows_.has_value(), "rows are shared in a world that was entered");
  invariant(rank_ >= 0 && rank_ < size_, "a member's rank is below the number of members");
  invariant(!divided_ || placement_->groups() > 1, "rows are divided among groups");
  invariant(!divided_ || !due_, "tables that are divided are not due to be");
}

EDL_INLINE void row_shares::enter(int size, int rank, int wanted) {
  size_ = size, rank_ = rank, wanted_ = wanted;
  placement_.emplace(std::vector<slot_set>(std::size_t(size)), options_.copies, wanted);
  rows_.emplace(options_.tables, std::uint32_t(placement_->groups()));
  invariant(rank >= 0 && rank < size, "a member's rank is below the number of members");
}

EDL_INLINE std::size_t row_shares::row_bytes() const {
  std::size_t n = 0;
  for (std::size_t t = 0; t < options_.store->rows().tables(); ++t)
    n += options_.store->rows().table(t).payload();
  return n;
}

EDL_INLINE void row_shares::prepare(std::string const& from) {
  invariant(placement_.has_value(), "a checkpoint is shared in a world that was entered");
  bool const large = placement_->groups() > 1 && detail::bytes_of_rows(from) > options_.small;
  element_range const slots = large ? own() : detail::all_slots;
  // The store's rows belong to another state.
  options_.on_node([&] { options_.store->rows().hold(slots, options_.store->rows().of({})); });
  has_ = slots_in(slots);
}

namespace detail {

// A member describes its hash slots by floats that carry 16 bits each, exactly. The other values follow.
inline constexpr std::size_t bits_per_number = 16, slot_numbers = sparse::hash_slots / bits_per_number;
inline constexpr std::size_t mebibytes_at = slot_numbers, copies_at = slot_numbers + 1,
                             small_at = slot_numbers + 2, numbers_of_member = slot_numbers + 3;

EDL_INLINE void put_slots(slot_set const& slots, std::span<float> numbers) {
  for (std::size_t i = 0; i < slot_numbers; ++i) {
    std::uint32_t word = 0;
    for (std::size_t b = 0; b < bits_per_number; ++b)
      word |= std::uint32_t(slots[i * bits_per_number + b]) << b;
    numbers[i] = float(word);
  }
}

EDL_INLINE slot_set take_slots(view<float> numbers) {
  slot_set slots;
  for (std::size_t s = 0; s < sparse::hash_slots; ++s)
    slots[s] = (std::uint32_t(numbers[s / bits_per_number]) >> s % bits_per_number & 1) != 0;
  return slots;
}

}  // namespace detail

EDL_INLINE std::vector<row_shares::holding> row_shares::exchange(collective::group& with) const {
  std::vector<float> all(std::size_t(size_) * detail::numbers_of_member, 0);
  auto const of = [&](std::size_t rank) {
    return std::span(all).subspan(rank * detail::numbers_of_member, detail::numbers_of_member);
  };
  auto const small = float(options_.small / detail::mebibyte);
  auto const mine = of(std::size_t(rank_));
  detail::put_slots(has_, mine);
  if (has_.any())
    mine[detail::mebibytes_at] = float(row_bytes() / detail::mebibyte * sparse::hash_slots / has_.count());
  mine[detail::copies_at] = float(options_.copies), mine[detail::small_at] = small;
  with.all_reduce(all);
  std::vector<holding> holdings;
  for (std::size_t r = 0; r < std::size_t(size_); ++r) {
    auto const other = of(r);
    if (other[detail::copies_at] != float(options_.copies) || other[detail::small_at] != small)
      throw error(fmt::format(
          "--table_copies={} --small_tables_mib={} here, and {} and {} on {}: start all workers "
          "of a job with the same",
          options_.copies, small, other[detail::copies_at], other[detail::small_at], options_.name(r)));
    holdings.push_back({detail::take_slots(other), std::size_t(other[detail::mebibytes_at])});
  }
  return holdings;
}

EDL_INLINE bool row_shares::gather(collective::group& with, std::uint64_t world) {
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

  placement_.emplace(each, options_.copies, wanted_);
  due_ = false;
  divided_ = placement_->groups() > 1 && (parts || large);
  element_range const wanted = divided_ ? own() : detail::all_slots;
  // Include rows that a broken world has fetched partly, so that `resolve` drops them, too.
  element_range const there_now = options_.store->rows().slots();
  options_.on_node([&] {
    options_.store->rows().hold(
        {std::min(wanted.first, there_now.first), std::max(wanted.last, there_now.last)});
  });
  fetch(holdings, wanted, world);
  check();
  return true;
}

EDL_INLINE void row_shares::resolve(collective::group& with) {
  with.barrier();
  give_up_all_but(divided_ ? own() : detail::all_slots);
}

// Works on this thread, so that the node's thread can serve others and send heartbeats.
EDL_INLINE void row_shares::give_up_all_but(element_range slots) {
  ps::store& store = *options_.store;
  if (overlap(store.rows().slots(), slots) != store.rows().slots()) {
    auto fewer = store.rows().of(slots);
    ps::table_rows::table_list old;  // freed here, because that takes long and would block the node's thread
    options_.on_node([&] { old = store.rows().hold(slots, std::move(fewer)); });
  }
  has_ = slots_in(slots);
  check();
}

// Of the members with the same rows, different members ask different ones.
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
    invariant(!holders.empty(), "every hash slot has a holder once all members have reported theirs");
    std::size_t const source = holders[std::size_t(rank_) % holders.size()];
    element_range part{at, at + 1};
    while (part.last < slots.last && !has_[part.last] && from[source].slots[part.last]) ++part.last;
    for (std::uint32_t t = 0; t < options_.store->rows().tables(); ++t)
      for (wire::row_copy copy(world, 0, t, part); !copy.done();) {
        auto const answers = options_.call(
            {{source,
              {.method = wire::method::copy_rows, .message = copy.request(), .timeout = detail::rows_in}}});
        copy.take(answers.front(), options_.name(source), [&](bytes rows, std::size_t, bytes candidates) {
          options_.on_node([&] { options_.store->rows().put(t, rows, candidates); });
        });
      }
    for (; at < part.last; ++at) has_.set(at);
  }
}

EDL_INLINE void row_shares::pull(sparse::minibatch_rows& rows, std::uint64_t world, std::uint64_t version) {
  check();
  ps::store const& here = *options_.store;
  if (!divided_) {
    for (std::size_t t = 0; t < rows.tables(); ++t) here.rows().pull(t, rows.ids(t), rows.rows(t));
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
    net::outgoing what{.method = wire::method::pull_rows,
                       .timeout = detail::rows_in,
                       .idempotent = true,
                       .patience = net::some_patience};
    std::size_t wanted = 0;
    for (std::size_t t = 0; t < rows.tables(); ++t) {
      auto const ids = rows_->ids(std::size_t(g), t);
      wanted += ids.size();
      request.add_rows(std::uint32_t(ids.size()));
      what.payload.push_back(std::as_bytes(ids));
      what.into.push_back(std::as_writable_bytes(rows_->values(std::size_t(g), t)));
    }
    what.message = wire::pack(request);
    invariant(placement_->source(g, rank_) != rank_, "rows of another group are requested from its members");
    if (wanted > 0) calls.push_back({std::size_t(placement_->source(g, rank_)), std::move(what)});
  }
  for (std::size_t t = 0; t < rows.tables(); ++t)
    here.rows().pull(t, rows_->ids(std::size_t(mine), t), rows_->values(std::size_t(mine), t));
  if (!calls.empty()) options_.call(calls);
  for (std::size_t t = 0; t < rows.tables(); ++t) rows_->gather(t, rows.rows(t));
}

EDL_INLINE void row_shares::stepped() {
  due_ = !divided_ && placement_->groups() > 1 && row_bytes() > options_.small;
}

EDL_INLINE bool row_shares::divide() {
  if (!std::exchange(due_, false)) return false;
  invariant(!divided_, "tables are divided once in a world");
  give_up_all_but(own());
  return divided_ = true;
}

}  // namespace edl::replica
