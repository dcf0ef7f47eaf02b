// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/sparse/table.hpp"
#include "edl/sparse/table_cut.hpp"

namespace edl::sparse {

namespace detail {

/// How many ids ahead memory is asked for: the hash slot first, then its index, then the row. A fetch takes
/// about as long as a dozen rows are copied.
inline constexpr std::size_t slot_ahead = 48, index_ahead = 32, row_ahead = 16;
inline constexpr std::size_t rows_at_once = 32;  // of a step: few enough for the nearest cache

inline void prefetch(row r, std::size_t bytes) {
  auto const* const from = reinterpret_cast<char const*>(r.header);
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 1);
}

}  // namespace detail

/// The ids of a call by stripe, in their order within each.
struct table::batch {
  struct item {
    std::uint64_t id;
    std::uint32_t place;  // in the call
  };
  std::vector<item> items;
  std::array<std::uint32_t, stripes + 1> first{};

  explicit batch(view<std::uint64_t> ids) : items(ids.size()) {
    if (ids.size() > std::numeric_limits<std::uint32_t>::max()) throw usage_error("too many ids in one call");
    for (std::uint64_t id : ids) ++first[stripe_of(id) + 1];
    for (std::size_t s = 0; s < stripes; ++s) first[s + 1] += first[s];
    auto next = first;
    for (std::size_t i = 0; i < ids.size(); ++i)
      items[next[stripe_of(ids[i])]++] = {ids[i], std::uint32_t(i)};
  }

  static std::uint32_t stripe_of(std::uint64_t id) { return id_hash(id).slot() / slots_per_stripe; }

  std::span<item const> of(std::size_t s) const {
    return std::span(items).subspan(first[s], first[s + 1] - first[s]);
  }

  /// Calls visit(item, the row that probably is its own) for each, with memory on its way before. `bytes`:
  /// how much of each row is read or written.
  template <class Slots, class Visit>
  static void each(std::span<item const> items, Slots&& slot_of, row_memory const& rows, std::size_t bytes,
                   Visit&& visit) {
    std::array<row, std::bit_ceil(detail::row_ahead + 1)> guesses;
    std::size_t const n = items.size();
    for (std::size_t i = 0; i < n + detail::slot_ahead; ++i) {
      if (i < n) __builtin_prefetch(&slot_of(id_hash(items[i].id)));
      if (std::size_t const j = i - (detail::slot_ahead - detail::index_ahead); j < n) {
        id_hash const h(items[j].id);
        slot_of(h).prefetch_index(h);
      }
      if (std::size_t const j = i - (detail::slot_ahead - detail::row_ahead); j < n) {
        id_hash const h(items[j].id);
        row const r = slot_of(h).guess(h, rows);
        guesses[j % guesses.size()] = r;
        if (r) detail::prefetch(r, bytes);
      }
      if (std::size_t const j = i - detail::slot_ahead; j < n) visit(items[j], guesses[j % guesses.size()]);
    }
  }
};

EDL_INLINE table::table(table_options o, update_rule const& rule)
    : options_(o),
      rule_(rule),
      slot_initials_([&] {
        std::vector<float> all(rule.slots().size());
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = rule.initial(i);
        return all;
      }()),
      values_(std::size_t(std::max(options_.width, 0)) * (1 + slot_initials_.size())),
      stripes_(std::make_unique<stripe[]>(stripes)),
      rows_(values_) {
  if (options_.width < 1 || options_.width > 65536)
    throw usage_error(fmt::format("a table of width {}: rows have 1 to 65,536 values", options_.width));
}

EDL_INLINE void table::draw(std::uint64_t id, std::span<float> to) const {
  nn::fill<float>(options_.initial, {options_.width}, random_stream{options_.seed, 0}.child(id), 0, to);
}

