// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kubernetes/api.hpp"

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace edl::testing::kubernetes {

/// What stands in a pod's token between the token that the server accepts and "SPACE:ACCOUNT".
inline constexpr char account_mark = '~';

/// What goes wrong on the way, by order. Thread safety: safe.
struct faults {
  std::atomic<bool> hanging{false};
  std::atomic<std::int64_t> delay_ms{0};
  std::atomic<std::uint64_t> watch_generation{0};  ///< a watch ends when this is no longer what it began with
  std::mutex mutex{};
  int failures = 0, code = 503, retry_after = 0;

  struct on_path {
    std::string path;  ///< a part of it
    std::chrono::milliseconds delay{0};
    int failures = 0, code = 503, retry_after = 0;
  };
  std::vector<on_path> paths{};                 ///< what goes wrong on some paths only
  std::atomic<std::int64_t> events_late_ms{0};  ///< before events are written to a watch
  std::atomic<bool> events_twice{false};
};

/// The HTTP or HTTPS server: who asks, faults, and answers that come as they happen.
/// Thread safety: `open` and `close` on one thread at a time, the rest on any.
class front {
 public:
  /// What others answer.
  struct sources {
    std::function<std::string(log_request const&)> log_file;  ///< throws refusal
    std::function<bool(std::string const& path)> still_written;
    std::function<answer(request const&)> control;  ///< what is asked below /double/
  };

  front(store& s, api& a, options const& o, faults& f, sources from);
  ~front();

  void open();   ///< listens, the second time on the same port. Throws std::runtime_error.
  void close();  ///< refuses connections and cuts those that are open

  std::uint16_t port() const { return port_; }
  void accept_token(std::string const& token);  ///< this one only
  std::size_t watches() const { return watches_; }

 private:
  void take(httplib::Request const& r, httplib::Response& to);
  bool trip(std::string const& path, httplib::Response& to);
  void stream(watch w, httplib::Response& to);
  void stream(log_request const& l, httplib::Response& to);
  std::string user(httplib::Request const& r) const;  ///< throws refusal

  store& store_;
  api& api_;
  options const& options_;
  faults& faults_;
  sources from_;
  std::uint16_t port_ = 0;
  mutable std::mutex token_mutex_;
  std::string token_;
  std::atomic<bool> open_{false};
  std::atomic<std::size_t> watches_{0};
  std::unique_ptr<httplib::Server> server_;
  std::thread thread_;
};

}  // namespace edl::testing::kubernetes
