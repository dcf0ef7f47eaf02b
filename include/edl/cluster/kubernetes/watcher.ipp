// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "edl/base/http/client/backoff.hpp"
#include "edl/cluster/kubernetes/watcher.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/json.hpp"

namespace edl::kubernetes {
namespace detail {

inline constexpr std::size_t longest_event = 16 << 20, longest_page = 64 << 20, most_objects = 1'000'000;
inline constexpr char page_size[] = "500";
inline constexpr std::chrono::seconds short_watch{1};
inline constexpr std::chrono::milliseconds early_pause{1'000};  // before the first watch

inline bool expired(int code, std::string_view reason) {
  return code == 410 || reason == "Expired" || reason == "Gone";
}

// Errors that only a person can fix: credentials, permissions, missing resources.
inline bool lasting(int code) { return code == 401 || code == 403 || code == 404; }

// obj["metadata"][key], or "" if that is not a text: replies may be malformed.
inline std::string metadata(nlohmann::json const& object, char const* key) {
  auto const m = object.find("metadata");
  if (m == object.end() || !m->is_object()) return {};
  auto const it = m->find(key);
  return it != m->end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace detail

// Logs trouble once, and its end.
struct watcher::trouble {
  logger const& log;
  std::string const& path;
  std::string last{};

  void is(std::string const& what, severity how) {
    if (what != last) log.log(how, fmt::format("watching {}: {}; trying again", path, what));
    last = what;
  }
  void over() {
    if (!last.empty()) log.info(fmt::format("watching {}: going on", path));
    last.clear();
  }
};

EDL_INLINE watcher::watcher(client& of, std::string path, std::string selector, callbacks to, logger log)
    : watcher(of, std::move(path), std::move(selector), std::move(to), std::move(log), options{}) {}

EDL_INLINE watcher::watcher(client& of, std::string path, std::string selector, callbacks to, logger log,
                            options o)
    : client_(of),
      path_(std::move(path)),
      selector_(std::move(selector)),
      to_(std::move(to)),
      log_(std::move(log)),
      options_(o),
      thread_([this] { run(); }) {}

EDL_INLINE watcher::~watcher() {
  {
    std::lock_guard const lock(mutex_);
    stopped_ = true;
    stopping_.notify_all();
  }
  thread_.join();
}

// Returns whether to continue.
EDL_INLINE bool watcher::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !stopping_.wait_for(lock, time, [&] { return stopped_.load(); });
}

EDL_INLINE void watcher::run() {
  invariant(to_.listed && to_.changed, "a watcher has a consumer");
  invariant(!to_.begins || to_.one,
            "a consumer that takes the beginning of a list takes its objects one by one");
  http::backoff pauses(options_.first_pause, options_.longest_pause, std::random_device()());
  trouble t{log_, path_};
  constexpr auto never = time_point::max();
  time_point refused = never;  // since when
  int fruitless = 0;           // consecutive watches that ended at once without an event
  while (!stopped_) {
    auto time = std::chrono::milliseconds(0);
    try {
      moved_ = false;
      if (version_.empty()) {
        list();
        continue;
      }
      auto const began = clock::now();
      bool const good = follow(t);
      followed_ = true;
      refused = never;
      fruitless = moved_ || clock::now() - began > detail::short_watch ? 0 : fruitless + 1;
      if (good || fruitless == 0) t.over();
      if (!good) version_.clear();
      // Continue at once if the version has expired, but pause if the server keeps reporting that.
      if (fruitless == 0)
        pauses.reset();
      else if (fruitless > 1)
        time = pauses.next();
    } catch (stopped_error const&) {
      return;
    } catch (api_error const& e) {
      if (moved_) refused = never;
      time = std::max<std::chrono::milliseconds>(pauses.next(), e.retry_after());
      bool const gone = detail::expired(e.code(), e.reason());
      if (gone && !version_.empty() && fruitless++ == 0) time = time.zero();
      if (gone) version_.clear();
      if (detail::lasting(e.code())) {
        time = followed_ ? options_.longest_pause : std::min(options_.longest_pause, detail::early_pause);
        auto const now = clock::now();
        refused = std::min(refused, now);
        if (to_.refused)
          to_.refused(e, std::chrono::duration_cast<std::chrono::milliseconds>(now - refused), followed_);
      }
      if (!gone) t.is(e.what(), detail::lasting(e.code()) ? severity::error : severity::warning);
    } catch (unreachable const& e) {
      if (moved_) pauses.reset();
      if (followed_) refused = never;  // the watch may have been allowed until then
      time = pauses.next();
      t.is(e.what(), severity::warning);
    } catch (std::exception const& e) {
      // An event that could not be parsed may be lost: only a new list is reliable.
      version_.clear();
      time = options_.longest_pause;
      t.is(e.what(), severity::error);
    }
    if (time.count() > 0 && !pause(time)) return;
  }
}

EDL_INLINE std::string watcher::page(query const& q) {
  std::string body;
  auto const end = clock::now() + options_.page;
  client_.stream(
      path_, q,
      [&](std::string_view part) {
        if (body.size() + part.size() > detail::longest_page) throw error("the list is longer than 64 MiB");
        if (clock::now() > end) throw unreachable("the list does not end");
        body.append(part);
        return true;
      },
      options_.page, [this] { return stopped_.load(); });
  if (stopped_) throw stopped_error("stopped");
  return body;
}

EDL_INLINE void watcher::list() {
  auto items = nlohmann::json::array();
  std::string version, more;
  std::size_t count = 0;
  if (to_.one && to_.begins) to_.begins();
  do {
    query q{{"limit", detail::page_size}};
    if (!selector_.empty()) q.emplace_back("labelSelector", selector_);
    if (!more.empty()) q.emplace_back("continue", more);
    auto const body = page(q);
    auto list = parse_json(body);
    auto const found = list.find("items");
    if (!list.is_object() || found == list.end() || !(found->is_array() || found->is_null()))
      throw error(fmt::format("the reply is not a list: '{}'", one_line(body, 200)));
    count += found->size();
    for (auto& item : *found)
      if (to_.one)
        to_.one(item);
      else
        items.push_back(std::move(item));
    if (count > detail::most_objects) throw error("the list has more than a million objects");
    version = detail::metadata(list, "resourceVersion");
    more = detail::metadata(list, "continue");
  } while (!more.empty());
  if (version.empty()) throw error("the list has no resourceVersion to watch from");
  invariant(!to_.one || items.empty(), "objects that were passed on one by one are not passed on again");
  // In this order: if `listed` throws, no version is stored, and the objects are listed anew.
  to_.listed(items, version);
  version_ = version;
}

// Returns whether its version is still available.
EDL_INLINE bool watcher::follow(trouble& t) {
  invariant(!version_.empty(), "a watch resumes at the end of a list or a watch");
  bool expired = false;
  // The server has to end the watch before the client considers it silent.
  auto const time = std::chrono::duration_cast<std::chrono::seconds>(options_.idle * 9 / 10);
  query q{{"watch", "1"},
          {"allowWatchBookmarks", "true"},
          {"resourceVersion", version_},
          {"timeoutSeconds", std::to_string(std::max<std::int64_t>(time.count(), 1))}};
  if (!selector_.empty()) q.emplace_back("labelSelector", selector_);
  std::string begun;  // an incomplete event
  client_.stream(
      path_, q,
      [&](std::string_view part) {
        for (std::size_t end; (end = part.find('\n')) != part.npos; part.remove_prefix(end + 1)) {
          if (stopped_) return false;
          begun.append(part.substr(0, end));
          if (expired = !event(begun); expired) return false;
          t.over();
          begun.clear();
        }
        begun.append(part);
        if (begun.size() > detail::longest_event) throw error("an event is longer than 16 MiB");
        return !stopped_;
      },
      options_.idle, [this] { return stopped_.load(); });
  return !expired;
}

// Returns false when the watch's version has expired.
EDL_INLINE bool watcher::event(std::string_view line) {
  if (line.empty()) return true;
  auto const e = parse_json(line);
  auto const type = e.is_object() ? e.find("type") : e.end();
  auto const object = e.is_object() ? e.find("object") : e.end();
  if (type == e.end() || object == e.end() || !type->is_string() || !object->is_object())
    throw error(fmt::format("this is not an event: '{}'", one_line(line, 200)));
  auto const& kind = type->get_ref<std::string const&>();
  if (kind == "ERROR") {
    auto const code = object->value("code", nlohmann::json(0));
    auto const refused = refusal(code.is_number_integer() ? code.get<int>() : 500, object->dump(),
                                 "watch of " + path_, client_.via().origin);
    if (detail::expired(refused.code(), refused.reason())) return false;
    version_.clear();  // skip whatever made the server fail
    throw refused;
  }
  auto version = detail::metadata(*object, "resourceVersion");
  if (version.empty())
    throw error(fmt::format("this event has no resourceVersion: '{}'", one_line(line, 200)));
  if (kind != "BOOKMARK") to_.changed(kind, *object);  // before the version advances, because it may throw
  version_ = std::move(version);
  moved_ = followed_ = true;
  return true;
}

}  // namespace edl::kubernetes
