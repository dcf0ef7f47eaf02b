// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "edl/core/log.hpp"
#include "edl/job/train/prediction/prediction_session.hpp"

namespace edl::serve {

/// The newest model of a directory that a job may go on writing to. A newer one is read beside the one at
/// work, and warmed up, before it takes its place. One that cannot be read leaves the one at work where it
/// is, and is tried again after pauses that grow to a minute; one that is passed over is told of once. Thread
/// safety: safe.
class followed_model {
 public:
  struct options {
    std::string path;
    prediction_options predicting = {};
    int max_batch = 64;                       ///< batches of up to so many records are warmed up
    std::chrono::milliseconds interval{250};  ///< between two looks; 0: no other model is looked for
  };

  /// Throws error where there is no model. `changed` is told of each one that takes another's place.
  followed_model(train::program const& p, options o, logger log, std::function<void()> changed = {});
  followed_model(followed_model const&) = delete;
  ~followed_model();

  std::shared_ptr<prediction_session const> now() const;

  /// Seconds since there is a newer model than the one at work; 0: there is none.
  double lag() const;

  std::uint64_t loaded() const { return loaded_; }  ///< models that took another's place
  std::uint64_t failed() const { return failed_; }  ///< models that could not be read

 private:
  using clock = std::chrono::steady_clock;
  std::string newest();
  void tell(std::string const& what);
  std::shared_ptr<prediction_session const> load(std::string const& path) const;
  void follow();
  void look();

  train::program const& program_;
  options options_;
  logger log_;
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  std::shared_ptr<prediction_session const> now_;
  std::string tried_;          // the newest that was looked at, with the time of its last change
  std::string told_;           // what hindered it at the last look
  clock::time_point again_{};  // when it may be looked at again
  std::chrono::milliseconds pause_{};
  clock::time_point newer_since_ = clock::time_point::max();
  bool over_ = false;
  std::atomic<std::uint64_t> loaded_{0}, failed_{0};
  std::thread thread_;
};

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/followed_model.ipp"
#endif
