// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "edl/job/train/dashboard/page_server.hpp"

namespace edl::tool {

/// Rows of a table by their ids, each an object of JSON, as readers follow them by server-sent events:
/// `reset` (what is known is void; it says what the rows are of), `rows` (new and changed ones, and the ids
/// of those that are gone) and `problem`. Thread safety: safe.
class row_feed {
 public:
  explicit row_feed(std::string about) : about_(std::move(about)) {}

  struct place {
    std::uint64_t row = 0, problem = 0;
    bool begun = false;
  };
  using rows = std::map<std::string, std::string>;

  /// All that there are now, and why they may be too few or too old; empty: they are not. Whether that is
  /// new.
  bool show(rows const& all, std::string const& problem);

  /// Only the latter: the rows stay.
  bool show_problem(std::string const& problem);

  std::string const& about() const { return about_; }  ///< an object of JSON
  std::string all() const;                             ///< an array
  std::string news(place& at) const;

 private:
  struct row {
    std::uint64_t number = 0;
    std::string text;  // empty: it is gone
  };
  void put(std::string const& id, std::string text);

  std::string const about_;
  mutable std::mutex mutex_;
  std::map<std::string, row> rows_;
  std::map<std::uint64_t, std::string> order_;  // ids by the numbers of their last change
  std::string problem_;
  std::uint64_t newest_ = 0, problems_ = 0;
};

struct overview_options {
  std::string what, where;  ///< "jobs" or "runs"; the namespace or the directory
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  /// How it is now. What it throws is a problem that the page tells.
  std::function<row_feed::rows(std::string& problem)> rows;
  /// All of one of them, an object of JSON. Throws `http::failure`.
  std::function<std::string(std::string const& id)> one;
  std::function<void()> stop = [] {};    ///< ends both at once, as what waits for a server
  std::chrono::milliseconds pause{500};  ///< between two looks, while somebody reads
};

/// A page over many runs or jobs: `GET /`, `/api/about`, `/api/runs`, `/api/runs/ID` and `/api/live`. Looks
/// only while somebody reads. Thread safety: safe.
class overview {
 public:
  explicit overview(overview_options o);
  overview(overview const&) = delete;
  overview& operator=(overview const&) = delete;
  ~overview();

  std::string address() const;  ///< with the token, where one is wanted
  std::uint16_t port() const { return server_.port(); }

 private:
  void look();
  void work();

  overview_options options_;
  row_feed feed_;
  std::mutex looking_, mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  train::page_server server_;
  std::thread thread_;
};

/// Its page.
train::dashboard_page overview_page();

}  // namespace edl::tool
