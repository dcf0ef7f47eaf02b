// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/ps/store.hpp"
#include "edl/sparse/row_bytes.hpp"
#include "edl/sparse/table_snapshot.hpp"

/// What of a store concerns rows of tables.
namespace edl::ps {
namespace detail {

/// A snapshot, and the table that it needs.
struct held_snapshot {
  explicit held_snapshot(std::shared_ptr<sparse::table> table) : of(std::move(table)), snapshot(*of) {}

  std::shared_ptr<sparse::table> of;
  sparse::table_snapshot snapshot;
};

EDL_INLINE bool within(element_range slots, std::uint64_t id) {
  std::size_t const slot = sparse::id_hash(id).slot();
  return slot >= slots.first && slot < slots.last;
}

}  // namespace detail

EDL_INLINE store::table_list store::new_tables() const {
  table_list all;
  for (sparse::table_options const& o : options_.tables)
    all.push_back(std::make_shared<sparse::table>(o, options_.rule.of_table(all.size())));
  return all;
}

EDL_INLINE void store::pull_rows(std::size_t table, view<std::uint64_t> ids, std::span<float> to) const {
  tables_.at(table)->pull(ids, to);
}

EDL_INLINE bool store::has_all(view<std::uint64_t> ids) const {
  return held_.size() == sparse::hash_slots ||
         std::ranges::all_of(ids, [&](std::uint64_t id) { return detail::within(held_, id); });
}

EDL_INLINE void store::put_rows(std::size_t table, bytes rows, bytes candidates) {
  sparse::table& into = *tables_.at(table);
  auto const put = [&](sparse::row_header const& header, view<float> values) {
    if (!detail::within(held_, header.id))
      throw error(fmt::format("the row of id {} belongs elsewhere", header.id));
    into.put(header, values);
  };
  sparse::for_each_row(rows, into.values(), put);
  sparse::for_each_row(candidates, 0, put);
}

EDL_INLINE store::table_list store::rows_of(element_range slots) const {
  table_list some = new_tables();
  for (std::size_t t = 0; t < tables_.size(); ++t)
    for (auto s = std::uint32_t(slots.first); s < slots.last; ++s) {
      tables_[t]->for_each(s,
                           [&](sparse::row_header const& h, view<float> values) { some[t]->put(h, values); });
      tables_[t]->for_each_candidate(s, [&](sparse::row_header const& h) { some[t]->put(h, {}); });
    }
  return some;
}

EDL_INLINE store::table_list store::hold(element_range slots, std::optional<table_list> tables) {
  table_list old;
  if (tables) {
    for (std::size_t t = 0; t < tables_.size(); ++t) gone_[t] += tables_[t]->counts().evicted;
    old = std::exchange(tables_, *std::move(tables));
  }
  if (tables || slots != held_) chain_ = std::make_shared<checkpoint::row_chain>();
  held_ = slots;
  return old;
}

EDL_INLINE void store::seed_tables(std::span<std::uint64_t const> seeds) {
  for (std::size_t t = 0; t < options_.tables.size(); ++t) options_.tables[t].seed = seeds[t];
  tables_ = new_tables();
  chain_ = std::make_shared<checkpoint::row_chain>();
}

EDL_INLINE std::string store::describe_tables() const {
  std::string all;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    sparse::table_counts const n = tables_[t]->counts();
    all += fmt::format("{}table '{}': {}", t == 0 ? "" : "; ", options_.layout.tables[t].name,
                       edl::counted(n.rows, "row"));
    if (n.candidates > 0)
      all += fmt::format(", {}", edl::counted(n.candidates, "id waits for a row", "ids wait for rows"));
    if (std::uint64_t const gone = gone_[t] + n.evicted; gone > 0)
      all += fmt::format(", {} gone since this process began", edl::counted(gone, "is", "are"));
  }
  return all;
}

EDL_INLINE void store::set_rows(std::size_t table, view<std::uint64_t> ids, view<float> weights) {
  auto const width = std::size_t(tables_.at(table)->width());
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (detail::within(held_, ids[i])) tables_[table]->assign(ids[i], weights.subspan(i * width, width));
}

