// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "edl/base/checkpoint/manifest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/ps/store.hpp"

namespace edl::ps {
namespace detail {

/// Counts the minibatches of a push that a segment lacks: how many, and their part of all by records.
inline std::pair<std::uint64_t, float> count(std::span<contribution const> minibatches, segment& in) {
  std::uint64_t counted = 0, records = 0, all = 0;
  for (contribution const& c : minibatches) {
    std::uint64_t const weight = std::max(c.records, 1u);
    all += weight;
    if (!in.counts_next(c.key)) continue;
    in.count(c);
    ++counted;
    records += weight;
  }
  return {counted, float(records) / float(all)};
}

}  // namespace detail

EDL_INLINE store::store(store_options options)
    : rule_(options.rule),
      when_(options.when),
      variables_(options),
      rows_(options),
      segments_(options.elements),
      frozen_(options) {
  std::vector<checkpoint::segment> of_rows;
  if (rows_.tables() > 0) of_rows.push_back({options.slots, 0, {}});
  segments_.start({{options.elements, 0, {}}}, std::move(of_rows));
}

EDL_INLINE void store::begin(variables::contents values, table_rows::table_list tables,
                             std::vector<checkpoint::segment> segments,
                             std::vector<checkpoint::segment> row_segments) {
  rows_.take(std::move(tables));
  segments_.start(std::move(segments), std::move(row_segments));
  version_ = segments_.steps();
  failure_.clear();
  frozen_.forget();
  variables_.take(std::move(values));
}

EDL_INLINE void store::begin_anew(variables::contents values, table_rows::table_list tables,
                                  std::uint64_t version) {
  std::vector<checkpoint::segment> of_rows;
  if (!tables.empty()) of_rows.push_back({rows_.counted(), version, {}});
  begin(std::move(values), std::move(tables), {{elements(), version, {}}}, std::move(of_rows));
}

EDL_INLINE void store::configure(std::function<void(std::size_t, std::span<float>)> const& initialise,
                                 std::uint64_t version) {
  begin_anew(variables_.initial(initialise), rows_.empty(), version);
}

EDL_INLINE void store::restore(std::string const& path, history what) {
  std::vector<checkpoint::segment> segments;
  auto values = variables_.read(path, segments);
  auto tables = rows_.empty();
  auto row_segments = rows_.read(path, tables);
  // Another job's ledger does not apply here, and all servers must agree on the version at the start.
  if (what == history::forgotten)
    return begin_anew(std::move(values), std::move(tables), checkpoint::read_manifest(path).version);
  variables_.check_segments(segments);
  begin(std::move(values), std::move(tables), std::move(segments), std::move(row_segments));
}

EDL_INLINE void store::restore(std::vector<checkpoint::segment> segments,
                               std::vector<checkpoint::segment> row_segments, view<float> values) {
  bool const rows_fit =
      rows_.tables() == 0 ? row_segments.empty() : ps::segments::cover(row_segments, rows_.counted());
  if (values.size() != copy_size() || !ps::segments::cover(segments, elements()) || !rows_fit)
    throw error("the received data is not a copy of this model's state");
  begin(variables_.copied(values), rows_.empty(), std::move(segments), std::move(row_segments));
}

EDL_INLINE void store::move_to(arena& there) {
  if (segments_.size() > 1 || rows_.tables() > 0 || when_.group() > 1 || !variables_.movable())
    throw error(
        "cannot move a store with steps of several minibatches, with a part of the model, or with a moving "
        "average");
  variables_.move_to(there);
}

EDL_INLINE void store::check_usable() const {
  if (!failure_.empty()) throw store_failure(failure_);
}

/// Runs work that counts minibatches. If it throws midway, what is counted differs from what was applied.
template <class Work>
void store::apply_or_fail(Work const& work) {
  if (variables_.elsewhere()) return work();  // the arena reports its own errors
  try {
    work();
  } catch (memory_fault const& e) {
    failure_ = e.what();
    throw store_failure(failure_);
  } catch (std::exception const& e) {
    failure_ = fmt::format("a step was applied in part, and cannot be undone: {}", e.what());
    throw store_failure(failure_);
  }
}

EDL_INLINE push_result store::push(std::span<contribution const> minibatches, std::uint64_t computed_on,
                                   view<float> gradients, view<float> state_change,
                                   std::span<sparse::row_gradients const> rows) {
  check_usable();
  if (minibatches.empty()) throw error("a push of no minibatch");
  contribution const& c = minibatches.front();
  minibatch_key const& key = c.key;
  auto const fail = [&](std::string_view what) {
    throw error(fmt::format("push of minibatch {} of {} of task {} in epoch {}: {}", key.index, key.count,
                            key.task.index, key.task.epoch, what));
  };
  if (key.index >= key.count) fail("no such minibatch");
  if (!(c.rate > 0 && c.rate <= 1)) fail(fmt::format("the factor {} of its rate is not in (0, 1]", c.rate));
  if (minibatches.size() > 1 && when_.group() > 1)
    fail("a push of several minibatches is a step, and this server averages pushes");
  if (!variables_.elsewhere() && (gradients.size() != parameters() || state_change.size() != state()))
    fail(fmt::format("it has {} gradients and {} changes of state, but this server keeps {} and {}",
                     gradients.size(), state_change.size(), parameters(), state()));
  rows_.check(rows, fail);
  if (minibatches.size() > 1)
    segments_.check_step(minibatches);
  else if (auto const first = segments_.forerunner(key))
    fail(fmt::format("minibatch {} has not arrived", *first));
  if (std::ranges::none_of(minibatches, [&](contribution const& m) { return segments_.counts_next(m.key); }))
    return {push_outcome::repeat, version_};
  if (when_.stale(version_, computed_on)) return {push_outcome::stale, version_};

  float const rate = when_.rate(version_, computed_on) * c.rate, share = when_.share(version_, computed_on);
  apply_or_fail([&] {
    for (segment& s : segments_) {
      if (when_.group() <= 1) {
        auto const [counted, part] = detail::count(minibatches, s);
        if (counted == 0) continue;
        if (s.of_rows)
          rows_.step(s.elements, rows, rate * part, s.steps);
        else
          variables_.step(s.elements, gradients, state_change, rate * part, when_.steps_made(s.steps),
                          share * part);
        s.steps += counted;
        continue;
      }
      if (!s.counts_next(key)) continue;
      bool const first = s.waiting.empty();
      if (s.of_rows)
        rows_.accumulate(s.rows, s.elements, rows);
      else
        variables_.accumulate(s.elements, gradients, state_change, first);
      s.counted.apply(c);
      s.rate = first ? rate : std::min(s.rate, rate);
      s.waiting.push_back(c);
      if (s.waiting.size() >= when_.group()) apply_waiting(s);
    }
  });
  invariant(
      std::ranges::none_of(minibatches, [&](contribution const& m) { return segments_.counts_next(m.key); }),
      "every element counts an applied minibatch");
  return advanced();
}

EDL_INLINE void store::apply_waiting(segment& s) {
  if (s.of_rows)
    rows_.step_mean(s.elements, std::exchange(s.rows, {}), float(s.waiting.size()), s.rate, s.steps);
  else
    variables_.step_accumulated(s.elements, s.waiting.size(), s.rate, s.steps);
  ++s.steps;
  for (contribution const& c : s.waiting) s.applied.apply(c);
  s.waiting.clear();
}

EDL_INLINE push_result store::step(std::span<contribution const> minibatches, std::span<float> sums,
                                   std::span<std::vector<sparse::row_gradients> const> rows) {
  check_usable();
  if (sums.size() != (variables_.elsewhere() ? 0 : elements().size()))
    throw error(fmt::format("a step has {} sums, but this store keeps {}", sums.size(), elements().size()));
  if (rows.size() != (rows_.tables() == 0 ? 0 : minibatches.size()))
    throw error(fmt::format("a step of {} minibatches has rows of {}", minibatches.size(), rows.size()));
  for (auto const& of_minibatch : rows)
    rows_.check(of_minibatch, [](std::string const& what) { throw error("a step: " + what); });
  segments_.check_step(minibatches);
  // Members may have begun their tasks before and after a reduction of the rate; all members see the same.
  float rate = 1;
  for (contribution const& c : minibatches) {
    if (!(c.rate > 0 && c.rate <= 1))
      throw error(fmt::format("a step: the factor {} of a minibatch's rate is not in (0, 1]", c.rate));
    rate = std::min(rate, c.rate);
  }
  apply_or_fail([&] {
    for (segment& s : segments_) {
      std::uint64_t records = 0;
      bool counted = false;
      std::vector<row_update> own_rows;
      for (std::size_t i = 0; i < minibatches.size(); ++i) {
        contribution const& c = minibatches[i];
        if (!s.counts_next(c.key)) continue;
        s.count(c);
        records += c.records;
        counted = true;
        if (s.of_rows) rows_.accumulate(own_rows, s.elements, rows[i]);
      }
      if (!counted) continue;
      if (s.of_rows)
        rows_.step_mean(s.elements, own_rows, float(std::max<std::uint64_t>(records, 1)), rate, s.steps);
      else
        variables_.step_sums(s.elements, sums, records, rate, s.steps);
      ++s.steps;
    }
  });
  return advanced();
}

EDL_INLINE push_result store::flush() {
  check_usable();
  apply_or_fail([&] {
    for (segment& s : segments_)
      if (!s.waiting.empty()) apply_waiting(s);
    variables_.check_memory();
  });
  return advanced();
}

EDL_INLINE void store::check_memory() const {
  check_usable();
  try {
    variables_.check_memory();
  } catch (memory_fault const& e) {
    throw store_failure(e.what());
  }
}

EDL_INLINE ps::full_snapshot store::full_snapshot() const {
  check_memory();
  ps::full_snapshot all = variables_.snapshot(version_);
  all.row_slot_names = rule_.slots();
  segments_.snapshot_into(all);
  rows_.snapshot_into(all);
  return all;
}

EDL_INLINE void store::freeze_rows() {
  if (rows_.tables() > 0) frozen_.with_rows(version_, rows_.slots(), *this);
}

EDL_INLINE push_result store::due() {
  auto const [evaluate, checkpoint] = frozen_.due(version_, *this);
  return {push_outcome::applied, version_, evaluate, checkpoint};
}

EDL_INLINE push_result store::advanced() {
  segments_.merge();
  std::uint64_t const steps = segments_.steps();
  invariant(steps >= version_, "a version does not go back");
  push_result all{push_outcome::applied, version_};
  // Servers may reach a version with different minibatches, and pass it by. All of them freeze it: what they
  // have when they have reached it.
  while (version_ < steps) {
    ++version_;
    auto const [evaluate, checkpoint] = frozen_.advanced(version_, *this);
    if (all.evaluate || all.checkpoint)
      all.passed.push_back({all.outcome, all.version, all.evaluate, all.checkpoint});
    all.version = version_, all.evaluate = evaluate, all.checkpoint = checkpoint;
  }
  return all;
}

}  // namespace edl::ps
