// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <exception>
#include <limits>
#include <unordered_map>
#include <utility>

#include "edl/compute/sparse/table.hpp"
#include "edl/compute/sparse/table_snapshot.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::sparse {

namespace detail {

inline std::uint32_t most_of_slot(std::uint64_t most_rows) {
  std::uint64_t const most = (most_rows + hash_slots - 1) / hash_slots;
  return most == 0 ? std::numeric_limits<std::uint32_t>::max()
                   : std::uint32_t(std::min<std::uint64_t>(most, std::numeric_limits<std::uint32_t>::max()));
}

/// How many ids ahead memory is prefetched: the hash slot first, then its index, then the row. A fetch takes
/// about as long as copying a dozen rows.
inline constexpr std::size_t slot_ahead = 48, index_ahead = 32, row_ahead = 16;
inline constexpr std::size_t ids_worth_sharing = 1000;
inline constexpr std::size_t rows_at_once = 32;  // of a step: few enough for the nearest cache

inline void prefetch(row r, std::size_t bytes) {
  auto const* const from = reinterpret_cast<char const*>(r.header);
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 1);
}

}  // namespace detail

/// The ids of a call, grouped by stripe, in their order within each.
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
    invariant(first[stripes] == ids.size(), "each id is in one stripe");
    auto next = first;
    for (std::size_t i = 0; i < ids.size(); ++i)
      items[next[stripe_of(ids[i])]++] = {ids[i], std::uint32_t(i)};
  }

  static std::uint32_t stripe_of(std::uint64_t id) { return id_hash(id).slot() / slots_per_stripe; }

  std::span<item const> of(std::size_t s) const {
    return std::span(items).subspan(first[s], first[s + 1] - first[s]);
  }

  /// Calls visit(item, its probable row) for each, with memory prefetched. `bytes`: how much of each row the
  /// visit reads or writes.
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
      format_(std::size_t(std::max(options_.width, 0)), slot_initials_.size(), options_.policy.values,
              options_.watches_memory),
      most_(detail::most_of_slot(options_.policy.most_rows)),
      stripes_(std::make_unique<stripe[]>(stripes)),
      rows_(format_.memory()),
      candidates_(0),
      removed_(options_.remembers_removed) {
  if (options_.width < 1 || options_.width > 65536)
    throw usage_error(fmt::format("a table of width {}: rows have 1 to 65,536 values", options_.width));
  if (options_.policy.admission < 1)
    throw usage_error(
        fmt::format("a table of admission {}: an id gets its row by the first minibatch that has it, or a "
                    "later one",
                    options_.policy.admission));
}

/// Calls work(stripe number) for each stripe, on several threads if that pays.
template <class Work>
void table::each_stripe(std::size_t ids, Work const& work) const {
  if (!options_.share || ids < detail::ids_worth_sharing) {
    for (std::uint32_t s = 0; s < stripes; ++s) work(s);
    return;
  }
  std::atomic<std::uint32_t> next{0};
  std::exception_ptr failed;
  std::mutex of_failed;
  options_.share([&](int) {
    try {
      for (std::uint32_t s = next++; s < stripes; s = next++) work(s);
    } catch (...) {
      std::lock_guard const lock(of_failed);
      failed = std::current_exception();
    }
  });
  if (failed) std::rethrow_exception(failed);
}

EDL_INLINE void table::draw(std::uint64_t id, float* to) const {
  std::span<float> const all(to, std::size_t(options_.width));
  nn::fill<float>(options_.initial, {options_.width}, random_stream{options_.seed, 0}.child(id), 0, all);
  if (options_.policy.values == nn::row_values::bfloat16)
    for (float& x : all) x = from_bfloat16(to_bfloat16(x));
}

