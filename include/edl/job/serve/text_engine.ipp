// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/serve/batcher.hpp"
#include "edl/job/serve/text_engine.hpp"

namespace edl::serve {

/// A model's session, and who waits for each of its texts.
struct text_engine::at_work {
  std::string path;
  std::unique_ptr<generation_session> session;
  std::vector<text> who;
};

EDL_INLINE text_engine::text_engine(net::node& on, source from, options o)
    : node_(on), from_(std::move(from)), options_(o), thread_([this] { work(); }) {}

EDL_INLINE text_engine::~text_engine() {
  {
    std::lock_guard const lock(mutex_);
    over_ = true;
  }
  more_.notify_all();
  thread_.join();
  std::promise<void> done;  // the node may still run what was posted
  if (!node_.post([&done] { done.set_value(); }))
    node_.stop();
  else if (!node_.on_thread())
    done.get_future().wait();
}

EDL_INLINE std::shared_ptr<asked_text> text_engine::ask(std::string prompt, generation_options by) {
  auto const t = std::make_shared<asked_text>(node_.executor(), std::move(prompt), std::move(by));
  {
    std::lock_guard const lock(mutex_);
    if (queue_.size() >= options_.max_queue)
      throw http::failure(429, fmt::format("{} texts wait already", queue_.size()), {{"Retry-After", "1"}});
    queue_.push_back(t);
    waiting_ = queue_.size();
  }
  more_.notify_one();
  return t;
}

EDL_INLINE void text_engine::say(text const& to, std::function<void(asked_text&)> what) {
  node_.post([to, what = std::move(what)] {
    invariant(!to->ended(), "a text ends once");
    what(*to);
    to->changed.notify();
  });
}

EDL_INLINE void text_engine::work() {
  auto const idle = [this] {
    return std::ranges::all_of(sessions_, [](auto const& s) { return s->session->idle(); });
  };
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      while (!over_ && queue_.empty() && idle()) more_.wait(lock);
      if (over_) break;
    }
    begin_some();
    step_all();
  }
  http::failure const why(503, "the server is shutting down");
  for (auto const& s : sessions_)
    for (text const& t : s->who)
      if (t) say(t, [why](asked_text& of) { of.failed = why; });
  std::lock_guard const lock(mutex_);
  for (text const& t : queue_) say(t, [why](asked_text& of) { of.failed = why; });
}

EDL_INLINE void text_engine::begin_some() {
  for (;;) {
    text t;
    {
      std::lock_guard const lock(mutex_);
      if (queue_.empty()) return;
      t = queue_.front();
    }
    auto const leaves_queue = [&] {
      std::lock_guard const lock(mutex_);
      queue_.pop_front();
      waiting_ = queue_.size();
    };
    std::optional<http::failure> failed;
    if (t->gone) {
      failed.emplace(503, "nobody waits for this text");
    } else if (std::chrono::steady_clock::now() - t->since > options_.timeout) {
      failed = too_late(options_.timeout);
    } else
      try {
        std::string const path = from_.path();
        if (path.empty()) throw http::failure(503, "there is no model yet", {{"Retry-After", "1"}});
        if (sessions_.empty() || sessions_.back()->path != path) {
          auto fresh = from_.open(path);
          std::erase_if(sessions_, [](auto const& s) { return s->session->idle(); });
          sessions_.push_back(std::make_unique<at_work>(
              at_work{path, std::move(fresh), std::vector<text>(std::size_t(options_.sequences))}));
        }
        at_work& newest = *sessions_.back();
        auto const number = newest.session->begin(t->prompt, t->options, [this, t](std::string_view piece) {
          if (t->gone) return false;
          say(t, [piece = std::string(piece)](asked_text& of) { of.unread += piece; });
          return true;
        });
        if (!number) return;  // until one of the others has ended
        newest.who[std::size_t(*number)] = t;
      } catch (http::failure const& f) {
        failed = f;
      } catch (usage_error const& e) {
        failed.emplace(400, e.what());
      } catch (std::exception const& e) {
        failed.emplace(500, e.what());
      }
    leaves_queue();
    if (failed) say(t, [why = *failed](asked_text& of) { of.failed = why; });
  }
}

EDL_INLINE void text_engine::step_all() {
  for (auto const& s : sessions_) {
    if (s->session->idle()) continue;
    try {
      s->session->step([&](int number, generated_text of) {
        ++texts_;
        tokens_ += std::uint64_t(of.tokens);
        say(std::exchange(s->who[std::size_t(number)], nullptr),
            [of = std::move(of)](asked_text& to) { to.result = of; });
      });
    } catch (std::exception const& e) {
      for (text& t : s->who)
        if (t)
          say(std::exchange(t, nullptr),
              [why = http::failure(500, e.what())](asked_text& to) { to.failed = why; });
    }
  }
  if (sessions_.size() > 1)
    std::erase_if(sessions_, [&](auto const& s) { return s != sessions_.back() && s->session->idle(); });
}

}  // namespace edl::serve
