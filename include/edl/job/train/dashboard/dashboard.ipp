// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <asio/ip/host_name.hpp>
#include <chrono>
#include <deque>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>

#include "edl/base/bucket/cache.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/wall_time.hpp"
#include "edl/job/master/watchdog.hpp"
#include "edl/job/train/dashboard/dashboard.hpp"
#include "edl/job/train/dashboard/job_facts.hpp"
#include "edl/job/train/dashboard/job_feed.hpp"
#include "edl/job/train/dashboard/page_server.hpp"
#include "edl/job/train/observe/run_list.hpp"
#include "edl/job/train/setup/model_copy.hpp"

namespace edl::train {
namespace detail {

/// The interval between two looks; each costs about 10 µs per process.
inline std::chrono::milliseconds look_pause(master::coordinator const& of) {
  return std::chrono::milliseconds(of.workers().all().size() + of.servers().all().size() > 100 ? 1000 : 400);
}

inline constexpr std::chrono::seconds stuck_after{3}, speed_window{10};

/// Runs in directories beside that of a job's history: for `DIR/one/checkpoints`, those in `DIR`. A bucket as
/// a whole is not searched, and a store that does not reply is given up soon.
class siblings {
 public:
  siblings(std::string const& history, bucket::cache_options in_bucket) {
    if (history.empty()) return;
    if (bucket::names_objects(history)) {
      auto const parts = [](std::string const& path) {
        auto const slash = path.rfind('/');
        return std::pair(path.substr(0, slash), path.substr(slash + 1));
      };
      auto own = parts(parts(history).first);
      bool const inner = own.second == "checkpoints";
      if (inner) own = parts(own.first);
      own_ = printable(own.second);
      if (bucket::parts_of(own.first).second.empty()) return;
      in_bucket.store.timeout = in_bucket.store.retry_timeout = std::chrono::seconds(5);
      runs_.emplace(bucket::place(own.first, in_bucket), inner ? 2 : 1);
      return;
    }
    auto own = std::filesystem::absolute(history).lexically_normal().parent_path();
    bool const inner = own.filename() == "checkpoints";
    if (inner) own = own.parent_path();
    own_ = printable(own.filename().string());
    runs_.emplace(own.parent_path().string(), inner ? 2 : 1);
  }

  std::string all() {
    std::string out = "[";
    if (runs_)
      for (auto const& [id, row] : runs_->look())
        if (id != own_) out += (out.size() > 1 ? ",\n" : "") + row;
    return out + "]";
  }
  std::string one(std::string const& id) {
    std::string const lines = runs_ ? runs_->lines_of(id) : "";
    if (lines.empty()) throw http::failure(404, fmt::format("no run '{}'", printable(id)));
    return "{\"lines\":" + lines + "}";
  }

 private:
  std::optional<run_list> runs_;
  std::string own_;
};

}  // namespace detail

struct dashboard::state {
  state(job const& of, std::string const& history, dashboard_context c, logger const& log);
  std::vector<page_document> documents();