EDL_INLINE void table::initialise(row r) const {
  auto const w = std::size_t(options_.width);
  if (options_.policy.values == nn::row_values::float32) {
    draw(r.header->id, r.values());
  } else {
    std::vector<float> weights(w);
    draw(r.header->id, weights.data());
    format_.write_weights(r, weights.data());
  }
  for (std::size_t s = 0; s < slot_initials_.size(); ++s)
    std::fill_n(format_.slot(r, s), w, slot_initials_[s]);
  format_.note(r);
}

EDL_INLINE void table::check(row r) const {
  if (!format_.intact(r))
    throw memory_fault(
        fmt::format("this machine's memory corrupts data: the row of id {} has "
                    "changed without a "
                    "step",
                    r.header->id));
}

EDL_INLINE void table::pull(view<std::uint64_t> ids, std::span<float> to) const {
  auto const w = std::size_t(options_.width);
  invariant(to.size() >= ids.size() * w, "the buffer holds the row of each id");
  batch const all(ids);
  each_stripe(ids.size(), [&](std::uint32_t s) {
    stripe const& own = stripes_[s];
    std::lock_guard const lock(own.mutex);
    auto const slot_of = [&](id_hash h) -> hash_slot const& { return own.slots[within(h)]; };
    batch::each(all.of(s), slot_of, rows_, sizeof(row_header) + format_.weight_bytes(),
                [&](batch::item const& i, row r) {
                  float* const out = &to[i.place * w];
                  if (!r || r.header->id != i.id) r = slot_of(id_hash(i.id)).find(i.id, id_hash(i.id), rows_);
                  if (r)
                    format_.read_weights(r, out);
                  else
                    draw(i.id, out);
                });
  });
}

EDL_INLINE void table::read(std::uint64_t id, std::span<float> to) const {
  invariant(to.size() >= std::size_t(options_.width), "the buffer holds a row");
  id_hash const h(id);
  stripe const& own = stripes_[h.slot() / slots_per_stripe];
  std::lock_guard const lock(own.mutex);
  if (row const r = own.slots[within(h)].find(id, h, rows_))
    format_.read_weights(r, to.data());
  else
    draw(id, to.data());
}

// The optimiser's step gives the same bits however its span is cut (compute/optim/optimizer.hpp), so
// scattered rows are gathered first: one call per row would cost more than the step.
EDL_INLINE void table::apply(std::span<row const> rows, view<float> gradients, float learning_rate,
                             std::uint64_t step, std::vector<float>& scratch) const {
  auto const w = std::size_t(options_.width), n = rows.size() * w;
  invariant(gradients.size() == n, "each row of a step has its gradient");
  invariant(rows.size() <= detail::rows_at_once, "no more rows make a step at once than a cache holds");
  scratch.resize((1 + slot_initials_.size()) * n);
  std::vector<std::span<float>> slots;
  for (row const r : rows) check(r);
  for (std::size_t i = 0; i < rows.size(); ++i) format_.read_weights(rows[i], &scratch[i * w]);
  for (std::size_t p = 0; p < slot_initials_.size(); ++p) {
    float* const to = &scratch[(p + 1) * n];
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(to + i * w, format_.slot(rows[i], p), w * sizeof(float));
    slots.emplace_back(to, n);
  }
  rule_.apply({scratch.data(), n}, gradients, slots, learning_rate, step);
  for (std::size_t i = 0; i < rows.size(); ++i)
    format_.write_weights_by_chance(rows[i], &scratch[i * w], options_.seed);
  for (std::size_t p = 0; p < slot_initials_.size(); ++p)
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(format_.slot(rows[i], p), &scratch[(p + 1) * n + i * w], w * sizeof(float));
  for (row const r : rows) format_.note(r);
}

