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

/// A task's records, or the rest of them, for batches.
struct work {
  task_key task;
  std::size_t shard = 0;
  std::uint64_t begin = 0, end = 0;  ///< all records of the task, even if it is resumed
  mode m = mode::training;
  std::uint32_t first_minibatch = 0;  ///< earlier ones have been applied already
  std::uint64_t ticket = 0;           ///< the caller's own name for it, for `cancel`
  std::uint32_t end_minibatch = 0;    ///< this one and later ones are skipped; 0: none
};

/// The time that all threads together spent reading and feeding records. Thread safety: safe.
struct loading_times {
  std::atomic<std::int64_t> reading{0}, feeding{0};  ///< nanoseconds
};

struct loader_options {
  int threads = 2;  ///< its own; 0: callers of `fill_next` fill batches, or else `next` does
  int ring = 4;     ///< batches in all, including those that the caller has; at least 2
  int minibatch_size = 64;
  std::uint64_t seed = 0;
  bool shuffle = true;        ///< in training; evaluation and prediction always read in order
  bool skip_damaged = false;  ///< count an unreadable record in `batch::skipped` instead of failing its batch
  loading_times* times = nullptr;  ///< must outlive the loader; null: it reads no clock
};

/// Reads, decodes and shuffles ahead of the step, on its own threads or on the compute threads, into a ring
/// of reused batches. Thread safety: safe, every function from any thread. A batch from `next` belongs to the
/// caller until `recycle`.
class loader {
 public:
  using factory = std::function<batch()>;

  /// Writes a record into a row of a batch. Called by several threads at once, each with its own batch. An
  /// exception becomes the batch's `error`.
  using decoder = std::function<void(example const&, batch&, int row, mode)>;

  /// Whether a minibatch's records need not be read, because the device has kept their samples; it then
  /// prepares the batch. Called like a decoder, once the batch's identity and records are known.
  using memory = std::function<bool(batch&)>;

  /// Starts the threads. `from` must outlive the loader. Throws usage_error if an option is out of range or
  /// the factory's batches are too small for a minibatch.
  loader(source const& from, loader_options const& options, factory const& make, decoder decode,
         memory kept = {});

  /// Stops and joins. Batches that the caller still has become invalid.
  ~loader();
  loader(loader const&) = delete;
  loader& operator=(loader const&) = delete;

  /// Queues a task; never waits. Throws edl::error if the source does not have its records, nothing is left
  /// of the task, or the loader is closed.
  void submit(work const& task);

  /// The number of unreadable records in the minibatches before `task.first_minibatch`, which were skipped
  /// when those were applied. Reads them all on the caller's thread; 0 without `skip_damaged`. Throws as
  /// `submit`.
  std::uint64_t damaged_before(work const& task) const;

  /// The next batch, in the order of submission and within a task by index; waits for it. Null after `stop`,
  /// and after `close` once all batches were returned. For an unusable record the batch has an `error`; other
  /// batches are not affected. Waits forever if the caller has the whole ring.
  batch* next();

  /// Whether `next` would return without waiting.
  bool ready() const;

  /// Fills the next batch on the caller's thread; several threads may do so concurrently. False if nothing is
  /// queued or the ring is full.
  bool fill_next();

  /// Returns a batch for reuse.
  void recycle(batch* b);

  /// Drops all batches of work with this ticket that `next` has not returned yet.
  void cancel(std::uint64_t ticket);

  /// Declares that no more work follows.
  void close();

  /// Drops queued work; a waiting `next` returns null.
  void stop();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/loader.ipp"
#endif
