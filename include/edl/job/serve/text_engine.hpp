// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "edl/base/http/message.hpp"
#include "edl/base/net/event.hpp"
#include "edl/base/net/node.hpp"
#include "edl/core/log.hpp"
#include "edl/job/train/prediction/generation_session.hpp"

namespace edl::serve {

/// A text that a client waits for. Only the node's thread uses it, but for what is constant, and `gone`.
struct asked_text {
  std::shared_ptr<std::string const> prompt;
  generation_options options;
  bool streams = false;                 ///< the client reads it piece by piece
  std::shared_ptr<net::event> changed;  ///< after each piece, and at the end: of all texts of a request
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  std::string unread;                    ///< of a stream: generated since the reader took it
  std::optional<generated_text> result;  ///< at the end; or `failed`
  std::optional<http::failure> failed;
  std::atomic<bool> gone{false};  ///< nobody waits for it any more: it ends soon

  bool ended() const { return result || failed; }
};

/// Generates the texts of many clients side by side, on a thread of its own. A text begins as soon as one of
/// the sequences is free; others wait. A newer model is opened on another thread meanwhile; texts that begin
/// then use it. While texts of two older models go on, a third is not opened.
///
/// Thread safety: `ask` on the node's thread, the rest safe.
class text_engine {
 public:
  struct options {
    int sequences = 8;                          ///< texts at once
    std::size_t max_queue = 256;                ///< texts that may wait
    std::chrono::milliseconds timeout{30'000};  ///< a text may wait so long to begin
    int max_tokens = 4096;                      ///< of a text
  };
  using session = std::unique_ptr<generation_session>;
  /// The current model.
  struct source {
    std::function<std::shared_ptr<void const>()> now;  ///< null: there is none yet; another model differs
    std::function<session()> open;                     ///< a session of it; called on any thread
  };

  /// Opens a session of the current model, if there is one. Throws what `open` throws.
  text_engine(net::node& on, source from, options o, logger log = logger{});
  text_engine(text_engine const&) = delete;
  ~text_engine();  ///< texts that have not ended fail

  int max_tokens() const { return options_.max_tokens; }

  /// Begins texts soon. Throws http::failure, and begins none: 429 if too many wait.
  void ask(std::vector<std::shared_ptr<asked_text>> const& all);

  std::size_t waiting() const { return waiting_; }
  std::size_t running() const { return running_; }
  std::uint64_t texts() const { return texts_; }    ///< that have ended
  std::uint64_t tokens() const { return tokens_; }  ///< that have been made

 private:
  using text = std::shared_ptr<asked_text>;
  struct at_work;
  void work();
  void look_for_model();
  void begin_some();
  void step_all();
  void say(text const& to, std::function<void(asked_text&)> what);
  std::optional<http::failure> expired(text const& t) const;

  net::node& node_;
  source from_;
  options options_;
  logger log_;
  std::mutex mutex_;  // guards the queue and `over_`
  std::condition_variable more_;
  std::deque<text> queue_;
  bool over_ = false;
  // On the engine's thread:
  std::vector<std::unique_ptr<at_work>> sessions_;  // the newest model's last
  std::shared_ptr<void const> newest_, opening_of_;
  std::future<session> opening_;
  std::string why_closed_;  // why there is no session of any model
  std::atomic<std::size_t> waiting_{0}, running_{0};
  std::atomic<std::uint64_t> texts_{0}, tokens_{0};
  std::thread thread_;
};

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/text_engine.ipp"
#endif
