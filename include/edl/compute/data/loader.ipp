// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "edl/compute/data/choosing_reader.hpp"
#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/loader.hpp"
#include "edl/compute/data/order.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::data {
namespace detail {

/// Appended to the error about a record.
inline constexpr char way_out_of_damage[] = "; mend the record, or leave it out with --skip_damaged";

/// Adds its lifetime to a total, if there is one.
class timed {
 public:
  explicit timed(std::atomic<std::int64_t>* to) : to_(to), since_(to ? clock::now() : time_point()) {}
  timed(timed const&) = delete;
  ~timed() {
    if (to_) *to_ += std::chrono::nanoseconds(clock::now() - since_).count();
  }

 private:
  std::atomic<std::int64_t>* to_;
  time_point since_;
};

}  // namespace detail

struct loader::state {
  struct pending {
    work assigned;
    std::vector<std::uint64_t> order;            // empty: ascending
    std::uint64_t next = 0, end = 0, count = 0;  // minibatches: the next, where it ends, all of the task
  };
  struct slot {
    batch* b = nullptr;
    bool ready = false, dropped = false;
  };

  source const& from;
  loader_options options;
  decoder decode;
  memory kept;
  std::vector<std::uint64_t> first_places;  // by shard
  std::vector<batch> batches;
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable work_or_room, ready;
  std::deque<pending> queue;
  std::vector<batch*> free;
  std::vector<slot> given;  // assigned to threads, in the order of delivery; room for all batches
  bool closed = false, stopped = false;
  std::atomic<bool> sound{false};  // the feed has taken a record
  factory make;

  state(source const& s, loader_options const& o, decoder d, memory k)
      : from(s), options(o), decode(std::move(d)), kept(std::move(k)) {
    std::uint64_t first = 0;
    for (shard const& of : from.shards()) first_places.push_back(std::exchange(first, first + of.records));
  }

  ~state() {
    stop();
    for (auto& t : threads) t.join();
  }

  void stop() {
    std::lock_guard const lock{mutex};
    stopped = true;
    queue.clear();
    check();
    work_or_room.notify_all();
    ready.notify_all();
  }

  // Invariants while the mutex is free. Batches that are neither free nor assigned belong to the caller.
  void check() const {
    invariant(given.size() + free.size() <= batches.size(), "a batch is in one place");
    invariant(!stopped || queue.empty(), "nothing is queued when the loader has stopped");
    invariant(queue.empty() || queue.front().next < queue.front().end, "a queued task has a minibatch left");
    invariant(queue.empty() || queue.front().end <= queue.front().count,
              "no more minibatches are wanted of a task than it has");
    invariant(given.size() <= batches.size(), "no more batches are given out than exist");
  }

  bool can_take() const { return !queue.empty() && !free.empty(); }

  /// Takes a free batch, and assigns the next minibatch to it. Returns null when the loader stops, and,
  /// unless `wait` is set, when no batch is free or no minibatch is left.
  batch* take(bool wait) {
    std::unique_lock lock{mutex};
    if (wait) work_or_room.wait(lock, [&] { return stopped || can_take(); });
    if (stopped || !can_take()) return nullptr;
    batch* const b = free.back();
    free.pop_back();
    auto& p = queue.front();
    invariant(p.next < p.end, "a minibatch is taken from a task that has one left");
    invariant(p.assigned.shard < first_places.size(), "a task is of a shard of the source");
    auto const size = std::uint64_t(options.minibatch_size), first = p.next * size;
    auto const records = std::min(size, p.assigned.end - p.assigned.begin - first);
    invariant(first < p.assigned.end - p.assigned.begin && records > 0, "a minibatch has a record");
    invariant(p.order.empty() || p.order.size() == p.assigned.end - p.assigned.begin,
              "a task that is shuffled has each of its records in its order");
    b->records.resize(std::size_t(records));
    for (std::uint64_t i = 0; i < records; ++i)
      b->records[std::size_t(i)] =
          p.order.empty() ? p.assigned.begin + first + i : p.order[std::size_t(first + i)];
    b->identity = {
        {p.assigned.task, std::uint32_t(p.next), std::uint32_t(p.count)}, p.assigned.m, p.assigned.ticket};
    b->shard = from.shards()[p.assigned.shard].name;
    b->shard_number = p.assigned.shard;
    b->first_place = first_places[p.assigned.shard];
    given.push_back({b});
    if (++p.next == p.end) queue.pop_front();
    check();
    return b;
  }

