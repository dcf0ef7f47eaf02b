// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/master/coordinator.hpp"

namespace edl::master {

EDL_INLINE void coordinator::void_leases() {
  phase_ = phase::forming;
  speeds_.interrupted();
  configured_.clear();
  training_first_.clear();
  for (auto const& c : {writing_, to_write_})
    if (options_.replicas && c && !c->final) unwritten_.push_back(c->version);
  writing_.reset();
  to_write_.reset();
  last_version_.reset();
  point_.reset();
  if (tasks_) tasks_->recover_all();
  evaluation_.recover_all();
}

// All state is void: back to a checkpoint, once all servers are there.
EDL_INLINE void coordinator::new_generation() {
  ++generation_;
  void_leases();
  keeping_ = false;
  recovering_ = 0;
  holders_.clear();
  find_point();
}

EDL_INLINE void coordinator::find_point() {
  if (trains())
    commands_.emplace_back(find_restore_point{generation_});
  else
    point_ = options_.start;  // nothing is applied: the model is what it was, and what is done stays done
}

EDL_INLINE std::set<std::uint32_t> coordinator::servers_there() const {
  std::set<std::uint32_t> ids;
  for (auto const& [id, m] : servers_.all()) ids.insert(id);
  return ids;
}

EDL_INLINE void coordinator::server_lost(std::uint32_t id, time_point now) {
  for (auto& [range, ids] : holders_) ids.erase(id);
  if (phase_ != phase::forming) regroup_servers(now);
}

EDL_INLINE void coordinator::server_joined(join_request const& r, time_point now) {
  // Servers have a newer state than this master knows of: they go on with that, as after any master.
  if (phase_ == phase::forming && !configured_once_ && r.held > recovering_) {
    recovering_ = r.held;
    recovered_ = true;
    holders_.clear();
    point_.reset();
  }
  if (recovering_ != 0 && r.held == recovering_)
    for (std::uint32_t const range : r.ranges) holders_[range].insert(r.id);
  if (phase_ != phase::forming)
    regroup_servers(now);
  else if (recovering_ != 0)
    recover_servers(now);
  else
    configure_if_complete();
}

// Who is there goes on with what they have; who has not everything that is his takes it from who has.
// If something is nowhere any more, all go back.
EDL_INLINE void coordinator::regroup_servers(time_point now) {
  if (!stood_since_ && leasing()) stood_since_ = now;
  if (!covered(ranges(), servers_there(), holders_)) return new_generation();
  ++generation_;
  void_leases();
  evaluation_.forget_unless([](std::uint64_t) { return false; });
  keeping_ = true;
  configure();
}

// A master that takes another's place waits a moment for all servers, and goes on if nothing is lost.
EDL_INLINE void coordinator::recover_servers(time_point now) {
  if (phase_ != phase::forming || recovering_ == 0) return;
  auto const there = servers_there();
  if (there.size() < wanted_servers_ && now < began_ + options_.gathering) return;
  if (there.empty()) return;
  bool const whole = covered(ranges(), there, holders_);
  if (!whole && there.size() < wanted_servers_) return;  // it may still come
  recovering_ = 0;
  if (whole) {
    keeping_ = true;
    return configure();
  }
  find_point();
  configure_if_complete();
}

EDL_INLINE void coordinator::restore_point_found(std::uint64_t generation, std::optional<restore_point> point,
                                                 time_point now) {
  if (generation != generation_ || phase_ != phase::forming || point_) return;
  if (options_.replicas && !std::exchange(asked_point_, false)) return;
  go_back_to(point ? *std::move(point) : options_.start, now);
}

EDL_INLINE void coordinator::go_back_to(restore_point point, time_point now) {
  std::uint64_t const before = tasks_ ? tasks_->done().records_done : 0;
  if (trains()) try {
      tasks_->restore(point.applied);
    } catch (error const& e) {
      return fail(fmt::format("cannot go back to '{}': {}", point.directory, e.what()));
    }
  if (options_.replicas && roll_.newest())
    evaluation_.forget_after(point.version);  // what is older is frozen on its survivors
  else
    evaluation_.roll_back(point.version);
  if (!options_.replicas) epochs_said_ = 0;
  version_ = point.version;
  if (final_written_ != point.version) final_written_.reset();
  if (written_ && *written_ > point.version) written_.reset();
  if (bool const lossless = options_.replicas && (!tasks_ || tasks_->done().records_done >= before);
      !lossless)
    say(severity::warning,
        fmt::format("Going back to version {}, {} records done", point.version, tasks_->done().records_done));
  point_ = std::move(point);
  options_.replicas ? begin_world(now) : configure_if_complete();
}

EDL_INLINE void coordinator::configure_if_complete() {
  if (phase_ != phase::forming || recovering_ != 0 || !point_ || servers_.all().size() < wanted_servers_)
    return;
  keeping_ = false;
  configure();
}

EDL_INLINE void coordinator::configure() {
  phase_ = phase::configuring;
  configured_once_ = true;
  configured_.clear();
  kept_.reset();
  auto const there = servers_there();
  configure_servers c{.generation = generation_, .restore = {}, .keep = keeping_, .servers = there};
  if (keeping_) {
    c.holders = holders_;
    // Who has served a range may have made steps that its backup has not, and nobody has been told of.
    for (std::uint32_t r = 0; r < ranges(); ++r) {
      auto const& ids = holders_.at(r);
      bool const stays = r < places_.size() && ids.contains(places_[r].primary);
      c.sources.push_back(stays ? places_[r].primary : *ids.begin());
    }
  } else {
    c.restore = point_->directory;
  }
  std::set<std::uint32_t> staying;
  for (std::uint32_t const id : there)
    if (id < wanted_servers_) staying.insert(id);
  if (staying.empty()) staying = there;
  c.places = places_ = place(ranges(), wanted_servers_, staying, options_.server_copies, holders_);
  commands_.emplace_back(std::move(c));
}

EDL_INLINE void coordinator::server_configured(std::uint32_t id, std::uint64_t incarnation,
                                               std::uint64_t generation, std::string const& error,
                                               time_point now, std::optional<copy_position> kept) {
  if (generation != generation_ || phase_ != phase::configuring || !servers_.known(id, incarnation)) return;
  if (!error.empty())
    return fail(fmt::format("server {} cannot take the state of '{}': {}", id,
                            keeping_ ? "the others" : point_->directory, error));
  servers_.seen(id, incarnation, now);
  if (configured_.insert(id).second && kept) {
    if (kept_) {
      kept_->applied.intersect(kept->applied);
      kept_->version = std::min(kept_->version, kept->version);
    } else {
      kept_ = std::move(kept);
    }
  }
  if (configured_.size() < servers_.all().size()) return;
  leap_ = 1;
  holders_.clear();
  for (std::uint32_t r = 0; r < places_.size(); ++r) {
    holders_[r].insert(places_[r].primary);
    if (places_[r].backup) holders_[r].insert(*places_[r].backup);
  }
  if (keeping_ && kept_) go_on_from(*std::exchange(kept_, std::nullopt));
  stop_spare_servers(now);
  if (!over()) begin(now);
}

EDL_INLINE void coordinator::go_on_from(copy_position kept) {
  if (trains()) try {
      tasks_->restore(kept.applied);
    } catch (error const& e) {
      return fail(fmt::format("cannot go on from the servers' state: {}", e.what()));
    }
  version_ = kept.version;
  point_ = restore_point{"", kept.version, std::move(kept.applied)};
  say(severity::info, fmt::format("Going on at version {}, {} records done", version_,
                                  tasks_ ? tasks_->done().records_done : 0));
}

EDL_INLINE void coordinator::server_ahead(std::uint32_t id, std::uint64_t incarnation,
                                          std::uint64_t generation, time_point now) {
  if (generation != generation_ || phase_ != phase::configuring || !servers_.known(id, incarnation)) return;
  say(severity::warning, fmt::format("server {} knows a newer generation than {}: its journal was lost or is "
                                     "an older one; the job goes on above that",
                                     id, generation));
  generation_ += leap_;  // by how much it is ahead nobody says
  leap_ = std::min(2 * leap_, longest_leap);
  regroup_servers(now);
}

EDL_INLINE void coordinator::backup_cut_off(std::uint32_t server, std::uint64_t generation,
                                            std::uint32_t range, time_point now) {
  bool const serves = generation == generation_ && range < places_.size() && places_[range].primary == server;
  if (over() || !serves || !places_[range].backup) return;
  if (std::uint32_t const backup = *places_[range].backup; servers_.find(backup))
    lose(role::server, backup, fmt::format("server {} cannot reach it", server), now);
}

EDL_INLINE void coordinator::begin(time_point now) {
  phase_ = phase::running;
  if (auto const since = std::exchange(stood_since_, std::nullopt)) standstill_ = now - *since;
  if (options_.type == job_type::evaluation_only && evaluation_.idle())
    evaluation_.version_reached({point_->version, false}, now);
  advance();
}

}  // namespace edl::master