EDL_INLINE void table::initialise(row r) const {
  auto const w = std::size_t(options_.width);
  draw(r.header->id, {r.values(), w});
  for (std::size_t s = 0; s < slot_initials_.size(); ++s)
    std::fill_n(r.values() + w * (s + 1), w, slot_initials_[s]);
}

EDL_INLINE row table::found_or_new(stripe& s, std::uint64_t id, row guess) {
  if (guess && guess.header->id == id) return guess;
  id_hash const h(id);
  hash_slot& own = s.slots[h.slot() % slots_per_stripe];
  row r = own.find(id, h, rows_);
  if (r) return r;
  initialise(r = own.insert(id, h, rows_));
  keep(s, r, true);
  return r;
}

EDL_INLINE void table::pull(view<std::uint64_t> ids, std::span<float> to) const {
  auto const w = std::size_t(options_.width);
  batch const all(ids);
  for (std::size_t s = 0; s < stripes; ++s) {
    stripe const& own = stripes_[s];
    std::lock_guard const lock(own.mutex);
    auto const slot_of = [&](id_hash h) -> hash_slot const& {
      return own.slots[h.slot() % slots_per_stripe];
    };
    batch::each(all.of(s), slot_of, rows_, sizeof(row_header) + w * sizeof(float),
                [&](batch::item const& i, row r) {
                  auto const out = to.subspan(i.place * w, w);
                  if (!r || r.header->id != i.id) r = slot_of(id_hash(i.id)).find(i.id, id_hash(i.id), rows_);
                  if (r)
                    std::memcpy(out.data(), r.values(), w * sizeof(float));
                  else
                    draw(i.id, out);
                });
  }
}

// The optimiser's step gives the same bits however its span is cut (optim/optimizer.hpp), so rows that lie
// apart are brought together for it: a call each would cost more than the step.
EDL_INLINE void table::apply(std::span<row const> rows, view<float> gradients, float learning_rate,
                             std::uint64_t step, std::vector<float>& scratch) const {
  auto const w = std::size_t(options_.width), parts = 1 + slot_initials_.size(), n = rows.size() * w;
  scratch.resize(parts * n);
  std::vector<std::span<float>> slots;
  for (std::size_t p = 0; p < parts; ++p) {
    float* const to = &scratch[p * n];
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(to + i * w, rows[i].values() + p * w, w * sizeof(float));
    if (p > 0) slots.emplace_back(to, n);
  }
  rule_.apply({scratch.data(), n}, gradients, slots, learning_rate, step);
  for (std::size_t p = 0; p < parts; ++p)
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(rows[i].values() + p * w, &scratch[p * n + i * w], w * sizeof(float));
}

EDL_INLINE void table::push(view<std::uint64_t> ids, view<float> gradients, float learning_rate,
                            std::uint64_t step, std::uint32_t clock) {
  auto const w = std::size_t(options_.width);
  batch const all(ids);
  std::vector<row> rows;
  std::vector<float> together, scratch;
  for (std::size_t s = 0; s < stripes; ++s) {
    stripe& own = stripes_[s];
    std::lock_guard const lock(own.mutex);
    auto const slot_of = [&](id_hash h) -> hash_slot& { return own.slots[h.slot() % slots_per_stripe]; };
    auto const flush = [&] {
      if (rows.empty()) return;
      apply(rows, together, learning_rate, step, scratch);
      rows.clear();
      together.clear();
    };
    batch::each(all.of(s), slot_of, rows_, rows_.row_bytes(), [&](batch::item const& i, row guess) {
      row const r = found_or_new(own, i.id, guess);
      keep(own, r);
      r.header->last_use = clock;
      r.header->uses += r.header->uses != std::numeric_limits<std::uint32_t>::max();
      // A row that comes again makes its second step on the first one's result.
      bool const again =
          std::ranges::any_of(rows, [&](row const& other) { return other.header == r.header; });
      if (again || rows.size() == detail::rows_at_once) flush();
      rows.push_back(r);
      auto const g = gradients.subspan(i.place * w, w);
      together.insert(together.end(), g.begin(), g.end());
    });
    flush();
  }
}