  /// The state with which one thread reads.
  struct desk {
    std::unique_ptr<reader> in;
    example record;
    feature_choice choice;
  };

  void fill(batch& b, desk& d) {
    // The order within a minibatch does not matter: reading in file order needs the fewest seeks.
    std::sort(b.records.begin(), b.records.end());
    b.rows = b.skipped = 0;
    b.words = b.unknown = 0;
    b.error.clear();
    b.refused = false;
    b.damage.clear();
    b.kept = kept && kept(b);
    if (b.kept) {
      b.rows = int(b.records.size());
      return;
    }
    if (!d.in) {
      d.in = from.open();
      // Which records are damaged must not depend on the features that a thread has requested before.
      if (!options.skip_damaged) d.choice = feature_choice(dynamic_cast<choosing_reader*>(d.in.get()));
    }
    read(b, d);
    invariant(!b.error.empty() || std::size_t(b.rows) == b.records.size(),
              "a batch without an error has a row for each record that is not left out");
    invariant(b.skipped >= 0 && std::size_t(b.skipped) == b.damage.size(),
              "the batch has a reason for each record that it leaves out");
    invariant(b.rows >= 0 && b.rows <= b.capacity, "a batch has no more rows than room");
  }

  void read(batch& b, desk& d) {
    auto& [in, record, choice] = d;
    std::string refused;  // the feed's error
    auto const leave_out = [&](std::string why) {
      ++b.skipped;
      b.damage.push_back(std::move(why));
      b.records.erase(b.records.begin() + b.rows);
    };
    while (b.error.empty() && std::size_t(b.rows) < b.records.size()) {
      auto const number = b.records[std::size_t(b.rows)];
      try {
        detail::timed const reading(options.times ? &options.times->reading : nullptr);
        in->read(b.shard_number, number, record);
      } catch (changed_error const& e) {
        b.error = e.what();
      } catch (data_error const& e) {
        if (options.skip_damaged) {
          leave_out(e.what());
          continue;
        }
        b.refused = !dynamic_cast<detail::unread_error const*>(&e);
        b.error = std::string(e.what()) + detail::way_out_of_damage;
      } catch (std::exception const& e) {
        b.error = e.what();
      } catch (...) {
        b.error = place_of(from, b.shard_number, number) + ": the reader failed";
      }
      if (!b.error.empty()) break;
      try {
        detail::timed const feeding(options.times ? &options.times->feeding : nullptr);
        bool complete = true;
        at_record(from, b.shard_number, number,
                  [&] { complete = choice.complete([&] { decode(record, b, b.rows, b.identity.m); }); });
        if (!complete) continue;
        sound.store(true, std::memory_order_relaxed);
      } catch (data_error const& e) {
        b.error = e.what();
        if (options.skip_damaged) {
          refused = b.error;
          leave_out(std::exchange(b.error, {}));
          continue;
        }
        bool const fits = !dynamic_cast<misfit_error const*>(&e);
        if (fits && sound.load(std::memory_order_relaxed)) b.error += detail::way_out_of_damage;
      } catch (error const& e) {
        b.error = e.what();
      }
      b.refused = !b.error.empty();
      ++b.rows;
    }
    // A feed that has not accepted any record yet may be at fault itself, so its error does not count as
    // damage.
    if (b.rows == 0 && b.error.empty() && !sound.load(std::memory_order_relaxed) && !refused.empty())
      b.error = refused, b.refused = true;
    if (!b.error.empty()) b.rows = 0;
  }

  void finish(batch* b) {
    std::lock_guard const lock{mutex};
    auto const it = std::find_if(given.begin(), given.end(), [&](slot const& s) { return s.b == b; });
    invariant(it != given.end() && !it->ready, "a batch that is full was given out to be filled, once");
    if (it->dropped) {
      given.erase(it);
      free.push_back(b);
      work_or_room.notify_one();
    } else {
      it->ready = true;
    }
    check();
    // Also after a dropped one: a caller in next() may have been waiting for this batch.
    ready.notify_all();
  }

