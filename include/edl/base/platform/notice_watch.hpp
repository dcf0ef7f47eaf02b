// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "edl/base/platform/notice_source.hpp"
#include "edl/core/log.hpp"

namespace edl::platform {

/// Watches a source of notices on a thread of its own, which sleeps between looks: nothing that the source
/// does ends or delays the process. A notice that is there at the first look is only logged: a process that
/// was started on such a machine works on there, because its successor may come to the same one. A source
/// that has never answered is logged once, and then asked each minute.
///
/// Thread safety: safe.
class notice_watch {
 public:
  notice_watch(std::unique_ptr<notice_source> from, logger log);
  notice_watch(notice_watch const&) = delete;
  notice_watch& operator=(notice_watch const&) = delete;

  /// Waits for a look that has begun, which is asked to stop.
  ~notice_watch();

  /// Who takes the machine, and when; empty: nobody, as far as known. A notice is never withdrawn.
  std::string notice() const;

 private:
  void run();
  void take(notice_source::report const& r);
  bool pause(std::chrono::milliseconds time);

  std::unique_ptr<notice_source> from_;
  logger log_;
  bool looked_ = false, absent_ = false;
  std::string first_;       // the notice at the first look
  std::size_t missed_ = 0;  // looks before the first answer
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  std::string notice_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/base/platform/notice_watch.ipp"
#endif
