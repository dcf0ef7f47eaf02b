// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "edl/job/master/coordinator.hpp"

/// A coordinator whose time is the test's, and what it has asked for that no test has taken.
struct driven_master {
  explicit driven_master(edl::master::job_options o, std::optional<edl::master::persisted_state> before = {})
      : it(std::move(o), now, std::move(before)) {
    look();
  }

  edl::master::time_point now{};
  edl::master::coordinator it;
  std::vector<edl::master::command> seen;

  void look() {
    for (auto& c : it.take_commands()) seen.push_back(std::move(c));
  }

  /// All commands of a kind since they were last taken.
  template <class C>
  std::vector<C> take_all() {
    look();
    std::vector<C> found;
    std::erase_if(seen, [&](edl::master::command const& c) {
      auto const* one = std::get_if<C>(&c);
      if (one) found.push_back(*one);
      return one != nullptr;
    });
    return found;
  }

  /// The first of them.
  template <class C>
  std::optional<C> take() {
    look();
    for (auto i = seen.begin(); i != seen.end(); ++i)
      if (auto* c = std::get_if<C>(&*i)) {
        C const found = *c;
        seen.erase(i);
        return found;
      }
    return std::nullopt;
  }

  /// Answers with the model's last version. False: nobody has asked for it.
  bool announce(std::uint64_t version) {
    auto const asked = take<edl::master::ask_version>();
    if (asked) it.version_announced(asked->generation, version, now);
    return asked.has_value();
  }

  bool said(std::string const& part) {
    look();
    return std::ranges::any_of(seen, [&](edl::master::command const& c) {
      auto const* line = std::get_if<edl::master::log_line>(&c);
      return line && line->text.find(part) != std::string::npos;
    });
  }

  bool join(edl::role of, std::uint32_t id, std::uint64_t incarnation = 1) {
    return it.join({of, id, incarnation, {}, 5}, now).accepted;
  }

  edl::master::task_reply ask(std::uint32_t worker = 0) { return it.request_task(worker, 1, now); }

  bool done(edl::master::task_reply const& t, std::uint32_t worker = 0, std::vector<double> sums = {}) {
    return it.report_task({.worker = worker, .incarnation = 1, .lease = t.lease, .metrics = std::move(sums)},
                          now);
  }

  void enter(std::uint32_t id, std::uint64_t last = 0, std::optional<edl::master::copy_position> c = {},
             std::optional<std::uint32_t> suspect = {}, std::uint64_t incarnation = 1) {
    it.enter(id, {.incarnation = incarnation, .last = last, .copy = std::move(c), .suspect = suspect}, now);
  }

  /// The servers that are asked to take a state take it. `applied`, `version`: what those have that keep
  /// theirs.
  edl::master::configure_servers configured(edl::ledger const& applied = {}, std::uint64_t version = 0) {
    auto const c = take<edl::master::configure_servers>();
    REQUIRE(c);
    answer(*c, applied, version);
    return *c;
  }
  void answer(edl::master::configure_servers const& c, edl::ledger const& applied = {},
              std::uint64_t version = 0) {
    for (std::uint32_t id : c.servers) {
      std::optional<edl::master::copy_position> kept;
      if (c.keep) kept = edl::master::copy_position{version, applied};
      auto const* server = it.servers().find(id);
      it.server_configured(id, server ? server->incarnation : 1, c.generation, {}, now, kept);
    }
  }

  /// Time passes a quarter of a second at a time, in which every member but the workers of `silent` is heard.
  void pass(edl::master::duration d, std::vector<std::uint32_t> const& silent = {}) {
    using edl::role;
    for (auto const until = now + d; now < until;) {
      now += std::chrono::milliseconds(250);
      for (role const of : {role::worker, role::server})
        for (auto const& [id, m] : std::map((of == role::worker ? it.workers() : it.servers()).all()))
          if (of == role::server || std::ranges::find(silent, id) == silent.end())
            it.heartbeat(of, id, m.incarnation, {}, now);
      it.tick(now);
    }
  }
};
