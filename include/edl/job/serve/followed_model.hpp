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
#include <vector>

#include "edl/core/generation.hpp"
#include "edl/core/log.hpp"
#include "edl/job/train/prediction/prediction_session.hpp"

namespace edl::serve {

/// The newest model of a directory that a job may go on writing to. A newer one is read beside the one at
/// work, and warmed up, before it takes its place. One that cannot be read leaves the one at work where it
/// is, and is tried again after pauses that grow to a minute; one that is passed over is told of once. Those
/// before it may be kept, whole: at the start the newest that the directory has. Thread safety: safe.
class followed_model {
 public:
  struct options {
    std::string path;
    prediction_options predicting = {};
    int max_batch = 64;                       ///< batches of up to so many records are warmed up
    std::chrono::milliseconds interval{250};  ///< between two looks; 0: no other model is looked for
    int keep = 1;                             ///< versions that may be asked for, the one at work among them
    bool wait = false;                        ///< where there is no model yet, until there is one
  };

  /// Throws error where there is no model, unless that is waited for, and where it cannot be used. `changed`
  /// is told of each one that takes another's place, and of the first one that was waited for.
  followed_model(train::program const& p, options o, logger log, std::function<void()> changed = {});
  followed_model(followed_model const&) = delete;
  ~followed_model();

  using model = std::shared_ptr<prediction_session const>;

  model now() const;                ///< the one at work; null: none yet
  std::vector<model> kept() const;  ///< one of each version, the one at work first
  std::string missing() const;      ///< what is waited for before there is a model; empty: there is one

  /// Seconds since there is a newer model than this one, which the caller holds, or, without one, than the
  /// one at work; 0: there is none.
  double lag(prediction_session const* of = nullptr) const;

  std::uint64_t loaded() const { return loaded_; }  ///< models that took another's place
  std::uint64_t failed() const { return failed_; }  ///< models that could not be read, or are passed over

 private:
  using clock = std::chrono::steady_clock;
  std::string newest();
  bool is_there() const;
  void find_first();
  void tell(std::string const& what);
  model load(std::string const& path) const;
  model load_whole() const;
  void try_later(std::string const& what);
  void load_older();
  void follow();
  void look();
  void let_go();
  static constexpr auto never = clock::time_point::max();

  struct loaded_model {
    model of;
    clock::time_point newer_since = never;
    bool kept = true;  // it may be asked for; else requests still use it
  };

  train::program const& program_;
  options options_;
  logger log_;
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  std::vector<loaded_model> all_;  // the one at work first
  position at_;                    // of the one at work; only the follower's thread changes it
  std::string tried_;              // the newest that was looked at, with the time of its last change
  std::string told_;               // what hindered it at the last look
  std::string missing_;            // with the mutex
  std::string damaged_;            // a newer checkpoint that is passed over
  clock::time_point again_{};      // when it may be looked at again
  std::chrono::milliseconds pause_{};
  bool over_ = false;
  std::atomic<std::uint64_t> loaded_{0}, failed_{0};
  std::thread thread_;
};

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/followed_model.ipp"
#endif
