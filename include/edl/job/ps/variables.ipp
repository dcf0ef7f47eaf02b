// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/compute/optim/whole_variables.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/ps/variables.hpp"

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

}  // namespace detail

EDL_INLINE bool has_average(std::string const& path) {
  auto const all = checkpoint::slots_of(path);
  return std::ranges::find(all, moving_average::slot_name) != all.end();
}

EDL_INLINE variables::variables(store_options const& o)
    : layout_(o.layout),
      elements_(o.elements),
      fixed_(o.fixed),
      rated_(o.rule, o.rates.elements),
      rule_(rated_, o.moving_average),
      parameters_(detail::parameters_among(o)),
      slot_stride_((parameters_ + detail::floats_per_line - 1) / detail::floats_per_line *
                   detail::floats_per_line),
      slot_names_(rule_.slots()),
      values_(o.elements.size()),
      slots_(slots_size(), 0),
      slot_views_(slot_names_.size()) {
  if (o.when.group() > 1) sums_.resize(elements_.size());
  fill(slots_.write());
  if (o.watches_memory) memory_.emplace(elements_.size());
  note_memory({0, elements_.size()});
  if (memory_ && !sums_.empty()) {
    memory_of_sums_.emplace(sums_.size());
    view<float> const sums[]{sums_};
    memory_of_sums_->take(sums, {0, sums_.size()});
  }
}

// For these elements, from the first: the values, then each slot of the parameters.
EDL_INLINE std::vector<view<float>> variables::arrays() const {
  std::vector<view<float>> all{values_.read()};
  for (std::size_t i = 0; i < slot_names_.size(); ++i)
    all.push_back(slots_.read().subspan(i * slot_stride_, parameters_));
  return all;
}

EDL_INLINE void variables::note_memory(element_range of) {
  if (memory_) memory_->take(arrays(), of);
}

EDL_INLINE void variables::check_memory(element_range of) const {
  if (!memory_ || there_) return;
  if (auto const where = memory_->changed(arrays(), of))
    throw memory_fault(
        fmt::format("this machine's memory corrupts data: elements [{}, {}) have changed "
                    "without a step",
                    elements_.first + where->first, elements_.first + where->last));
}

/// Runs work on what these elements have accumulated, after verifying it.
template <class Work>
void variables::change_sums(element_range of, Work const& work) {
  if (!memory_of_sums_) return work();
  view<float> const sums[]{sums_};
  element_range const here{of.first - elements_.first, of.last - elements_.first};
  if (auto const where = memory_of_sums_->changed(sums, here))
    throw memory_fault(
        fmt::format("this machine's memory corrupts data: sums of gradients of "
                    "elements [{}, {}) "
                    "have changed by themselves",
                    elements_.first + where->first, elements_.first + where->last));
  work();
  memory_of_sums_->take(sums, here);
}

EDL_INLINE void variables::fill(std::span<float> slots) const {
  for (std::size_t i = 0; i < slot_names_.size(); ++i)
    std::ranges::fill(slots.subspan(i * slot_stride_, slot_stride_), rule_.initial(i));
}

EDL_INLINE void variables::fetch() const {
  if (!std::exchange(behind_, false)) return;
  there_->fetch(values_.write(), slots_.write());
}

EDL_INLINE view<float> variables::current() const {
  fetch();
  return values_.read();
}

EDL_INLINE buffer variables::hold() const {
  fetch();
  return values_.hold();
}

EDL_INLINE buffer variables::averaged() const {
  if (!averages()) return hold();
  fetch();
  buffer values(elements_.size());
  auto const to = values.writable();
  std::ranges::copy(values_.read(), to.begin());
  auto const more = slots_.read().subspan((slot_names_.size() - 1) * slot_stride_, parameters_);
  for (std::size_t i = 0; i < more.size(); ++i) to[i] += more[i];
  return values;
}

EDL_INLINE ps::full_snapshot variables::snapshot(std::uint64_t version) const {
  fetch();
  return {.variables = {version, values_.hold()},
          .slots = slots_.hold(),
          .slot_stride = slot_stride_,
          .slot_names = slot_names_,
          .elements = elements_,
          .parameters = parameters_,
          .segments = {}};
}

EDL_INLINE variables::contents variables::initial(
    std::function<void(std::size_t, std::span<float>)> const& initialise) const {
  contents c{copy_on_write(elements_.size()), copy_on_write(slots_size(), 0)};
  initialise(elements_.first, c.values.write());
  fill(c.slots.write());
  return c;
}

EDL_INLINE variables::contents variables::read(std::string const& path,
                                               std::vector<checkpoint::segment>& segments) const {
  contents c{copy_on_write(elements_.size()), copy_on_write(slots_size(), 0)};
  auto const slots = c.slots.write();
  std::span<std::string const> names = slot_names_;
  if (averages() && !has_average(path)) names = names.first(names.size() - 1);
  std::vector<std::span<float>> views;
  for (std::size_t i = 0; i < names.size(); ++i)
    views.push_back(slots.subspan(i * slot_stride_, parameters_));
  segments = checkpoint::read_range(path, layout_, elements_.first, c.values.write(), names, views);
  return c;
}

