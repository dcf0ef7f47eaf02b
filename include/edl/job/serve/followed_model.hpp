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

/// The newest model of a directory, to which a job may still write. It reads a newer model beside the current
/// one, and warms it up, before it switches. If a model cannot be read, the current one stays, and it retries
/// after pauses that grow to a minute; it logs a skipped one once. It may keep earlier models completely; at
/// the start it loads the newest of the directory. Thread safety: safe.
class followed_model {
 public:
  struct options {
    std::string path;
    prediction_options predicting = {};
    int max_batch = 64;                       ///< it warms up batches of up to this many records
    std::chrono::milliseconds interval{250};  ///< between two checks; 0: it does not check for newer models
    int keep = 1;                             ///< versions that may be asked for, the one at work among them
    bool wait = false;                        ///< if there is no model yet, until there is one
  };

  /// Throws error if there is no model, unless `wait`, or if it cannot be used. Calls `changed` after each
  /// switch, and for the first model after a wait.
  followed_model(train::program const& p, options o, logger log, std::function<void()> changed = {});
  followed_model(followed_model const&) = delete;
  ~followed_model();

  using model = std::shared_ptr<prediction_session const>;

  model now() const;                ///< the current one; null: none yet
  std::vector<model> kept() const;  ///< one of each version, the current one first
  std::string missing() const;      ///< what it waits for; empty: there is a model

  /// Seconds for which a newer model than `of` has existed (null: than the current one); 0: there is none.
  double lag(prediction_session const* of = nullptr) const;

  std::uint64_t loaded() const { return loaded_; }  ///< number of switches
  std::uint64_t failed() const { return failed_; }  ///< models that could not be read, or were skipped

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
    bool kept = true;  // requests may name it; otherwise only pending requests use it
  };

  train::program const& program_;
  options options_;
  logger log_;
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::condition_variable ending_;
  std::vector<loaded_model> all_;  // the current one first
  position at_;                    // of the current one; only the follower's thread changes it
  std::string tried_;              // the newest one checked, with its modification time
  std::string told_;               // the problem at the last check
  std::string missing_;            // with the mutex
  std::string damaged_;            // a newer checkpoint that is skipped
  clock::time_point again_{};      // time of the next check
  std::chrono::milliseconds pause_{};
  bool over_ = false;
  std::atomic<std::uint64_t> loaded_{0}, failed_{0};
  std::thread thread_;
};

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/followed_model.ipp"
#endif
