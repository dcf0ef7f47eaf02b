// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "edl/checkpoint/manifest.hpp"
#include "edl/checkpoint/rows.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/optim/fixed_elements.hpp"
#include "edl/ps/store.hpp"

namespace edl::ps {
namespace detail {

EDL_INLINE std::size_t parameters_among(store_options const& options) {
  auto const [first, last] = options.elements;
  if (first > last || last > options.layout.size())
    throw error(
        fmt::format("elements [{}, {}) are not in a model of {}", first, last, options.layout.size()));
  return std::min(last, options.layout.parameters) - std::min(first, options.layout.parameters);
}

inline constexpr std::size_t floats_per_line = 16;  // a cache line

EDL_INLINE void fill_slots(std::span<float> slots, std::size_t stride, update_rule const& rule,
                           std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto const slot = slots.subspan(i * stride, stride);
    std::fill(slot.begin(), slot.end(), rule.initial(i));
  }
}

}  // namespace detail

EDL_INLINE store::store(store_options options)
    : options_(options),
      rated_(options.rule, options.rates.elements),
      rule_(rated_, options.moving_average),
      parameters_(detail::parameters_among(options)),
      slot_stride_((parameters_ + detail::floats_per_line - 1) / detail::floats_per_line *
                   detail::floats_per_line),
      slot_names_(rule_.slots()),
      variables_(options.elements.size()),
      slots_(slot_stride_ * slot_names_.size(), 0),
      held_(options.slots),
      gone_(options.tables.size(), 0),
      slot_views_(slot_names_.size()),
      evaluations_(options.most_frozen),
      checkpoints_(options.most_frozen) {
  if (options.when.group() > 1) sums_.resize(options.elements.size());
  detail::fill_slots(slots_.write(), slot_stride_, rule_, slot_names_.size());
  if (options.tables.size() != options.layout.tables.size())
    throw error(fmt::format("a store of {} tables for a model of {}", options.tables.size(),
                            options.layout.tables.size()));
  tables_ = new_tables();
  start_anew(0);
}

EDL_INLINE void store::start_anew(std::uint64_t version) {
  start({{options_.elements, version, {}}}, {{options_.slots, version, {}}});
}

EDL_INLINE void store::start(std::vector<checkpoint::segment> segments,
                             std::vector<checkpoint::segment> row_segments) {
  segments_.clear();
  version_ = std::numeric_limits<std::uint64_t>::max();
  auto const add = [&](checkpoint::segment& s, bool of_rows) {
    version_ = std::min(version_, s.steps);
    segments_.push_back({.elements = s.elements,
                         .of_rows = of_rows,
                         .steps = s.steps,
                         .counted = s.ledger,
                         .applied = std::move(s.ledger),
                         .waiting = {}});
  };
  for (checkpoint::segment& s : segments) add(s, false);
  if (!tables_.empty())
    for (checkpoint::segment& s : row_segments) add(s, true);
  failure_.clear();
  evaluations_.clear();
  checkpoints_.clear();
  chain_ = std::make_shared<checkpoint::row_chain>();
  place();
}

/// Elements of one variable that have counted other minibatches than the rest make no step with it.
EDL_INLINE void store::check_cuts(std::vector<checkpoint::segment> const& segments) const {
  auto const borders = rule_.borders();
  if (borders.empty()) return;
  for (checkpoint::segment const& s : segments)
    if (!std::ranges::binary_search(borders, s.elements.first))
      throw error(fmt::format(
          "servers had counted different minibatches in parts of one variable (it has element {}), and the "
          "model's optimizer now needs variables whole: begin a new --checkpoint_dir with "
          "--checkpoint_dir_for_init, which takes the weights",
          s.elements.first));
}

EDL_INLINE void store::place() {
  behind_ = false;
  if (there_) there_->place(variables_.read(), slots_.read(), slot_stride_);
}

EDL_INLINE void store::fetch() const {
  if (!std::exchange(behind_, false)) return;
  there_->fetch(variables_.write(), slots_.write());
}

EDL_INLINE void store::move_to(arena& there) {
  if (segments_.size() > 1 || !tables_.empty() || options_.when.group() > 1 || rule_.averages() ||
      options_.elements.size() != options_.layout.size())
    throw error(
        "a store whose steps are of several minibatches, that keeps a part, or a moving average, cannot be "
        "moved");
  fetch();
  there_ = &there;
  place();
}

EDL_INLINE void store::move_back() {
  if (!there_) return;
  fetch();
  std::exchange(there_, nullptr)->leave();
}

