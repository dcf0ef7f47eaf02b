// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/compute/sparse/row_bytes.hpp"
#include "edl/compute/sparse/table_snapshot.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/digest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/ps/table_rows.hpp"

namespace edl::ps {
namespace detail {

/// A snapshot, and the table on which it depends.
struct held_snapshot {
  explicit held_snapshot(std::shared_ptr<sparse::table> t) : table(std::move(t)), snapshot(*table) {}

  std::shared_ptr<sparse::table> table;
  sparse::table_snapshot snapshot;
};

EDL_INLINE bool within(element_range slots, std::uint64_t id) {
  std::size_t const slot = sparse::id_hash(id).slot();
  return slot >= slots.first && slot < slots.last;
}

/// The checksum of these rows.
EDL_INLINE std::uint64_t sum_of(row_update const& rows, std::size_t width, std::size_t first,
                                std::size_t last) {
  return digest(view<float>(rows.values).subspan(first * width, (last - first) * width),
                digest(view<std::uint64_t>(rows.ids).subspan(first, last - first)));
}

/// Whether accumulated rows are unchanged since they were added.
EDL_INLINE bool as_added(row_update const& rows, std::size_t width) {
  std::size_t first = 0;
  return std::ranges::all_of(rows.pieces, [&](row_update::piece const& p) {
    return sum_of(rows, width, std::exchange(first, p.end), p.end) == p.sum;
  });
}

}  // namespace detail

EDL_INLINE table_rows::table_rows(store_options const& o)
    : layout_(o.layout),
      options_(o.tables),
      rule_(o.rule),
      rates_(o.rates),
      counted_(o.slots),
      held_(o.slots),
      gone_(o.tables.size(), 0) {
  if (options_.size() != layout_.tables.size())
    throw error(
        fmt::format("the store has {} tables, but the model has {}", options_.size(), layout_.tables.size()));
  take(empty());
}

EDL_INLINE table_rows::table_list table_rows::empty() const {
  table_list all;
  for (sparse::table_options const& o : options_)
    all.push_back(std::make_shared<sparse::table>(o, rule_.of_table(all.size())));
  return all;
}

EDL_INLINE void table_rows::pull(std::size_t table, view<std::uint64_t> ids, std::span<float> to) const {
  tables_.at(table)->pull(ids, to);
}

EDL_INLINE bool table_rows::has_all(view<std::uint64_t> ids) const {
  return held_.size() == sparse::hash_slots ||
         std::ranges::all_of(ids, [&](std::uint64_t id) { return detail::within(held_, id); });
}

EDL_INLINE void table_rows::put(std::size_t table, bytes rows, bytes candidates) {
  sparse::table& into = *tables_.at(table);
  auto const put = [&](sparse::row_header const& header, view<float> values) {
    if (!detail::within(held_, header.id))
      throw error(fmt::format("the row of id {} belongs to another process", header.id));
    into.put(header, values);
  };
  sparse::for_each_row(rows, into.values(), put);
  sparse::for_each_row(candidates, 0, put);
}

EDL_INLINE table_rows::table_list table_rows::of(element_range slots) const {
  table_list some = empty();
  for (std::size_t t = 0; t < tables_.size(); ++t)
    for (auto s = std::uint32_t(slots.first); s < slots.last; ++s) {
      tables_[t]->for_each(s,
                           [&](sparse::row_header const& h, view<float> values) { some[t]->put(h, values); });
      tables_[t]->for_each_candidate(s, [&](sparse::row_header const& h) { some[t]->put(h, {}); });
    }
  return some;
}

EDL_INLINE std::vector<checkpoint::segment> table_rows::read(std::string const& path,
                                                             table_list& into) const {
  if (into.empty()) return {};
  return checkpoint::read_rows(
      path, layout_, counted_, held_, rule_.slots(),
      {.remove = [&](std::size_t t, std::uint64_t id) { into[t]->remove(id); },
       .put = [&](std::size_t t, sparse::row_header const& h, view<float> row) { into[t]->put(h, row); }});
}

EDL_INLINE void table_rows::take(table_list tables) {
  invariant(tables.size() == options_.size(), "a store has the tables of its model");
  tables_ = std::move(tables);
  chain_ = std::make_shared<checkpoint::row_chain>();
}

EDL_INLINE table_rows::table_list table_rows::hold(element_range slots, std::optional<table_list> tables) {
  invariant(overlap(slots, counted_).size() == slots.size(),
            "rows that are held are of the store's hash slots");
  table_list old;
  if (tables) {
    for (std::size_t t = 0; t < tables_.size(); ++t) gone_[t] += tables_[t]->counts().evicted;
    old = std::exchange(tables_, *std::move(tables));
  }
  if (tables || slots != held_) chain_ = std::make_shared<checkpoint::row_chain>();
  held_ = slots;
  return old;
}

EDL_INLINE void table_rows::seed(std::span<std::uint64_t const> seeds) {
  for (std::size_t t = 0; t < options_.size(); ++t) options_[t].seed = seeds[t];
  take(empty());
}

EDL_INLINE std::string table_rows::describe() const {
  std::string all;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    sparse::table_counts const n = tables_[t]->counts();
    all += fmt::format("{}table '{}': {}", t == 0 ? "" : "; ", layout_.tables[t].name,
                       edl::counted(n.rows, "row"));
    if (n.candidates > 0)
      all += fmt::format(", {}", edl::counted(n.candidates, "id waits for a row", "ids wait for rows"));
    if (std::uint64_t const gone = gone_[t] + n.evicted; gone > 0)
      all += fmt::format(", {} gone since this process began", edl::counted(gone, "is", "are"));
  }
  return all;
}