EDL_INLINE void table::put(row_header const& header, view<float> values) {
  if (values.size() != values_)
    throw error(fmt::format("a row of {} values for a table of {}", values.size(), values_));
  id_hash const h(header.id);
  stripe& own = stripes_[h.slot() / slots_per_stripe];
  std::lock_guard const lock(own.mutex);
  hash_slot& slot = own.slots[h.slot() % slots_per_stripe];
  row r = slot.find(header.id, h, rows_);
  bool const fresh = !r;
  if (fresh) r = slot.insert(header.id, h, rows_);
  keep(own, r, fresh);
  *r.header = header;
  std::ranges::copy(values, r.values());
}

EDL_INLINE void table::assign(std::uint64_t id, view<float> weights) {
  std::vector<float> values(weights.begin(), weights.end());
  for (float const initial : slot_initials_) values.insert(values.end(), weights.size(), initial);
  put({.id = id, .last_use = 0, .uses = 0}, values);
}

EDL_INLINE void table::clear() {
  remove_if([](row_header const&) { return true; });
}

EDL_INLINE std::size_t table::remove_if(std::function<bool(row_header const&)> const& goes,
                                        std::function<void(std::uint64_t id)> const& removed) {
  std::size_t n = 0;
  std::vector<std::uint64_t> out;
  for (std::size_t s = 0; s < stripes; ++s) {
    std::lock_guard const lock(stripes_[s].mutex);
    for (hash_slot& slot : stripes_[s].slots) {
      out.clear();
      slot.for_each(rows_, [&](row r) {
        if (goes(*r.header)) out.push_back(r.header->id);
      });
      for (std::uint64_t id : out) {
        if (!stripes_[s].cuts.empty()) keep(stripes_[s], slot.find(id, id_hash(id), rows_));
        slot.remove(id, id_hash(id), rows_);
        if (removed) removed(id);
      }
      n += out.size();
    }
  }
  return n;
}

EDL_INLINE void table::for_each(std::uint32_t number,
                                std::function<void(row_header const&, view<float>)> const& visit) const {
  std::lock_guard const lock(stripes_[number / slots_per_stripe].mutex);
  slot(number).for_each(rows_, [&](row r) { visit(*r.header, {r.values(), values_}); });
}

EDL_INLINE std::uint64_t table::size() const {
  std::uint64_t n = 0;
  for (std::size_t s = 0; s < stripes; ++s) {
    std::lock_guard const lock(stripes_[s].mutex);
    for (hash_slot const& slot : stripes_[s].slots) n += slot.size();
  }
  return n;
}

EDL_INLINE std::size_t table::bytes() const {
  std::size_t n = rows_.bytes() + stripes * sizeof(stripe);
  for (std::size_t s = 0; s < stripes; ++s) {
    std::lock_guard const lock(stripes_[s].mutex);
    for (hash_slot const& slot : stripes_[s].slots) n += slot.index_bytes();
  }
  return n;
}

EDL_INLINE std::size_t table::payload() const { return size() * values_ * sizeof(float); }

EDL_INLINE summed_gradients sum_duplicates(view<std::uint64_t> ids, view<float> gradients, int width) {
  auto const w = std::size_t(width);
  summed_gradients out;
  out.place.reserve(ids.size());
  std::unordered_map<std::uint64_t, std::uint32_t> number;
  number.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto const g = gradients.subspan(i * w, w);
    auto const [at, fresh] = number.try_emplace(ids[i], std::uint32_t(out.ids.size()));
    out.place.push_back(at->second);
    if (fresh) {
      out.ids.push_back(ids[i]);
      out.gradients.insert(out.gradients.end(), g.begin(), g.end());
    } else {
      float* const sum = &out.gradients[at->second * w];
      for (std::size_t k = 0; k < w; ++k) sum[k] += g[k];
    }
  }
  return out;
}

}  // namespace edl::sparse
