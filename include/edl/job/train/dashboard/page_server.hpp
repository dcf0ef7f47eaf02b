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

/// JSON that a page asks for.
struct page_document {
  std::string path;                                       ///< as of an `http::route`
  std::function<std::string(http::request const&)> text;  ///< throws `http::failure`
  bool waits = false;  ///< for a disk or another server: it is made on a thread of its own
};

/// What is new to one reader of `/api/live`, as server-sent events: empty: nothing by now; none: the end.
using page_news = std::function<std::optional<std::string>()>;

struct page_options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any
  std::string token = {};  ///< that it wants, unless it is of this machine; empty: one is drawn, and told
  std::string certificate = {}, key = {};  ///< files (PEM) for TLS; empty: none
  dashboard_page page;
  std::vector<page_document> documents;
  std::function<page_news(std::string_view last_event_id)> follow;  ///< called on the server's thread
  std::function<void()> watch = {};  ///< somebody begins to read; empty: nobody wants to know
  logger log = logger{};
};

/// Serves a page, its documents and `/api/live` on a thread of its own. Nothing can be changed by it. Off
/// this machine it wants a token. Thread safety: safe.
class page_server {
 public:
  /// Says in the log where it is. Throws `edl::error` when the address cannot be listened on, and for a token
  /// that is wanted and has fewer than 16 characters.
  explicit page_server(page_options o);
  page_server(page_server const&) = delete;
  page_server& operator=(page_server const&) = delete;

  /// Readers get what is left, for at most a second.
  ~page_server();

  /// There is news for readers.
  void wake();

  std::size_t readers() const;  ///< of `/api/live`

  std::string address() const;  ///< "http://127.0.0.1:8080"
  std::uint16_t port() const;
  std::string const& token() const;  ///< empty: none is wanted

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace edl::train

#ifdef EDL_HEADER_ONLY
#include "edl/job/train/dashboard/page_server.ipp"
#endif
