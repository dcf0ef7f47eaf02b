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

/// Follows the objects of one path that bear some labels: lists them, then watches from there, with
/// bookmarks. It connects again where it was when the server ends the watch or cannot be reached. It lists
/// anew when its place has expired (410, as an answer or inside the stream). An event is told as soon as its
/// bytes are there. One that is longer than 16 MiB, or damaged, counts as a failure.
///
/// Thread safety: safe. The callbacks come from one thread of its own, in order, never two at once. What they
/// throw is logged, and the objects are listed anew.
class watcher {
 public:
  struct callbacks {
    /// The objects that there are now; what is not among them any more has been deleted unseen. `version`:
    /// the list's own. An object that is newer was made after it.
    std::function<void(nlohmann::json const& items, std::string const& version)> listed;
    /// "ADDED", "MODIFIED" or "DELETED", and the object.
    std::function<void(std::string const& type, nlohmann::json const& object)> changed;
    /// It has been refused for so long to list or to watch, by what time does not mend (401, 403, 404).
    /// `before`: it has been allowed to watch, at some time before that. Told at each refusal; may be empty.
    std::function<void(api_error const& why, std::chrono::milliseconds since, bool before)> refused{};
    /// Where `one` is given, a list is told as it comes: `begins`, each object by `one`, and at its end
    /// `listed` with an empty array. One that breaks off begins anew. So a long list is never in memory as a
    /// whole.
    std::function<void()> begins{};
    std::function<void(nlohmann::json const& item)> one{};
  };
  struct options {
    std::chrono::milliseconds idle{330'000};     ///< bookmarks come each minute; a server ends watches itself
    std::chrono::milliseconds first_pause{100};  ///< after the first failure in a row; doubles
    std::chrono::milliseconds longest_pause{5'000};
    std::chrono::milliseconds page{60'000};  ///< time for one page of a list
  };

  /// `selector`: labels, as "a=b,c=d". Refusals that time does not mend (401, 403, 404) are logged as errors
  /// once, and tried again with the longest pause. Until the first watch the pauses are of a second.
  watcher(client& of, std::string path, std::string selector, callbacks to, logger log);
  watcher(client& of, std::string path, std::string selector, callbacks to, logger log, options o);
  watcher(watcher const&) = delete;

  /// Ends within 200 ms; no callback comes after it.
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