EDL_INLINE void table::push(view<std::uint64_t> ids, view<float> gradients, float learning_rate,
                            std::uint64_t step, std::uint32_t clock) {
  auto const w = std::size_t(options_.width);
  invariant(gradients.size() == ids.size() * w, "each id that is pushed has a gradient");
  batch const all(ids);
  each_stripe(ids.size(), [&](std::uint32_t s) {
    std::vector<row> rows;
    std::vector<float> together, scratch;
    stripe& own = stripes_[s];
    std::lock_guard const lock(own.mutex);
    bool moved = false;  // rows have moved, so the guesses are void
    auto const slot_of = [&](id_hash h) -> hash_slot& { return own.slots[within(h)]; };
    auto const flush = [&] {
      if (rows.empty()) return;
      apply(rows, together, learning_rate, step, scratch);
      rows.clear();
      together.clear();
    };
    auto const row_of = [&](std::uint64_t id, row guess) {
      if (guess && !moved && guess.header->id == id) return guess;
      hash_slot& slot = slot_of(id_hash(id));
      if (row const found = slot.find(id, id_hash(id), rows_)) return found;
      std::uint32_t const uses = admit(own, id, clock);
      if (uses == 0) return row{};
      if (is_full(slot)) {
        flush();  // rows that await their step are known by address, so before any row moves
        make_room(own, slot, true);
        moved = true;
      }
      row const fresh = create(own, id);
      initialise(fresh);
      fresh.header->uses = uses - 1;
      return fresh;
    };
    batch::each(all.of(s), slot_of, rows_, rows_.row_bytes(), [&](batch::item const& i, row guess) {
      row const r = row_of(i.id, guess);
      if (!r) return;
      keep(own, r);
      r.header->last_use = clock;
      r.header->uses += r.header->uses != std::numeric_limits<std::uint32_t>::max();
      // A repeated row makes its second step on the result of the first.
      bool const again =
          std::ranges::any_of(rows, [&](row const& other) { return other.header == r.header; });
      if (again || rows.size() == detail::rows_at_once) flush();
      rows.push_back(r);
      auto const g = gradients.subspan(i.place * w, w);
      together.insert(together.end(), g.begin(), g.end());
    });
    flush();
  });
}

EDL_INLINE void table::assign(std::uint64_t id, view<float> weights) {
  std::vector<float> values(weights.begin(), weights.end());
  for (float const initial : slot_initials_) values.insert(values.end(), weights.size(), initial);
  put({.id = id, .last_use = 0, .uses = 0}, values);
}

EDL_INLINE void table::for_each(std::uint32_t number,
                                std::function<void(row_header const&, view<float>)> const& visit) const {
  std::vector<float> values(format_.values());
  std::lock_guard const lock(stripes_[number / slots_per_stripe].mutex);
  slot(number).for_each(rows_, [&](row r) {
    check(r);
    visit(*r.header, format_.look(r, values));
  });
}

EDL_INLINE void table::for_each_candidate(std::uint32_t number,
                                          std::function<void(row_header const&)> const& visit) const {
  std::lock_guard const lock(stripes_[number / slots_per_stripe].mutex);
  candidates(number).for_each(candidates_, [&](row r) { visit(*r.header); });
}

EDL_INLINE table_counts table::counts() const {
  table_counts n{.evicted = evicted_};
  for (std::size_t s = 0; s < stripes; ++s) {
    std::lock_guard const lock(stripes_[s].mutex);
    for (hash_slot const& slot : stripes_[s].slots) n.rows += slot.size();
    for (hash_slot const& slot : stripes_[s].candidates) n.candidates += slot.size();
  }
  return n;
}

EDL_INLINE std::size_t table::bytes() const {
  std::size_t n = rows_.bytes() + candidates_.bytes() + stripes * sizeof(stripe);
  for (std::size_t s = 0; s < stripes; ++s) {
    std::lock_guard const lock(stripes_[s].mutex);
    for (hash_slot const& slot : stripes_[s].slots) n += slot.index_bytes();
    for (hash_slot const& slot : stripes_[s].candidates) n += slot.index_bytes();
  }
  return n;
}

EDL_INLINE std::size_t table::payload() const { return size() * format_.payload() * sizeof(float); }

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
  invariant(out.place.size() == ids.size() && out.gradients.size() == out.ids.size() * w,
            "each id that came has its place among the sums");
  return out;
}

}  // namespace edl::sparse