EDL_INLINE void table_rows::set(std::size_t table, view<std::uint64_t> ids, view<float> weights) {
  auto const width = std::size_t(tables_.at(table)->width());
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (detail::within(held_, ids[i])) tables_[table]->assign(ids[i], weights.subspan(i * width, width));
}

EDL_INLINE void table_rows::check(std::span<sparse::row_gradients const> rows,
                                  std::function<void(std::string const&)> const& fail) const {
  if (rows.size() != tables_.size())
    fail(fmt::format("it has rows of {} tables, but this server keeps {}", rows.size(), tables_.size()));
  for (std::size_t t = 0; t < rows.size(); ++t) {
    auto const& [ids, gradients] = rows[t];
    if (gradients.size() != ids.size() * std::size_t(tables_[t]->width()))
      fail(fmt::format("it has {} gradients for {} rows of table {}, which are {} wide", gradients.size(),
                       ids.size(), t, tables_[t]->width()));
    if (counted_.size() == sparse::hash_slots) continue;
    for (std::uint64_t id : ids)
      if (!detail::within(counted_, id)) fail(fmt::format("id {} belongs to another server", id));
  }
}

EDL_INLINE void table_rows::step(element_range slots, std::span<sparse::row_gradients const> rows, float rate,
                                 std::uint64_t made) {
  float const learning_rate = rate * rule_.learning_rate(made);
  for (std::size_t t = 0; t < rows.size(); ++t) {
    auto const push = [&](view<std::uint64_t> ids, view<float> slopes) {
      tables_[t]->push(ids, slopes, rates_.of_table(t) * learning_rate, made, std::uint32_t(made));
    };
    if (slots == held_) {
      push(rows[t].ids, rows[t].gradients);
      continue;
    }
    row_update own;
    add(own, slots, rows[t], t);
    push(own.ids, own.values);
  }
  // One hash slot per step: little work, which visits each slot in turn, in the same order on any store.
  auto const slot = std::uint32_t(made % sparse::hash_slots);
  if (slot >= slots.first && slot < slots.last)
    for (auto const& t : tables_) t->sweep(slot, std::uint32_t(made));
}

EDL_INLINE void table_rows::add(row_update& to, element_range slots, sparse::row_gradients const& rows,
                                std::size_t table) const {
  auto const width = std::size_t(tables_[table]->width());
  element_range const own = overlap(slots, held_);
  for (std::size_t i = 0; i < rows.ids.size(); ++i) {
    if (!detail::within(own, rows.ids[i])) continue;
    auto const slope = rows.gradients.subspan(i * width, width);
    to.ids.push_back(rows.ids[i]);
    to.values.insert(to.values.end(), slope.begin(), slope.end());
  }
}

EDL_INLINE void table_rows::accumulate(std::vector<row_update>& to, element_range slots,
                                       std::span<sparse::row_gradients const> rows) const {
  to.resize(rows.size());
  for (std::size_t t = 0; t < rows.size(); ++t) {
    std::size_t const before = to[t].ids.size();
    add(to[t], slots, rows[t], t);
    if (std::size_t const now = to[t].ids.size(); options_[t].watches_memory)
      to[t].pieces.push_back({now, detail::sum_of(to[t], std::size_t(tables_[t]->width()), before, now)});
  }
}

EDL_INLINE void table_rows::step_mean(element_range slots, std::vector<row_update> const& sums, float divisor,
                                      float rate, std::uint64_t made) {
  std::vector<sparse::summed_gradients> each;
  std::vector<sparse::row_gradients> means;
  for (std::size_t t = 0; t < sums.size(); ++t) {
    if (!detail::as_added(sums[t], std::size_t(tables_[t]->width())))
      throw memory_fault(
          fmt::format("accumulated gradients of rows of table '{}' have changed without a push: the memory "
                      "of this machine may be faulty",
                      layout_.tables[t].name));
    each.push_back(sparse::sum_duplicates(sums[t].ids, sums[t].values, tables_[t]->width()));
    for (float& sum : each.back().gradients) sum /= divisor;
  }
  for (auto const& sum : each) means.push_back({sum.ids, sum.gradients});
  step(slots, means, rate, made);
}

EDL_INLINE void table_rows::snapshot_into(ps::full_snapshot& all) const {
  all.hash_slots = held_;
  all.chain = chain_;
  for (auto const& of : tables_) {
    auto const both = std::make_shared<detail::held_snapshot>(of);
    all.tables.emplace_back(both, &both->snapshot);
  }
}

}  // namespace edl::ps
