// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "edl/base/http/message.hpp"
#include "edl/base/net/event.hpp"
#include "edl/base/net/node.hpp"
#include "edl/job/train/prediction/generation_session.hpp"

namespace edl::serve {

/// A text that a client waits for. Only the node's thread uses it, but for `gone`.
struct asked_text {
  asked_text(asio::any_io_executor const& on, std::string of, generation_options by)
      : prompt(std::move(of)), options(std::move(by)), changed(on) {}

  std::string const prompt;
  generation_options const options;
  std::chrono::steady_clock::time_point const since = std::chrono::steady_clock::now();
  net::event changed;                    ///< after each piece, and at the end
  std::string unread;                    ///< what has been generated since the reader took it
  std::optional<generated_text> result;  ///< at the end; or `failed`
  std::optional<http::failure> failed;
  std::atomic<bool> gone{false};  ///< nobody waits for it any more: it ends soon

  bool ended() const { return result || failed; }
};

/// Generates the texts of many clients side by side, on a thread of its own. A text begins as soon as one of
/// the sequences is free, with the model that is then the newest; others wait.
///
/// Thread safety: `ask` on the node's thread, the rest safe.
class text_engine {
 public:
  struct options {
    int sequences = 8;                          ///< texts at once
    std::size_t max_queue = 256;                ///< texts that may wait
    std::chrono::milliseconds timeout{30'000};  ///< a text may wait so long to begin
  };
  /// The path of the current model, and a session of it.
  struct source {
    std::function<std::string()> path;  ///< empty: there is none yet
    std::function<std::unique_ptr<generation_session>(std::string const& path)> open;
  };

  text_engine(net::node& on, source from, options o);
  text_engine(text_engine const&) = delete;
  ~text_engine();  ///< texts that have not ended fail

  /// Begins a text soon. Throws http::failure: 429 if too many wait.
  std::shared_ptr<asked_text> ask(std::string prompt, generation_options by);

  std::size_t waiting() const { return waiting_; }
  std::uint64_t texts() const { return texts_; }    ///< that have ended
  std::uint64_t tokens() const { return tokens_; }  ///< that have been made

 private:
  using text = std::shared_ptr<asked_text>;
  struct at_work;
  void work();
  void begin_some();
  void step_all();
  void say(text const& to, std::function<void(asked_text&)> what);

  net::node& node_;
  source from_;
  options options_;
  std::mutex mutex_;  // guards the queue and `over_`
  std::condition_variable more_;
  std::deque<text> queue_;
  bool over_ = false;
  std::vector<std::unique_ptr<at_work>> sessions_;  // on the engine's thread: the newest model's last
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::uint64_t> texts_{0}, tokens_{0};
  std::thread thread_;
};

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/text_engine.ipp"
#endif
