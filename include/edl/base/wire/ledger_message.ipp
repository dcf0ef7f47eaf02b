// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/base/wire/edl.pb.h"
#include "edl/base/wire/ledger_message.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"

namespace edl::wire {
namespace detail {

/// Builds a ledger from entries that may hold any values.
class ledger_builder {
 public:
  explicit ledger_builder(std::string_view where) : where_(where) {}

  void closed(std::uint32_t epoch, std::uint32_t begin, std::uint32_t end) {
    if (begin >= end) fail(fmt::format("epoch {} has the empty run [{}, {})", epoch, begin, end));
    auto const it = built_.closed().find(epoch);
    if (it != built_.closed().end() && std::prev(it->second.runs().end())->second > begin)
      fail(fmt::format("run [{}, {}) of epoch {} does not follow the one before it", begin, end, epoch));
    built_.set_closed(epoch, begin, end);
  }

  void open(task_key task, std::uint32_t applied) {
    if (applied == 0 || built_.position(task) != 0 || built_.closed(task))
      fail(fmt::format("task {} of epoch {} is open twice, closed too, or has nothing applied", task.index,
                       task.epoch));
    built_.set_open(task, applied);
  }

  void skipped(task_key task, std::uint32_t records) {
    if (records == 0 || built_.skipped().contains(task) ||
        (built_.position(task) == 0 && !built_.closed(task)))
      fail(fmt::format(
          "task {} of epoch {} has its skipped records twice, or skipped none, or has nothing applied",
          task.index, task.epoch));
    built_.set_skipped(task, records);
  }

  void tally(std::uint32_t epoch, std::uint64_t minibatches, std::uint64_t records) {
    if (built_.tallies().contains(epoch)) fail(fmt::format("epoch {} has two tallies", epoch));
    built_.set_tally(epoch, {minibatches, records});
  }

  ledger take() { return std::move(built_); }

  [[noreturn]] void fail(std::string_view what) const {
    throw error(fmt::format("the ledger of {} is damaged: {}", where_, what));
  }

 private:
  std::string_view where_;
  ledger built_;
};

}  // namespace detail

EDL_INLINE void to_message(ledger const& from, Ledger& into) {
  into.Clear();
  for (auto const& [task, applied] : from.open()) {
    auto& open = *into.add_open();
    open.mutable_task()->set_epoch(task.epoch);
    open.mutable_task()->set_index(task.index);
    open.set_applied(applied);
  }
  for (auto const& [epoch, tasks] : from.closed()) {
    auto& closed = *into.add_closed();
    closed.set_epoch(epoch);
    for (auto const& [begin, end] : tasks.runs()) closed.add_runs(begin), closed.add_runs(end);
  }
  for (auto const& [task, records] : from.skipped()) {
    auto& skipped = *into.add_skipped();
    skipped.mutable_task()->set_epoch(task.epoch);
    skipped.mutable_task()->set_index(task.index);
    skipped.set_records(records);
  }
  for (auto const& [epoch, t] : from.tallies()) {
    auto& tally = *into.add_tallies();
    tally.set_epoch(epoch);
    tally.set_minibatches(t.minibatches);
    tally.set_records(t.records);
  }
}

EDL_INLINE ledger from_message(Ledger const& from) {
  detail::ledger_builder built("a message");
  for (auto const& epoch : from.closed()) {
    if (epoch.runs_size() % 2 != 0) built.fail(fmt::format("a run of epoch {} has no end", epoch.epoch()));
    for (int i = 0; i < epoch.runs_size(); i += 2)
      built.closed(epoch.epoch(), epoch.runs(i), epoch.runs(i + 1));
  }
  for (auto const& open : from.open()) built.open({open.task().epoch(), open.task().index()}, open.applied());
  for (auto const& s : from.skipped()) built.skipped({s.task().epoch(), s.task().index()}, s.records());
  for (auto const& t : from.tallies()) built.tally(t.epoch(), t.minibatches(), t.records());
  return built.take();
}

EDL_INLINE std::string to_json(ledger const& from) {
  auto closed = nlohmann::json::object(), open = nlohmann::json::array(), skipped = open, tallies = open;
  for (auto const& [epoch, tasks] : from.closed()) {
    auto& runs = closed[std::to_string(epoch)] = nlohmann::json::array();
    for (auto const& [begin, end] : tasks.runs()) runs.push_back(begin), runs.push_back(end);
  }
  for (auto const& [task, applied] : from.open()) open.push_back({task.epoch, task.index, applied});
  for (auto const& [task, records] : from.skipped()) skipped.push_back({task.epoch, task.index, records});
  for (auto const& [epoch, t] : from.tallies()) tallies.push_back({epoch, t.minibatches, t.records});
  nlohmann::json all{{"closed", std::move(closed)}, {"open", std::move(open)}};
  if (!skipped.empty()) all["skipped"] = std::move(skipped);
  if (!tallies.empty()) all["tallies"] = std::move(tallies);
  return all.dump();
}

EDL_INLINE ledger ledger_from_json(std::string_view text, std::string_view where) {
  using nlohmann::json;
  detail::ledger_builder built(where);
  auto const large = [&](json const& value) {
    if (!value.is_number_unsigned()) built.fail("a number is missing or out of range");
    return value.get<std::uint64_t>();
  };
  auto const number = [&](json const& value) {
    if (large(value) > std::numeric_limits<std::uint32_t>::max())
      built.fail("a number is missing or out of range");
    return value.get<std::uint32_t>();
  };
  json const whole = parse_json(text, 3);
  if (!whole.is_object() || !whole.contains("closed") || !whole["closed"].is_object() ||
      !whole.contains("open") || !whole["open"].is_array())
    built.fail("it is not an object with 'closed' and 'open'");
  for (auto const& [name, runs] : whole["closed"].items()) {
    json const epoch = parse_json(name);
    if (!runs.is_array() || runs.size() % 2 != 0)
      built.fail(fmt::format("a run of epoch {} has no end", number(epoch)));
    for (std::size_t i = 0; i < runs.size(); i += 2)
      built.closed(number(epoch), number(runs[i]), number(runs[i + 1]));
  }
  for (json const& entry : whole["open"]) {
    if (!entry.is_array() || entry.size() != 3) built.fail("an open task is not [epoch, index, applied]");
    built.open({number(entry[0]), number(entry[1])}, number(entry[2]));
  }
  // Earlier versions did not write this.
  auto const triples = [&](char const* name) {
    json const list = whole.value(name, json::array());
    if (!list.is_array()) built.fail(fmt::format("'{}' is not a list", name));
    for (json const& entry : list)
      if (!entry.is_array() || entry.size() != 3)
        built.fail(fmt::format("an entry of '{}' does not have three numbers", name));
    return list;
  };
  for (json const& e : triples("skipped")) built.skipped({number(e[0]), number(e[1])}, number(e[2]));
  for (json const& e : triples("tallies")) built.tally(number(e[0]), large(e[1]), large(e[2]));
  return built.take();
}

}  // namespace edl::wire