EDL_INLINE variables::contents variables::copied(view<float> values) const {
  invariant(values.size() == copy_size(), "a copy has every variable and every slot");
  contents c{copy_on_write(elements_.size()), copy_on_write(slots_size(), 0)};
  std::ranges::copy(values.first(elements_.size()), c.values.write().begin());
  std::ranges::copy(values.subspan(elements_.size()), c.slots.write().begin());
  return c;
}

EDL_INLINE void variables::take(contents c) {
  invariant(c.values.read().size() == elements_.size() && c.slots.read().size() == slots_size(),
            "variables and slots are of the store's elements");
  values_ = std::move(c.values);
  slots_ = std::move(c.slots);
  behind_ = false;
  note_memory({0, elements_.size()});
  if (there_) there_->place(values_.read(), slots_.read(), slot_stride_);
}

EDL_INLINE void variables::check_segments(std::vector<checkpoint::segment> const& segments) const {
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

EDL_INLINE void variables::move_to(arena& there) {
  invariant(movable(), "a state that moves is whole, and has no moving average");
  fetch();
  there_ = &there;
  there_->place(values_.read(), slots_.read(), slot_stride_);
}

EDL_INLINE void variables::move_back() {
  if (!there_) return;
  fetch();
  std::exchange(there_, nullptr)->leave();
  note_memory({0, elements_.size()});
}

EDL_INLINE std::span<float> variables::part(std::span<float> all, element_range of) const {
  return all.subspan(of.first - elements_.first, of.size());
}

EDL_INLINE view<float> variables::gradients_of(element_range of, view<float> all) const {
  std::size_t const first = std::min(of.first - elements_.first, parameters_);
  return all.subspan(first, std::min(of.last - elements_.first, parameters_) - first);
}

EDL_INLINE view<float> variables::change_of(element_range of, view<float> all) const {
  std::size_t const first = std::max(of.first - elements_.first, parameters_);
  return all.subspan(first - parameters_, std::max(of.last - elements_.first, parameters_) - first);
}

EDL_INLINE void variables::step(element_range of, view<float> gradients, view<float> state_change, float rate,
                                std::uint64_t made, float share) {
  if (there_) {
    there_->step(rate * rule_.learning_rate(made), made);
    behind_ = true;
    return;
  }
  // Where memory is watched, verify, change and checksum each block while it is in the cache.
  bool const blocks = memory_ && rule_.borders().empty();
  for (element_range part{of.first, of.first}; part.first < of.last; part.first = part.last) {
    std::size_t const first = part.first - elements_.first;
    part.last =
        blocks ? std::min(of.last, part.first + memory_sums::block - first % memory_sums::block) : of.last;
    element_range const here{first, part.last - elements_.first};
    check_memory(here);
    step_here(part, gradients_of(part, gradients), change_of(part, state_change), rate, made, share);
    note_memory(here);
  }
}

EDL_INLINE void variables::step_here(element_range of, view<float> gradients, view<float> state_change,
                                     float rate, std::uint64_t made, float share) {
  std::size_t const first = of.first - elements_.first;
  auto const values = part(values_.write(), of);
  invariant(gradients.size() + state_change.size() == values.size(),
            "each element has its gradient or change");
  if (!gradients.empty()) {
    auto const slots = slots_.write();
    for_each_outside(fixed_, {of.first, of.first + gradients.size()}, [&](element_range trained) {
      std::size_t const at = trained.first - of.first, count = trained.size();
      for (std::size_t i = 0; i < slot_views_.size(); ++i)
        slot_views_[i] = slots.subspan(i * slot_stride_ + first + at, count);
      rule_.apply_at(trained.first, values.subspan(at, count), gradients.subspan(at, count), slot_views_,
                     rate * rule_.learning_rate(made), made);
    });
  }
  auto const carried = values.last(state_change.size());
  for (std::size_t i = 0; i < carried.size(); ++i) carried[i] += share * state_change[i];
}

EDL_INLINE void variables::step_sums(element_range of, std::span<float> sums, std::uint64_t records,
                                     float rate, std::uint64_t made) {
  if (there_)
    there_->average(records);
  else if (records > 0)
    for (float& x : part(sums, of)) x /= float(records);
  std::size_t const slopes = std::min(sums.size(), parameters_);  // 0 if they are in the arena
  step(of, sums.first(slopes), sums.subspan(slopes), rate, made);
}

EDL_INLINE void variables::accumulate(element_range of, view<float> gradients, view<float> state_change,
                                      bool first) {
  auto const sums = part(sums_, of);
  auto const add = [&](std::span<float> to, view<float> what) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = first ? what[i] : to[i] + what[i];
  };
  auto const slopes = gradients_of(of, gradients), change = change_of(of, state_change);
  change_sums(of, [&] {
    add(sums.first(slopes.size()), slopes);
    add(sums.last(change.size()), change);
  });
}

EDL_INLINE void variables::step_accumulated(element_range of, std::size_t count, float rate,
                                            std::uint64_t made) {
  change_sums(of, [&] {
    for (float& sum : part(sums_, of)) sum /= float(count);
  });
  std::span<float> const sums = sums_;
  step(of, sums.first(parameters_), sums.subspan(parameters_), rate, made);
}

}  // namespace edl::ps