  job const& config;
  dashboard_context context;
  double const since = wall_seconds();
  master::watchdog steps{detail::stuck_after};
  std::deque<std::pair<time_point, std::uint64_t>> versions;  // of the last few seconds
  bool closed = false;
  detail::siblings others;  // used on the server's thread for slow requests
  std::optional<std::uint64_t> worst_of;
  std::mutex mutex;  // guards `worst`, which the server's thread reads
  std::string worst = "null";
  job_feed feed;
  page_server server;
};

EDL_INLINE dashboard::state::state(job const& of, std::string const& history, dashboard_context c,
                                   logger const& log)
    : config(of),
      context(std::move(c)),
      others(history, cache_of(of)),
      feed(net::token::random().secret().substr(0, 16), [this] { server.wake(); }),
      server({.host = of.observe.dashboard_host,
              .port = of.observe.dashboard.value_or(0),
              .token = context.token,
              .certificate = of.observe.dashboard_certificate,
              .key = of.observe.dashboard_key,
              .page = make_dashboard_page(),
              .documents = documents(),
              .follow = [this](std::string_view last_event_id) -> page_news {
                return [this, at = feed.after(last_event_id)]() mutable -> std::optional<std::string> {
                  if (at.ended) return std::nullopt;
                  return feed.news(at);
                };
              },
              .log = log}) {}

EDL_INLINE std::vector<page_document> dashboard::state::documents() {
  return {{"/api/job",
           [this](http::request const&) {
             std::string now = feed.job();
             return now.empty() ? "{}" : now;
           }},
          {"/api/worst",
           [this](http::request const&) {
             std::lock_guard const lock(mutex);
             return worst;
           }},
          {"/api/history", [this](http::request const&) { return feed.history(); }},
          {"/api/events", [this](http::request const&) { return feed.events(); }},
          {"/api/runs", [this](http::request const&) { return others.all(); }, true},
          {"/api/runs/{}", [this](http::request const& r) { return others.one(r.arguments.at(0)); }, true}};
}

EDL_INLINE dashboard::dashboard(job const& j, std::string const& history, dashboard_context c, logger log)
    : state_(std::make_unique<state>(j, history, std::move(c), log)) {
  if (!history.empty()) read_earlier_lines(history, state_->feed, checkpoints_of(j));
}

EDL_INLINE dashboard::~dashboard() { state_->feed.end(); }

EDL_INLINE void dashboard::look(master::coordinator const& of, master::job_progress const& p,
                                time_point now) {
  show(of, p, now, false);
}

EDL_INLINE void dashboard::close(master::coordinator const& of, master::job_progress const& p,
                                 time_point now) {
  if (std::exchange(state_->closed, true)) return;
  show(of, p, now, true);
}

EDL_INLINE void dashboard::show(master::coordinator const& of, master::job_progress const& p, time_point now,
                                bool last) {
  state& s = *state_;
  due_ = now + detail::look_pause(of);
  auto& all = s.versions;
  if (!all.empty() && p.version < all.back().second) all.clear();  // the job has rolled back
  all.emplace_back(now, p.version);
  while (all.size() > 2 && now - all.front().first > detail::speed_window) all.pop_front();
  double const seconds = std::chrono::duration<double>(now - all.front().first).count();
  s.steps.look(of.steps(), now);
  s.feed.show(
      to_json(job_facts{.config = s.config,
                        .decisions = of,
                        .at = p,
                        .now = now,
                        .time = wall_seconds(),
                        .since = s.since,
                        .steps_per_s = seconds > 0 ? double(p.version - all.front().second) / seconds : 0,
                        .stuck = s.steps.stuck(now),
                        .stopped = last,
                        .worst = s.worst_of,
                        .host = asio::ip::host_name(),
                        .place = s.context.place}));
}

EDL_INLINE void dashboard::happened(master::log_line const& what) {
  if (what.level != severity::debug) state_->feed.add_event(to_json(what, wall_seconds()));
}

EDL_INLINE void dashboard::worst(std::uint64_t version, std::string records) {
  state_->worst_of = version;
  std::lock_guard const lock(state_->mutex);
  state_->worst = fmt::format("{{\"version\":{},\"records\":{}}}", version, records);
}

EDL_INLINE history_log::listener dashboard::listener() {
  return {.line = [&feed = state_->feed](history_file::kind of, std::uint64_t step,
                                         std::string const& line) { feed.add_line(of, step, line); },
          .go_on_from = [&feed = state_->feed](std::uint64_t step) { feed.drop_lines_after(step); }};
}

EDL_INLINE std::string dashboard::address() const { return state_->server.address(); }
EDL_INLINE std::uint16_t dashboard::port() const { return state_->server.port(); }
EDL_INLINE std::string const& dashboard::token() const { return state_->server.token(); }

}  // namespace edl::train