EDL_INLINE void store::configure(std::function<void(std::size_t, std::span<float>)> const& initialise,
                                 std::uint64_t version) {
  copy_on_write variables(options_.elements.size()), slots(slot_stride_ * slot_names_.size(), 0);
  initialise(options_.elements.first, variables.write());
  detail::fill_slots(slots.write(), slot_stride_, rule_, slot_names_.size());
  variables_ = std::move(variables);
  slots_ = std::move(slots);
  tables_ = new_tables();
  start_anew(version);
}

EDL_INLINE bool store::has_average(std::string const& path) {
  auto const all = checkpoint::slots_of(path);
  return std::ranges::find(all, moving_average::slot_name) != all.end();
}

EDL_INLINE void store::restore(std::string const& path, history what) {
  copy_on_write variables(options_.elements.size()), slots(slot_stride_ * slot_names_.size(), 0);
  std::vector<std::span<float>> views;
  auto const values = slots.write();
  for (std::size_t i = 0; i < slot_names_.size(); ++i)
    views.push_back(values.subspan(i * slot_stride_, parameters_));
  std::span<std::string const> names = slot_names_;
  if (rule_.averages() && !has_average(path)) names = names.first(names.size() - 1), views.pop_back();
  auto segments =
      checkpoint::read_range(path, options_.layout, options_.elements.first, variables.write(), names, views);
  auto tables = new_tables();
  std::vector<checkpoint::segment> row_segments;
  if (!tables.empty())
    row_segments =
        checkpoint::read_rows(path, options_.layout, options_.slots, held_, options_.rule.slots(),
                              {.remove = [&](std::size_t t, std::uint64_t id) { tables[t]->remove(id); },
                               .put = [&](std::size_t t, sparse::row_header const& h,
                                          view<float> row) { tables[t]->put(h, row); }});
  if (what == history::kept) check_cuts(segments);
  variables_ = std::move(variables);
  slots_ = std::move(slots);
  tables_ = std::move(tables);
  // Another job's ledger means nothing here, and all servers must agree on where they start.
  if (what == history::forgotten)
    start_anew(checkpoint::read_manifest(path).version);
  else
    start(std::move(segments), std::move(row_segments));
}

EDL_INLINE void store::restore(std::vector<checkpoint::segment> segments,
                               std::vector<checkpoint::segment> row_segments, view<float> values) {
  auto const covers = [](std::vector<checkpoint::segment> const& some, element_range all) {
    std::size_t at = all.first;
    bool whole = !some.empty();
    for (checkpoint::segment const& s : some) {
      whole = whole && s.elements.first == at && s.elements.last >= at;
      at = s.elements.last;
    }
    return whole && at == all.last;
  };
  if (values.size() != copy_size() || !covers(segments, options_.elements) ||
      (tables_.empty() ? !row_segments.empty() : !covers(row_segments, options_.slots)))
    throw error("what came is no copy of this model's state");
  copy_on_write variables(options_.elements.size()), slots(slot_stride_ * slot_names_.size(), 0);
  std::ranges::copy(values.first(options_.elements.size()), variables.write().begin());
  std::ranges::copy(values.subspan(options_.elements.size()), slots.write().begin());
  variables_ = std::move(variables);
  slots_ = std::move(slots);
  tables_ = new_tables();
  start(std::move(segments), std::move(row_segments));
}

EDL_INLINE void store::check_usable() const {
  if (!failure_.empty()) throw store_failure(failure_);
}

/// Work that counts minibatches. Where it ends in its midst, what is counted is not what was applied.
template <class Work>
void store::apply_or_fail(Work const& work) {
  if (there_) return work();  // what fails there is told by who is there
  try {
    work();
  } catch (std::exception const& e) {
    failure_ = fmt::format("a step was made in part, and cannot be taken back: {}", e.what());
    throw store_failure(failure_);
  }
}

