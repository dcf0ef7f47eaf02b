// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/http/message.hpp"
#include "edl/core/log.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {

/// A JSON document of a page.
struct page_document {
  std::string path;                                       ///< as in an `http::route`
  std::function<std::string(http::request const&)> text;  ///< throws `http::failure`
  bool waits = false;  ///< blocks on a disk or another server: made on a separate thread
};

/// News for one reader of `/api/live`, as server-sent events. Empty text: nothing yet; no value: the end.
using page_news = std::function<std::optional<std::string>()>;

struct page_options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;                  ///< 0: any
  std::string token = {};                  ///< required from other machines; empty: one is drawn, and logged
  std::string certificate = {}, key = {};  ///< files (PEM) for TLS; empty: none
  dashboard_page page;
  std::vector<page_document> documents;
  std::function<page_news(std::string_view last_event_id)> follow;  ///< called on the server's thread
  std::function<void()> watch = {};  ///< called when a reader starts; may be empty
  logger log = logger{};
};

/// Serves a page, its documents and `/api/live` on its own thread, read-only. It requires a token from other
/// machines. Thread safety: safe.
class page_server {
 public:
  /// Logs its address. Throws `edl::error` if it cannot listen there, and for a required token with fewer
  /// than 16 characters.
  explicit page_server(page_options o);
  page_server(page_server const&) = delete;
  page_server& operator=(page_server const&) = delete;

  /// Sends the rest to readers, for at most a second.
  ~page_server();

  /// Call when there is news for readers.
  void wake();

  std::size_t readers() const;  ///< of `/api/live`

  std::string address() const;  ///< "http://127.0.0.1:8080"
  std::uint16_t port() const;
  std::string const& token() const;  ///< empty: none is required

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/dashboard/page_server.ipp"
#endif
