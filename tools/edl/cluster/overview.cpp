// SPDX-License-Identifier: Apache-2.0
#include "cluster/overview.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/core/printable.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

constexpr std::size_t most_of_a_piece = 256 << 10;  // bytes

}  // namespace

void row_feed::put(std::string const& id, std::string text) {
  row& one = rows_[id];
  order_.erase(one.number);
  one = {++newest_, std::move(text)};
  order_[newest_] = id;
}

bool row_feed::show(rows const& all, std::string const& problem) {
  bool const shown = show_problem(problem);
  std::lock_guard const lock(mutex_);
  std::uint64_t const before = newest_;
  for (auto& [id, one] : rows_)
    if (!one.text.empty() && !all.contains(id)) put(id, "");
  for (auto const& [id, text] : all)
    if (auto const it = rows_.find(id); it == rows_.end() || it->second.text != text) put(id, text);
  return shown || newest_ != before;
}

bool row_feed::show_problem(std::string const& problem) {
  std::lock_guard const lock(mutex_);
  if (problem_ == problem) return false;
  problem_ = problem;
  ++problems_;
  return true;
}

std::string row_feed::all() const {
  std::lock_guard const lock(mutex_);
  std::string out = "[";
  for (auto const& [id, one] : rows_)
    if (!one.text.empty()) out += (out.size() > 1 ? ",\n" : "") + one.text;
  return out + "]";
}

std::string row_feed::news(place& at) const {
  std::lock_guard const lock(mutex_);
  std::string out, rows;
  if (!std::exchange(at.begun, true)) out += fmt::format("event: reset\ndata: {}\n\n", about_);
  if (std::exchange(at.problem, problems_) != problems_)
    out += fmt::format("event: problem\ndata: {}\n\n", json{{"text", printable(problem_)}}.dump());
  for (auto it = order_.upper_bound(at.row); it != order_.end() && rows.size() < most_of_a_piece; ++it) {
    std::string const& text = rows_.at(it->second).text;
    rows +=
        (rows.empty() ? "" : ",") + (text.empty() ? json{{"id", it->second}, {"gone", true}}.dump() : text);
    at.row = it->first;
  }
  if (!rows.empty()) out += fmt::format("event: rows\ndata: [{}]\n\n", rows);
  return out;
}

overview::overview(overview_options o)
    : options_(std::move(o)),
      feed_(json{{"what", options_.what}, {"where", printable(options_.where)}}.dump()),
      server_(
          {.host = options_.host,
           .port = options_.port,
           .page = overview_page(),
           .documents = {{"/api/about", [this](http::request const&) { return feed_.about(); }},
                         {"/api/runs",
                          [this](http::request const&) {
                            look();
                            return feed_.all();
                          },
                          true},
                         {"/api/runs/{}",
                          [this](http::request const& r) { return options_.one(r.arguments.at(0)); }, true}},
           .follow = [this](std::string_view) -> train::page_news {
             return [this, at = row_feed::place()]() mutable -> std::optional<std::string> {
               {
                 std::lock_guard const lock(mutex_);
                 if (over_) return std::nullopt;
               }
               return feed_.news(at);
             };
           },
           .watch = [this] { changed_.notify_all(); },
           .log = logger(severity::warning)}),
      thread_([this] { work(); }) {}

overview::~overview() {
  {
    std::lock_guard const lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  options_.stop();
  thread_.join();
  server_.wake();
}

std::string overview::address() const {
  std::string const& token = server_.token();
  return fmt::format("{}/{}{}", server_.address(), token.empty() ? "" : "?token=", token);
}

void overview::look() {
  std::lock_guard const one_at_a_time(looking_);
  bool news = false;
  try {
    std::string problem;
    auto const rows = options_.rows(problem);
    news = feed_.show(rows, problem);
  } catch (std::exception const& bad) {
    news = feed_.show_problem(bad.what());
  }
  if (news) server_.wake();
}

void overview::work() {
  using clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  while (!over_) {
    // A reader may come between the question and the wait.
    changed_.wait_for(lock, options_.pause, [this] { return over_ || server_.readers() > 0; });
    if (over_ || server_.readers() == 0) continue;
    lock.unlock();
    auto const began = clock::now();
    look();
    auto const cost = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - began);
    lock.lock();
    changed_.wait_for(lock, std::max(options_.pause, 2 * cost), [this] { return over_; });
  }
}

}  // namespace edl::tool
