// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "edl/cluster/kubernetes/client.hpp"
#include "edl/core/log.hpp"

namespace edl::kubernetes {

/// Follows the objects of one path with certain labels: lists them, then watches from there, with bookmarks.
/// It reconnects at the same place when the server ends the watch or cannot be reached. It lists anew when
/// its place has expired (410, as a reply or inside the stream). It reports an event as soon as its bytes
/// have arrived. An event that is longer than 16 MiB, or damaged, counts as a failure.
///
/// Thread safety: safe. The callbacks are called from one separate thread, in order, never two at once. If
/// one throws, that is logged, and the objects are listed anew.
class watcher {
 public:
  struct callbacks {
    /// The existing objects; others were deleted unnoticed. `version`: the list's own. A newer object was
    /// created after it.
    std::function<void(nlohmann::json const& items, std::string const& version)> listed;
    /// "ADDED", "MODIFIED" or "DELETED", and the object.
    std::function<void(std::string const& type, nlohmann::json const& object)> changed;
    /// Called at each permanent refusal (401, 403, 404) to list or to watch; `since`: for how long. `before`:
    /// it was permitted to watch at some time before. May be empty.
    std::function<void(api_error const& why, std::chrono::milliseconds since, bool before)> refused{};
    /// If `one` is set, a list is passed on as it arrives: `begins`, `one` for each object, and at its end
    /// `listed` with an empty array. An interrupted list begins anew. So a long list is never completely in
    /// memory.
    std::function<void()> begins{};
    std::function<void(nlohmann::json const& item)> one{};
  };
  struct options {
    std::chrono::milliseconds idle{330'000};     ///< bookmarks come each minute; a server ends watches itself
    std::chrono::milliseconds first_pause{100};  ///< after the first failure in a row; doubles
    std::chrono::milliseconds longest_pause{5'000};
    std::chrono::milliseconds page{60'000};  ///< time for one page of a list
  };

  /// `selector`: labels, e.g. "a=b,c=d". Permanent refusals (401, 403, 404) are logged as errors once, and
  /// retried with the longest pause. Until the first watch the pauses are one second.
  watcher(client& of, std::string path, std::string selector, callbacks to, logger log);
  watcher(client& of, std::string path, std::string selector, callbacks to, logger log, options o);
  watcher(watcher const&) = delete;

  /// Ends within 200 ms; calls no callback afterwards.
  ~watcher();

 private:
  struct trouble;  // what the last failures were

  void run();
  void list();
  bool follow(trouble& t);
  bool event(std::string_view line);
  bool pause(std::chrono::milliseconds time);
  std::string page(query const& q);

  client& client_;
  std::string path_, selector_;
  callbacks to_;
  logger log_;
  options options_;

  std::string version_;    // where to go on; empty: list first
  bool moved_ = false;     // the watch at hand has brought something
  bool followed_ = false;  // ever

  std::mutex mutex_;
  std::condition_variable stopping_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/watcher.ipp"
#endif