EDL_INLINE push_result store::push(contribution const& c, std::uint64_t computed_on, view<float> gradients,
                                   view<float> state_change, std::span<sparse::row_gradients const> rows) {
  check_usable();
  minibatch_key const& key = c.key;
  auto const fail = [&](std::string_view what) {
    throw error(fmt::format("push of minibatch {} of {} of task {} in epoch {}: {}", key.index, key.count,
                            key.task.index, key.task.epoch, what));
  };
  if (key.index >= key.count) fail("there is no such minibatch");
  if (!there_ && (gradients.size() != parameters() || state_change.size() != state()))
    fail(fmt::format("{} gradients and {} changes of state, this server keeps {} and {}", gradients.size(),
                     state_change.size(), parameters(), state()));
  check_rows(rows, fail);
  bool missing = false;
  for (segment const& s : segments_) {
    auto const found = s.counted.check(key);
    if (found == edl::ledger::sequence_check::gap)
      fail(fmt::format("minibatch {} has not arrived", s.counted.position(key.task)));
    missing = missing || found == edl::ledger::sequence_check::next;
  }
  if (!missing) return {push_outcome::repeat, version_};
  policy const& when = options_.when;
  if (when.stale(version_, computed_on)) return {push_outcome::stale, version_};

  float const rate = when.rate(version_, computed_on);
  apply_or_fail([&] {
    for (segment& s : segments_) {
      if (s.counted.check(key) != edl::ledger::sequence_check::next) continue;
      if (there_) {
        there_->step(rate * options_.rule.learning_rate(s.steps), s.steps);
        behind_ = true;
        s.counted.apply(c);
        s.applied.apply(c);
        ++s.steps;
        continue;
      }
      s.counted.apply(c);
      if (when.group() <= 1) {
        if (s.of_rows)
          step_rows(s, rows, rate);
        else
          step(s, gradients_of(s, gradients), change_of(s, state_change), rate);
        s.applied.apply(c);
        continue;
      }
      bool const first = s.waiting.empty();
      if (s.of_rows)
        accumulate_rows(s, rows);
      else
        accumulate(s, gradients_of(s, gradients), change_of(s, state_change));
      s.rate = first ? rate : std::min(s.rate, rate);
      s.waiting.push_back(c);
      if (s.waiting.size() >= when.group()) apply_waiting(s);
    }
  });
  merge();
  return advanced();
}

EDL_INLINE void store::accumulate(segment const& s, view<float> gradients, view<float> state_change) {
  auto const sums = std::span(sums_).subspan(s.elements.first - options_.elements.first, s.elements.size());
  bool const first = s.waiting.empty();
  auto const add = [&](std::span<float> to, view<float> what) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = first ? what[i] : to[i] + what[i];
  };
  add(sums.first(gradients.size()), gradients);
  add(sums.last(state_change.size()), state_change);
}

EDL_INLINE bool store::not_yet_applied(contribution const& c) const {
  return std::ranges::none_of(segments_, [&](segment const& s) {
    return s.counted.check(c.key) == edl::ledger::sequence_check::repeat;
  });
}

EDL_INLINE void store::leave_out(contribution const& c, std::span<float> values) const {
  for (segment const& s : segments_)
    if (!s.of_rows && s.counted.check(c.key) == edl::ledger::sequence_check::repeat)
      std::ranges::fill(values.subspan(s.elements.first - options_.elements.first, s.elements.size()), 0.0f);
}

