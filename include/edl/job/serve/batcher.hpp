// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "edl/base/http/message.hpp"
#include "edl/base/net/event.hpp"
#include "edl/base/net/node.hpp"
#include "edl/job/serve/protocol.hpp"
#include "edl/job/train/prediction/prediction_session.hpp"

namespace edl::serve {

/// The answer to a request that has waited for too long: 503.
http::failure too_late(std::chrono::milliseconds bound);

/// Puts the records of several requests for one model into one batch. What waits while a batch is computed is
/// the next one. Batches are computed on the node's thread where the slowest ones lately say that they are
/// small, which saves two changes of threads; others on a thread of its own, so that the node answers
/// meanwhile. Thread safety:
/// `predict` on the node's thread, the rest safe.
class batcher {
 public:
  using model = std::shared_ptr<prediction_session const>;

  struct options {
    int max_batch = 64;                         ///< records
    std::chrono::microseconds max_wait{0};      ///< for more records than are there; 0: none
    std::size_t max_queue = 4096;               ///< records that may wait
    std::chrono::milliseconds timeout{30'000};  ///< in the queue, and for much JSON before it, to be read
    std::chrono::microseconds quick{1000};      ///< a batch that takes no longer is small
  };

  batcher(net::node& on, options o);
  batcher(batcher const&) = delete;
  ~batcher();

  /// What the model `by` says of the records of `q`, at most `max_batch`. Throws http::failure: 400 for
  /// records that the model cannot use, 429 where too many wait, 503 after `timeout`.
  asio::awaitable<std::vector<float>> predict(std::shared_ptr<question const> q, model by);

  std::size_t waiting() const { return waiting_; }  ///< records
  std::uint64_t batches() const { return batches_; }
  std::uint64_t records() const { return records_; }

 private:
  using clock = std::chrono::steady_clock;
  struct request;
  void look();
  void work();
  std::vector<std::shared_ptr<request>> take();  // with the mutex; of one model
  void compute(std::vector<std::shared_ptr<request>> const& batch);
  void answer(std::vector<std::shared_ptr<request>> const& batch);

  net::node& node_;
  options options_;
  std::mutex mutex_;  // guards the queue, `computing_` and `over_`
  std::condition_variable more_;
  std::deque<std::shared_ptr<request>> queue_;
  bool computing_ = false, over_ = false;
  bool looking_ = false;            // on the node's thread
  std::atomic<double> seconds_{1};  // that a record takes, as the slowest lately
  bool measured_ = false;           // by whoever computes
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::uint64_t> batches_{0}, records_{0};
  std::thread thread_;
};

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/batcher.ipp"
#endif
