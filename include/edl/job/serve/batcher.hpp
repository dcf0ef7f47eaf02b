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

/// The reply to a request that has waited too long: 503.
http::failure too_late(std::chrono::milliseconds bound);

/// Combines the records of several requests for one model into one batch. Requests that wait while a batch is
/// computed form the next one. Batches are computed on the node's thread if the slowest recent ones were
/// fast, which saves two thread switches; otherwise on a separate thread, so that the node can answer
/// meanwhile. Thread safety: `predict` on the node's thread, the rest safe.
class batcher {
 public:
  using model = std::shared_ptr<prediction_session const>;

  struct options {
    int max_batch = 64;                         ///< records
    std::chrono::microseconds max_wait{0};      ///< how long to wait for further records; 0: not at all
    std::size_t max_queue = 4096;               ///< records that may wait
    std::chrono::milliseconds timeout{30'000};  ///< in the queue, and for large JSON before it, for parsing
    std::chrono::microseconds quick{1000};      ///< a batch that takes no longer is fast
  };

  batcher(net::node& on, options o);
  batcher(batcher const&) = delete;
  ~batcher();

  /// The predictions of model `by` for the records of `q`, at most `max_batch`. Throws http::failure: 400 for
  /// records that the model cannot use, 429 if too many wait, 503 after `timeout`.
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
  std::atomic<double> seconds_{1};  // per record, of the slowest recent batches
  bool measured_ = false;           // set by the computing thread
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::uint64_t> batches_{0}, records_{0};
  std::thread thread_;
};

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/batcher.ipp"
#endif
