// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "edl/compute/data/batch.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/ledger.hpp"
#include "edl/core/mode.hpp"

namespace edl::data {

/// A task's records, or what is left of them, to be made into batches.
struct work {
  task_key task;
  std::size_t shard = 0;
  std::uint64_t begin = 0, end = 0;  ///< all records of the task, also where it is resumed
  mode m = mode::training;
  std::uint32_t first_minibatch = 0;  ///< those before it have been applied already
  std::uint64_t ticket = 0;           ///< the caller's own name for it, for `cancel`
  std::uint32_t end_minibatch = 0;    ///< those from it on are not wanted; 0: all are
};

/// How long threads have read records, and fed them, all threads together. Thread safety: safe.
struct loading_times {
  std::atomic<std::int64_t> reading{0}, feeding{0};  ///< nanoseconds
};

struct loader_options {
  int threads = 2;  ///< of its own; 0: batches are filled by whoever calls `fill_next`, or else by `next`
  int ring = 4;     ///< batches in all, those in the caller's hands included; at least 2
  int minibatch_size = 64;
  std::uint64_t seed = 0;
  bool shuffle = true;  ///< in training; evaluation and prediction always go in order
  bool skip_damaged =
      false;  ///< count a record that cannot be read in `batch::skipped` instead of failing its batch
  loading_times* times = nullptr;  ///< outlives the loader; null: no clock is looked at
};

/// Reads, decodes and shuffles ahead of the step, on its own threads or on those that compute, into a ring of
/// batches that are reused.
/// Thread safety: safe, every function from any thread. What `next` gave belongs to the caller until
/// `recycle`.
class loader {
 public:
  using factory = std::function<batch()>;

  /// Puts a record into a row of a batch. Called by several threads at once, each with a batch of its own.
  /// What it throws becomes the batch's `error`.
  using decoder = std::function<void(example const&, batch&, int row, mode)>;

  /// Whether a minibatch's records need not be read, as whoever computes has kept what was made of them;
  /// prepares the batch then. Called as a decoder is, once its identity and records are known.
  using memory = std::function<bool(batch&)>;

  /// Starts the threads. `from` must outlive the loader. A usage_error if an option is out of range or the
  /// factory's batches are too small for a minibatch.
  loader(source const& from, loader_options const& options, factory const& make, decoder decode,
         memory kept = {});

  /// Stops and joins. Batches that the caller still holds are gone.
  ~loader();
  loader(loader const&) = delete;
  loader& operator=(loader const&) = delete;

  /// Queues a task; never waits. An edl::error if the source has no such records, nothing is left of the
  /// task, or the loader is closed.
  void submit(work const& task);

  /// How many records of the minibatches before `task.first_minibatch` cannot be read: whoever applied those
  /// left them out. Reads them all on the caller's thread; 0 without `skip_damaged`. Throws as `submit`.
  std::uint64_t damaged_before(work const& task) const;

  /// The next batch, in the order of submission and within a task by index; waits for it. Null after `stop`,
  /// and after `close` once everything was given out. A record that cannot be used is told by its batch
  /// (`batch::error`) and stops nothing else. Waits forever if the caller holds the whole ring.
  batch* next();

  /// Whether `next` has something to give at once.
  bool ready() const;

  /// Fills the next batch on the caller's thread; several threads may do so side by side. False where nothing
  /// is queued or the ring is full.
  bool fill_next();

  /// Gives a batch back to be filled again.
  void recycle(batch* b);

  /// Drops what is not yet given out of all work with this ticket.
  void cancel(std::uint64_t ticket);

  /// No more work will come.
  void close();

  /// Gives up what is queued; whoever waits in `next` returns with null.
  void stop();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/loader.ipp"
#endif