  std::vector<std::unique_ptr<desk>> desks;  // not in use

  bool fill_one(desk& d, bool wait) {
    batch* const b = take(wait);
    if (!b) return false;
    try {
      fill(*b, d);
    } catch (std::exception const& e) {
      b->rows = 0;
      b->error = fmt::format("{}: cannot be opened: {}", b->shard, e.what());
    }
    finish(b);
    return true;
  }

  void run() {
    desk own;
    while (fill_one(own, true)) {
    }
  }

  bool fill_one() {
    std::unique_ptr<desk> own;
    {
      std::lock_guard const lock{mutex};
      if (!desks.empty()) own = std::move(desks.back()), desks.pop_back();
    }
    if (!own) own = std::make_unique<desk>();
    bool const filled = fill_one(*own, false);
    std::lock_guard const lock{mutex};
    desks.push_back(std::move(own));
    return filled;
  }

  batch* pop_ready() {
    if (given.empty() || !given.front().ready) return nullptr;
    invariant(!given.front().dropped, "a cancelled batch is never given out");
    batch* const b = given.front().b;
    given.erase(given.begin());
    return b;
  }

  bool over() const { return stopped || (closed && queue.empty() && given.empty()); }
};

EDL_INLINE loader::loader(source const& from, loader_options const& options, factory const& make,
                          decoder decode, memory kept) {
  if (options.threads < 0 || options.threads > 1024)
    throw usage_error(fmt::format("{} loader threads cannot be; choose from 0 to 1024", options.threads));
  if (options.ring < 2 || options.ring > 65536)
    throw usage_error(fmt::format("a ring of {} batches cannot be; choose from 2 to 65536", options.ring));
  if (options.minibatch_size < 1) throw usage_error("the minibatch size must be at least 1");
  state_ = std::make_unique<state>(from, options, std::move(decode), std::move(kept));
  auto& s = *state_;
  s.make = make;
  auto const ring = std::size_t(options.ring);
  s.batches.reserve(ring);
  s.given.reserve(ring);
  s.free.reserve(ring);
  for (std::size_t i = 0; i < ring; ++i) {
    auto& b = s.batches.emplace_back(make());
    if (b.capacity < options.minibatch_size)
      throw usage_error(
          fmt::format("a batch holds {} samples, a minibatch has {}", b.capacity, options.minibatch_size));
    b.records.reserve(std::size_t(options.minibatch_size));
    s.free.push_back(&b);
  }
  invariant(s.free.size() == ring && s.batches.size() == ring, "all batches of a new ring are free");
  try {
    for (int i = 0; i < options.threads; ++i) s.threads.emplace_back([&s] { s.run(); });
  } catch (std::system_error const& e) {
    // The loader works with fewer threads than requested, too.
    if (s.threads.empty() && options.threads > 0)
      throw error(fmt::format("no thread can be started for the loader: {}", e.what()));
  }
}

EDL_INLINE loader::~loader() = default;

namespace detail {

/// Returns the number of minibatches; throws error if the source lacks some of the records.
inline std::uint64_t checked_minibatches(source const& from, loader_options const& options,
                                         work const& task) {
  auto const& shards = from.shards();
  if (task.shard >= shards.size())
    throw error(
        fmt::format("the job requests shard {}, but the data set has {}: this process reads different data",
                    task.shard, shards.size()));
  auto const& shard = shards[task.shard];
  if (task.begin >= task.end || task.end > shard.records)
    throw error(fmt::format(
        "{}: the job requests records [{}, {}), but it has {}: this process reads a different file",
        shard.name, task.begin, task.end, shard.records));
  auto const count = minibatches(task.begin, task.end, std::uint64_t(options.minibatch_size));
  if (count > std::numeric_limits<std::uint32_t>::max() || task.first_minibatch > count)
    throw error(fmt::format("{}: the job requests minibatch {}, but records [{}, {}) make {}", shard.name,
                            task.first_minibatch, task.begin, task.end, count));
  return count;
}

}  // namespace detail