EDL_INLINE void store::check_rows(std::span<sparse::row_gradients const> rows,
                                  std::function<void(std::string const&)> const& fail) const {
  if (rows.size() != tables_.size())
    fail(fmt::format("rows of {} tables, this server keeps {}", rows.size(), tables_.size()));
  for (std::size_t t = 0; t < rows.size(); ++t) {
    auto const& [ids, gradients] = rows[t];
    if (gradients.size() != ids.size() * std::size_t(tables_[t]->width()))
      fail(fmt::format("{} gradients for {} rows of table {}, which are {} wide", gradients.size(),
                       ids.size(), t, tables_[t]->width()));
    if (options_.slots.size() == sparse::hash_slots) continue;
    for (std::uint64_t id : ids)
      if (!detail::within(options_.slots, id)) fail(fmt::format("id {} is another server's", id));
  }
}

EDL_INLINE void store::step_rows(segment& s, std::span<sparse::row_gradients const> rows, float rate) {
  float const learning_rate = rate * options_.rule.learning_rate(s.steps);
  for (std::size_t t = 0; t < rows.size(); ++t) {
    auto const& [ids, gradients] = rows[t];
    auto const push = [&](view<std::uint64_t> of, view<float> slopes) {
      tables_[t]->push(of, slopes, options_.rates.of_table(t) * learning_rate, s.steps,
                       std::uint32_t(s.steps));
    };
    if (s.elements == held_) {
      push(ids, gradients);
      continue;
    }
    row_sums own;
    add_rows(own, s, rows[t], t);
    push(own.ids, own.gradients);
  }
  // A hash slot a step: as little as it takes to come to each in turn, and the same whoever keeps it.
  auto const slot = std::uint32_t(s.steps % sparse::hash_slots);
  if (slot >= s.elements.first && slot < s.elements.last)
    for (auto const& t : tables_) t->sweep(slot, std::uint32_t(s.steps));
  ++s.steps;
}

/// Adds those that are of the segment's hash slots, and held.
EDL_INLINE void store::add_rows(row_sums& to, segment const& s, sparse::row_gradients const& rows,
                                std::size_t table) const {
  auto const width = std::size_t(tables_[table]->width());
  element_range const own = overlap(s.elements, held_);
  for (std::size_t i = 0; i < rows.ids.size(); ++i) {
    if (!detail::within(own, rows.ids[i])) continue;
    auto const slope = rows.gradients.subspan(i * width, width);
    to.ids.push_back(rows.ids[i]);
    to.gradients.insert(to.gradients.end(), slope.begin(), slope.end());
  }
}

EDL_INLINE void store::accumulate_rows(segment& s, std::span<sparse::row_gradients const> rows) {
  s.rows.resize(rows.size());
  for (std::size_t t = 0; t < rows.size(); ++t) add_rows(s.rows[t], s, rows[t], t);
}

EDL_INLINE void store::step_mean_rows(segment& s, std::vector<row_sums> const& sums, float divisor,
                                      float rate) {
  std::vector<sparse::summed_gradients> each;
  std::vector<sparse::row_gradients> means;
  for (std::size_t t = 0; t < sums.size(); ++t) {
    each.push_back(sparse::sum_duplicates(sums[t].ids, sums[t].gradients, tables_[t]->width()));
    for (float& sum : each.back().gradients) sum /= divisor;
  }
  for (auto const& sum : each) means.push_back({sum.ids, sum.gradients});
  step_rows(s, means, rate);
}

EDL_INLINE void store::apply_waiting_rows(segment& s) {
  step_mean_rows(s, std::exchange(s.rows, {}), float(s.waiting.size()), s.rate);
}

EDL_INLINE void store::snapshot_rows(ps::full_snapshot& into) const {
  into.hash_slots = held_;
  into.chain = chain_;
  for (auto const& of : tables_) {
    auto const both = std::make_shared<detail::held_snapshot>(of);
    into.tables.emplace_back(both, &both->snapshot);
  }
}

}  // namespace edl::ps
