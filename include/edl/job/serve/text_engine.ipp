// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/job/serve/batcher.hpp"
#include "edl/job/serve/text_engine.hpp"

namespace edl::serve {
namespace detail {

inline constexpr std::chrono::milliseconds look_at_opening{20}, look_for_newer{250};

}  // namespace detail

/// A model's session, and who waits for each of its texts.
struct text_engine::at_work {
  session of;
  std::vector<text> who;
};

EDL_INLINE text_engine::text_engine(net::node& on, source from, options o, logger log)
    : node_(on), from_(std::move(from)), options_(o), log_(std::move(log)) {
  if (auto const now = from_.now()) {
    sessions_.push_back(
        std::make_unique<at_work>(at_work{from_.open(), std::vector<text>(std::size_t(o.sequences))}));
    newest_ = now;
  }
  thread_ = std::thread([this] { work(); });
}

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

EDL_INLINE void text_engine::ask(std::vector<text> const& all) {
  {
    std::lock_guard const lock(mutex_);
    std::erase_if(queue_, [](text const& t) { return t->gone.load(); });
    if (queue_.size() + all.size() > options_.max_queue)
      throw http::failure(429, fmt::format("{} texts wait already", queue_.size()), {{"Retry-After", "1"}});
    queue_.insert(queue_.end(), all.begin(), all.end());
    waiting_ = queue_.size();
  }
  more_.notify_one();
}

EDL_INLINE void text_engine::say(text const& to, std::function<void(asked_text&)> what) {
  node_.post([to, what = std::move(what)] {
    invariant(!to->ended(), "a text ends once");
    what(*to);
    to->changed->notify();
  });
}

EDL_INLINE void text_engine::work() {
  auto const idle = [this] {
    return std::ranges::all_of(sessions_, [](auto const& s) { return s->of->idle(); });
  };
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      // Without texts, too, so that the next one begins with the newest model.
      if (!over_ && idle() && (queue_.empty() || opening_.valid()))
        more_.wait_for(lock, opening_.valid() ? detail::look_at_opening : detail::look_for_newer);
      if (over_) break;
    }
    look_for_model();
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

EDL_INLINE void text_engine::look_for_model() {
  using namespace std::chrono_literals;
  std::erase_if(sessions_, [&](auto const& s) { return s != sessions_.back() && s->of->idle(); });
  if (opening_.valid()) {
    if (opening_.wait_for(0s) != std::future_status::ready) return;
    newest_ = std::move(opening_of_);  // also if it cannot be opened: it is not tried again
    try {
      sessions_.push_back(std::make_unique<at_work>(
          at_work{opening_.get(), std::vector<text>(std::size_t(options_.sequences))}));
      why_closed_.clear();
    } catch (std::exception const& e) {
      why_closed_ = e.what();
      log_.warning(
          fmt::format("texts do not come from the newest model, which cannot be opened: {}", e.what()));
    }
    return;
  }
  auto now = from_.now();
  if (!now || now == newest_ || sessions_.size() > 2) return;
  opening_of_ = std::move(now);
  opening_ = std::async(std::launch::async, from_.open);
}

EDL_INLINE std::optional<http::failure> text_engine::expired(text const& t) const {
  if (t->gone) return http::failure(503, "nobody waits for this text");
  if (std::chrono::steady_clock::now() - t->since > options_.timeout) return too_late(options_.timeout);
  return std::nullopt;
}

EDL_INLINE void text_engine::begin_some() {
  for (;;) {
    text t;
    {
      std::lock_guard const lock(mutex_);
      if (queue_.empty()) return;
      t = queue_.front();
    }
    std::optional<http::failure> failed = expired(t);
    if (!failed && sessions_.empty()) {
      if (opening_.valid()) return;
      failed.emplace(503, why_closed_.empty() ? "there is no model yet" : why_closed_,
                     http::fields{{"Retry-After", "1"}});
    }
    if (!failed) try {
        at_work& newest = *sessions_.back();
        auto const number = newest.of->begin(*t->prompt, t->options, [this, t](std::string_view piece) {
          if (t->gone) return false;
          if (t->streams) say(t, [piece = std::string(piece)](asked_text& of) { of.unread += piece; });
          return true;
        });
        if (!number) return;  // until one of the others has ended
        invariant(!newest.who[std::size_t(*number)], "a free sequence has nobody who waits for it");
        newest.who[std::size_t(*number)] = t;
        ++running_;
      } catch (usage_error const& e) {
        failed.emplace(400, e.what());
      } catch (std::exception const& e) {
        failed.emplace(500, e.what());
      }
    {
      std::lock_guard const lock(mutex_);
      // `ask` may have removed it meanwhile.
      if (!queue_.empty() && queue_.front() == t) queue_.pop_front();
      waiting_ = queue_.size();
    }
    if (failed) say(t, [why = *failed](asked_text& of) { of.failed = why; });
  }
}

EDL_INLINE void text_engine::step_all() {
  invariant(sessions_.size() <= 3, "at most two models are ending their texts beside the newest");
  for (auto const& s : sessions_) {
    for (std::size_t number = 0; number < s->who.size(); ++number)
      if (s->who[number] && s->who[number]->gone) {
        s->of->cancel(int(number));
        s->who[number].reset();
        --running_;
      }
    if (s->of->idle()) continue;
    try {
      s->of->step([&](int number, generated_text of) {
        invariant(s->who[std::size_t(number)] != nullptr, "somebody waits for each text that ends");
        ++texts_;
        --running_;
        tokens_ += std::uint64_t(of.tokens);
        say(std::exchange(s->who[std::size_t(number)], nullptr),
            [of = std::move(of)](asked_text& to) { to.result = of; });
      });
    } catch (std::exception const& e) {
      log_.error(fmt::format("all texts of a model end: {}", e.what()));
      for (text& t : s->who)
        if (t) {
          --running_;
          say(std::exchange(t, nullptr),
              [why = http::failure(500, e.what())](asked_text& to) { to.failed = why; });
        }
    }
  }
}

}  // namespace edl::serve
