// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "edl/base/bucket/cache.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/text.hpp"
#include "edl/job/train/dashboard/job_feed.hpp"

namespace edl::train {
namespace detail {

inline constexpr std::size_t most_read = 64 << 20, longest_object = 256 << 20;  // bytes of a history

}  // namespace detail

EDL_INLINE job_feed::job_feed(std::string run, std::function<void()> changed, feed_bounds b)
    : run_(std::move(run)), changed_(std::move(changed)), bounds_(b) {}

EDL_INLINE void job_feed::show(std::string job) {
  {
    std::lock_guard const lock(mutex_);
    job_ = std::move(job);
    ++shown_;
  }
  if (changed_) changed_();
}

EDL_INLINE void job_feed::add_line(history_file::kind of, std::uint64_t step, std::string_view line) {
  while (line.ends_with('\n')) line.remove_suffix(1);
  {
    std::lock_guard const lock(mutex_);
    lines_.push_back({++newest_, step, of, std::string(line)});
    if (lines_.size() > bounds_.lines) thin();
  }
  if (changed_) changed_();
}

/// Drops every second point, which does not change a curve's look; keeps the last one.
EDL_INLINE void job_feed::thin() {
  std::size_t seen[history_file::kinds]{};
  for (entry const& e : lines_) ++seen[std::size_t(e.series)];
  std::uint64_t newest = 0;
  std::erase_if(lines_, [&](entry const& e) {
    bool const goes = --seen[std::size_t(e.series)] % 2 == 1;
    if (goes) newest = e.number;
    return goes;
  });
  removed(newest);
}

EDL_INLINE void job_feed::drop_lines_after(std::uint64_t step) {
  {
    std::lock_guard const lock(mutex_);
    if (std::erase_if(lines_, [step](entry const& e) { return e.step > step; }) == 0) return;
    removed(++newest_);  // readers must discard what they have
  }
  if (changed_) changed_();
}

EDL_INLINE void job_feed::add_event(std::string event) {
  {
    std::lock_guard const lock(mutex_);
    events_.push_back({.number = ++newest_, .text = std::move(event)});
    if (events_.size() > bounds_.events) {
      auto const end = events_.begin() + std::ptrdiff_t(bounds_.events / 4 + 1);
      removed(std::prev(end)->number);
      events_.erase(events_.begin(), end);
    }
  }
  if (changed_) changed_();
}

EDL_INLINE void job_feed::end() {
  {
    std::lock_guard const lock(mutex_);
    over_ = true;
  }
  if (changed_) changed_();
}

EDL_INLINE void job_feed::removed(std::uint64_t newest) {
  ++removals_;
  newest_removed_ = std::max(newest_removed_, newest);
}

EDL_INLINE std::string job_feed::job() const {
  std::lock_guard const lock(mutex_);
  return job_;
}

EDL_INLINE std::string job_feed::array_of(entries const& all) {
  std::string out = "[";
  for (entry const& e : all) out += (out.size() > 1 ? ",\n" : "") + e.text;
  return out + "]";
}

EDL_INLINE std::string job_feed::history() const {
  std::lock_guard const lock(mutex_);
  return array_of(lines_);
}

EDL_INLINE std::string job_feed::events() const {
  std::lock_guard const lock(mutex_);
  return array_of(events_);
}

EDL_INLINE std::string job_feed::id(std::uint64_t number) const { return fmt::format("{}-{}", run_, number); }

EDL_INLINE job_feed::place job_feed::after(std::string_view last_event_id) const {
  auto const dash = last_event_id.find('-');
  if (dash == last_event_id.npos || last_event_id.substr(0, dash) != run_) return {};
  auto const number = number_from<std::uint64_t>(last_event_id.substr(dash + 1));
  std::lock_guard const lock(mutex_);
  if (!number || *number > newest_ || *number < newest_removed_) return {};
  return {.entry = *number, .removals = removals_, .begun = true};
}

EDL_INLINE std::string job_feed::news(place& at) const {
  std::lock_guard const lock(mutex_);
  std::string out;
  if (!at.begun || (at.removals != removals_ && at.entry < newest_removed_)) {
    at = {.begun = true};
    out += "event: reset\ndata: {}\n\n";
  }
  at.removals = removals_;
  if (at.job != shown_) {
    at.job = shown_;
    out += fmt::format("event: job\ndata: {}\n\n", job_);
  }
  auto const behind = [&](entries const& all) {
    return std::ranges::upper_bound(all, at.entry, {}, &entry::number);
  };
  auto line = behind(lines_), event = behind(events_);
  while ((line != lines_.end() || event != events_.end()) && out.size() < bounds_.piece) {
    bool const is_line = event == events_.end() || (line != lines_.end() && line->number < event->number);
    entry const& next = is_line ? *line++ : *event++;
    at.entry = next.number;
    out += fmt::format("id: {}\nevent: {}\ndata: {}\n\n", id(next.number), is_line ? "line" : "event",
                       next.text);
  }
  if (over_ && !at.ended && line == lines_.end() && event == events_.end()) {
    at.ended = true;
    out += "event: end\ndata: {}\n\n";
  }
  return out;
}

EDL_INLINE std::string end_of_file(std::string const& path, std::size_t most) {
  int const fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return {};
  struct ::stat is{};
  std::string text;
  if (::fstat(fd, &is) == 0 && S_ISREG(is.st_mode)) {
    text.resize(std::min(most, std::size_t(is.st_size)));
    auto const n = ::pread(fd, text.data(), text.size(), is.st_size - ::off_t(text.size()));
    text.resize(std::size_t(std::max<::ssize_t>(0, n)));
  }
  ::close(fd);
  return text;
}

EDL_INLINE bool is_history_field(std::string_view name) {
  static constexpr std::string_view all[] = {
      "step",    "time",    "epoch", "records",  "loss",      "learning_rate", "records_per_s", "steps_per_s",
      "workers", "servers", "lost",  "repeated", "recovered", "words",         "unknown_words", "evaluated"};
  return std::ranges::find(all, name) != std::end(all);
}

namespace detail {

/// Keeps only the fields that a history has: others may be able to write the file.
inline nlohmann::json known_fields(nlohmann::json line) {
  auto const number = [](nlohmann::json const& x) { return x.is_number() || x.is_null(); };
  nlohmann::json const metrics = line.contains("metrics") ? line["metrics"] : nlohmann::json();
  auto const keep = [&](nlohmann::json& of, auto const& known) {
    for (auto it = of.begin(); it != of.end();)
      it = known(it.key()) && number(*it) ? std::next(it) : of.erase(it);
  };
  keep(line, is_history_field);
  if (!metrics.is_object()) return line;
  line["metrics"] = metrics;
  keep(line["metrics"], [](std::string const&) { return true; });
  return line;
}

inline std::string end_of_object(std::string const& path, bucket::place const& like) {
  auto const slash = path.rfind('/');
  auto found = like.at(path.substr(0, slash)).read(path.substr(slash + 1), longest_object);
  if (!found) return {};
  return found->content.substr(found->content.size() - std::min(most_read + 1, found->content.size()));
}

}  // namespace detail

EDL_INLINE void read_lines(std::string const& path, job_feed& to, bucket::place const& like) {
  std::string const text = bucket::names_objects(path) ? detail::end_of_object(path, like)
                                                       : end_of_file(path, detail::most_read + 1);
  std::string_view rest = text;
  if (text.size() > detail::most_read) rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  while (!rest.empty()) {
    auto const end = std::min(rest.find('\n'), rest.size());
    auto const read = parse_json(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!read.is_object() || !read.contains("step") || !read["step"].is_number_unsigned()) continue;
    auto const one = detail::known_fields(read);
    to.add_line(one.contains("metrics") ? history_file::kind::evaluation : history_file::kind::training,
                one["step"].get<std::uint64_t>(), one.dump());
  }
}

EDL_INLINE void read_earlier_lines(std::string const& path, job_feed& to, bucket::place const& like) try {
  read_lines(path, to, like);
} catch (error const& e) {
  like.warn(fmt::format("the earlier history is not shown: {}", e.what()));
}

}  // namespace edl::train