EDL_INLINE push_result store::step(std::span<contribution const> minibatches, std::span<float> sums,
                                   std::span<std::vector<sparse::row_gradients> const> rows) {
  check_usable();
  if (sums.size() != (there_ ? 0 : options_.elements.size()))
    throw error(
        fmt::format("a step with {} sums, this store keeps {}", sums.size(), options_.elements.size()));
  if (rows.size() != (tables_.empty() ? 0 : minibatches.size()))
    throw error(fmt::format("a step of {} minibatches with rows of {}", minibatches.size(), rows.size()));
  for (auto const& of_minibatch : rows)
    check_rows(of_minibatch, [](std::string const& what) { throw error("a step: " + what); });
  // Its forerunner may be counted already, or by this step.
  auto const follows = [&](std::size_t i) {
    minibatch_key const& m = minibatches[i].key;
    return std::ranges::any_of(minibatches.first(i), [&](contribution const& c) {
      return c.key.task == m.task && c.key.count == m.count && c.key.index + 1 == m.index;
    });
  };
  for (segment const& s : segments_)
    for (std::size_t i = 0; i < minibatches.size(); ++i)
      if (minibatch_key const& m = minibatches[i].key;
          m.index >= m.count || (s.counted.check(m) == edl::ledger::sequence_check::gap && !follows(i)))
        throw error(
            fmt::format("a step with minibatch {} of {} of task {} in epoch {}, which is not the next",
                        m.index, m.count, m.task.index, m.task.epoch));
  for (std::size_t i = 0; i < minibatches.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (minibatches[k].key == minibatches[i].key)
        throw error(fmt::format("a step with minibatch {} of task {} in epoch {} twice",
                                minibatches[i].key.index, minibatches[i].key.task.index,
                                minibatches[i].key.task.epoch));
  apply_or_fail([&] {
    for (segment& s : segments_) {
      std::uint64_t records = 0, counted = 0;
      std::vector<row_sums> own_rows(s.of_rows ? tables_.size() : 0);
      for (std::size_t i = 0; i < minibatches.size(); ++i) {
        contribution const& c = minibatches[i];
        if (s.counted.check(c.key) != edl::ledger::sequence_check::next) continue;
        s.counted.apply(c);
        s.applied.apply(c);
        records += c.records;
        ++counted;
        for (std::size_t t = 0; t < own_rows.size(); ++t) add_rows(own_rows[t], s, rows[i][t], t);
      }
      if (counted == 0) continue;
      if (s.of_rows) {
        step_mean_rows(s, own_rows, float(std::max<std::uint64_t>(records, 1)), 1);
        continue;
      }
      if (there_) {
        there_->average(records);
        there_->step(options_.rule.learning_rate(s.steps), s.steps);
        behind_ = true;
        ++s.steps;
        continue;
      }
      auto const own = sums.subspan(s.elements.first - options_.elements.first, s.elements.size());
      if (records > 0)
        for (float& x : own) x /= float(records);
      std::size_t const slopes = gradients_of(s, view<float>(sums).first(parameters_)).size();
      step(s, own.first(slopes), own.subspan(slopes), 1);
    }
  });
  merge();
  return advanced();
}

EDL_INLINE push_result store::flush() {
  check_usable();
  apply_or_fail([&] {
    for (segment& s : segments_)
      if (!s.waiting.empty()) apply_waiting(s);
  });
  merge();
  return advanced();
}

EDL_INLINE void store::drop_waiting() {
  for (segment& s : segments_)
    if (!s.waiting.empty()) s.waiting.clear(), s.rows.clear(), s.counted = s.applied;
  merge();
}

EDL_INLINE ledger store::counted() const {
  ledger all = segments_.front().counted;
  for (segment const& s : segments_) all.intersect(s.counted);
  return all;
}

EDL_INLINE void store::forget_frozen() {
  evaluations_.clear();
  checkpoints_.clear();
}

EDL_INLINE task_position store::position(task_key const& task) const {
  task_position at{std::numeric_limits<std::uint32_t>::max(), true};
  for (segment const& s : segments_)
    if (!s.counted.closed(task)) at = {std::min(at.applied, s.counted.position(task)), false};
  return at.closed ? task_position{0, true} : at;
}

EDL_INLINE ps::snapshot store::averaged() const {
  if (!rule_.averages()) return snapshot();
  fetch();
  buffer values(options_.elements.size());
  auto const to = values.writable();
  std::ranges::copy(variables_.read(), to.begin());
  auto const more = slots_.read().subspan((slot_names_.size() - 1) * slot_stride_, parameters_);
  for (std::size_t i = 0; i < more.size(); ++i) to[i] += more[i];
  return {version_, std::move(values)};
}

EDL_INLINE ps::full_snapshot store::full_snapshot() const {
  check_usable();
  fetch();
  ps::full_snapshot all{.variables = snapshot(),
                        .slots = slots_.hold(),
                        .slot_stride = slot_stride_,
                        .slot_names = slot_names_,
                        .row_slot_names = options_.rule.slots(),
                        .elements = options_.elements,
                        .parameters = parameters_,
                        .segments = {}};
  for (segment const& s : segments_)
    (s.of_rows ? all.row_segments : all.segments).push_back({s.elements, s.steps, s.applied});
  snapshot_rows(all);
  return all;
}

EDL_INLINE ps::snapshot store::evaluation(std::uint64_t version) {
  if (auto found = evaluations_.find(version)) return *found;
  throw error(
      fmt::format("version {} is not frozen for an evaluation: it never was, was released, or gave way to a "
                  "newer one (at most {} are kept)",
                  version, options_.most_frozen));
}

EDL_INLINE ps::full_snapshot store::checkpoint(std::uint64_t version) {
  if (auto found = checkpoints_.find(version)) return *found;
  throw error(
      fmt::format("version {} is not frozen for a checkpoint: it never was, was released, or gave way to a "
                  "newer one (at most {} are kept)",
                  version, options_.most_frozen));
}

EDL_INLINE view<float> store::gradients_of(segment const& s, view<float> all) const {
  std::size_t const first = s.elements.first - options_.elements.first;
  std::size_t const last = s.elements.last - options_.elements.first;
  return all.subspan(std::min(first, parameters_),
                     std::min(last, parameters_) - std::min(first, parameters_));
}

EDL_INLINE view<float> store::change_of(segment const& s, view<float> all) const {
  std::size_t const first = std::max(s.elements.first - options_.elements.first, parameters_) - parameters_;
  std::size_t const last = std::max(s.elements.last - options_.elements.first, parameters_) - parameters_;
  return all.subspan(first, last - first);
}

EDL_INLINE void store::step(segment& s, view<float> gradients, view<float> state_change, float rate) {
  std::size_t const first = s.elements.first - options_.elements.first;
  auto const values = variables_.write().subspan(first, s.elements.size());
  if (!gradients.empty()) {
    auto const slots = slots_.write();
    for_each_outside(options_.fixed, {s.elements.first, s.elements.first + gradients.size()},
                     [&](element_range trained) {
                       std::size_t const at = trained.first - s.elements.first, count = trained.size();
                       for (std::size_t i = 0; i < slot_views_.size(); ++i)
                         slot_views_[i] = slots.subspan(i * slot_stride_ + first + at, count);
                       rule_.apply_at(trained.first, values.subspan(at, count), gradients.subspan(at, count),
                                      slot_views_, rate * options_.rule.learning_rate(s.steps), s.steps);
                     });
  }
  auto const carried = values.last(state_change.size());
  for (std::size_t i = 0; i < carried.size(); ++i) carried[i] += state_change[i];
  ++s.steps;
}

EDL_INLINE void store::apply_waiting(segment& s) {
  if (s.of_rows)
    apply_waiting_rows(s);
  else
    apply_sums(s);
  for (contribution const& c : s.waiting) s.applied.apply(c);
  s.waiting.clear();
}

EDL_INLINE void store::apply_sums(segment& s) {
  auto const sums = std::span(sums_).subspan(s.elements.first - options_.elements.first, s.elements.size());
  auto const n = float(s.waiting.size());
  for (float& sum : sums) sum /= n;
  std::size_t const slopes = gradients_of(s, view<float>(sums_).first(parameters_)).size();
  step(s, sums.first(slopes), sums.subspan(slopes), s.rate);
}

EDL_INLINE void store::merge() {
  auto const alike = [](segment const& a, segment const& b) {
    return a.of_rows == b.of_rows && a.steps == b.steps && a.waiting.empty() && b.waiting.empty() &&
           a.counted == b.counted;
  };
  for (std::size_t i = 1; i < segments_.size();) {
    if (alike(segments_[i - 1], segments_[i])) {
      segments_[i - 1].elements.last = segments_[i].elements.last;
      segments_.erase(segments_.begin() + std::ptrdiff_t(i));
    } else {
      ++i;
    }
  }
}

EDL_INLINE void store::freeze_rows() {
  bool const written = !tables_.empty() && version_ > 0 && options_.checkpoint_steps > 0 &&
                       version_ % options_.checkpoint_steps == 0;
  ps::full_snapshot const* const kept = checkpoints_.look(version_);
  if (!written || (kept && overlap(kept->hash_slots, held_) == held_)) return;
  checkpoints_.release(version_);
  checkpoints_.keep(version_, full_snapshot());
}

EDL_INLINE push_result store::due() {
  // Who has copied a version that is yet to be evaluated may be the last to have it.
  bool const evaluated = options_.rests_to_evaluate && version_ > 0 && options_.evaluation_steps > 0 &&
                         version_ % options_.evaluation_steps == 0;
  if (evaluated && !evaluations_.keeps(version_)) evaluations_.keep(version_, averaged());
  return {push_outcome::applied, version_, evaluations_.keeps(version_), checkpoints_.keeps(version_)};
}

EDL_INLINE push_result store::advanced() {
  auto const slowest = std::min_element(segments_.begin(), segments_.end(),
                                        [](segment const& a, segment const& b) { return a.steps < b.steps; });
  push_result result{push_outcome::applied, slowest->steps};
  if (slowest->steps == version_) return result;
  version_ = slowest->steps;
  auto const due = [&](std::uint64_t every) { return freezes_ && every != 0 && version_ % every == 0; };
  if (options_.rests_to_evaluate) evaluations_.clear();
  if (due(options_.evaluation_steps)) result.evaluate = evaluations_.keep(version_, averaged());
  if (due(options_.checkpoint_steps)) result.checkpoint = checkpoints_.keep(version_, full_snapshot());
  return result;
}

}  // namespace edl::ps