EDL_INLINE void loader::submit(work const& task) {
  auto& s = *state_;
  auto const count = detail::checked_minibatches(s.from, s.options, task);
  auto const end = task.end_minibatch > 0 ? std::min<std::uint64_t>(count, task.end_minibatch) : count;
  if (task.first_minibatch >= end)
    throw error(fmt::format("{}: nothing is left of records [{}, {}) from minibatch {} on",
                            s.from.shards()[task.shard].name, task.begin, task.end, task.first_minibatch));
  state::pending p{task, {}, task.first_minibatch, end, count};
  if (s.options.shuffle && task.m == mode::training)
    task_order(s.options.seed, task.task, task.begin, task.end, p.order);
  std::lock_guard const lock{s.mutex};
  if (s.closed) throw error("the loader is closed, it takes no more work");
  if (s.stopped) return;
  s.queue.push_back(std::move(p));
  s.check();
  s.work_or_room.notify_all();
  s.ready.notify_all();
}

EDL_INLINE std::uint64_t loader::damaged_before(work const& task) const {
  auto const& s = *state_;
  detail::checked_minibatches(s.from, s.options, task);
  if (!s.options.skip_damaged || task.first_minibatch == 0) return 0;
  std::vector<std::uint64_t> order;
  if (s.options.shuffle && task.m == mode::training)
    task_order(s.options.seed, task.task, task.begin, task.end, order);
  std::uint64_t const n = std::min(
      task.end - task.begin, std::uint64_t(task.first_minibatch) * std::uint64_t(s.options.minibatch_size));
  auto const in = s.from.open();
  example record;
  std::uint64_t damaged = 0;
  batch tried = s.make();  // records that the feed refuses were left out, too
  for (std::uint64_t i = 0; i < n; ++i) try {
      in->read(task.shard, order.empty() ? task.begin + i : order[std::size_t(i)], record);
      s.decode(record, tried, 0, task.m);
    } catch (changed_error const&) {
      throw;
    } catch (data_error const&) {
      ++damaged;
    }
  return damaged;
}

EDL_INLINE bool loader::ready() const {
  auto& s = *state_;
  std::lock_guard const lock{s.mutex};
  return !s.given.empty() && s.given.front().ready;
}

EDL_INLINE bool loader::fill_next() { return state_->fill_one(); }

EDL_INLINE batch* loader::next() {
  auto& s = *state_;
  std::unique_lock lock{s.mutex};
  for (;;) {
    auto const given = [&] { return s.over() || (!s.given.empty() && s.given.front().ready); };
    s.ready.wait(lock, [&] { return given() || (s.threads.empty() && s.can_take()); });
    if (given()) return s.stopped ? nullptr : s.pop_ready();
    lock.unlock();
    fill_next();
    lock.lock();
  }
}

EDL_INLINE void loader::recycle(batch* b) {
  auto& s = *state_;
  std::lock_guard const lock{s.mutex};
  invariant(b >= s.batches.data() && b < s.batches.data() + s.batches.size(),
            "a batch that comes back is one of the ring");
  s.free.push_back(b);
  s.check();
  s.work_or_room.notify_one();
  s.ready.notify_all();  // for a caller in `next` that fills a batch itself
}

EDL_INLINE void loader::cancel(std::uint64_t ticket) {
  auto& s = *state_;
  std::lock_guard const lock{s.mutex};
  std::erase_if(s.queue, [&](auto const& p) { return p.assigned.ticket == ticket; });
  std::erase_if(s.given, [&](auto& slot) {
    if (slot.b->identity.ticket != ticket) return false;
    slot.dropped = true;
    if (slot.ready) s.free.push_back(slot.b);
    return slot.ready;  // a batch that is being filled stays in place until `finish`
  });
  s.check();
  s.work_or_room.notify_all();
  s.ready.notify_all();
}

EDL_INLINE void loader::close() {
  auto& s = *state_;
  std::lock_guard const lock{s.mutex};
  s.closed = true;
  s.ready.notify_all();
}

EDL_INLINE void loader::stop() { state_->stop(); }

}  // namespace edl::data
