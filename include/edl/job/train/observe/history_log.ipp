// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <system_error>
#include <utility>

#include "edl/base/bucket/cache.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/wall_time.hpp"
#include "edl/job/train/observe/history_log.hpp"
#include "edl/job/train/setup/model_copy.hpp"

namespace edl::train {
namespace detail {

// JSON has no number for values that are not finite.
inline std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

inline std::string rounded(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null";
}

inline std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && *name ? name : "localhost";
}

}  // namespace detail

EDL_INLINE std::string metrics_as_json(metric_values const& of) {
  std::string all = "{";
  for (auto const& [name, value] : of)
    all += fmt::format("{}{}:{}", all.size() > 1 ? "," : "", nlohmann::json(name).dump(),
                       detail::json_number(value));
  return all + "}";
}

EDL_INLINE std::string history_path(std::string const& checkpoint_dir) {
  return checkpoint_dir + "/history.jsonl";
}

EDL_INLINE history_log::options history_options(job const& j, program const& p) {
  if (j.command != command::train || j.dry_run) return {};
  return {
      .path =
          j.checkpoints.checkpoint_dir.empty() ? std::string() : history_path(j.checkpoints.checkpoint_dir),
      .events = j.observe.tensorboard_log_dir,
      .steps = j.observe.history_steps,
      .rate = [rule = p.rule.get()](std::uint64_t version) { return double(rule->learning_rate(version)); },
      .clock = {},
      .to = {},
      .like = checkpoints_of(j)};
}

EDL_INLINE history_log::history_log(options o, logger log)
    : options_(std::move(o)), log_(std::move(log)), file_(options_.path, log_, options_.like) {
  std::error_code reported_when_written;
  if (!options_.events.empty() && !bucket::names_objects(options_.events))
    std::filesystem::create_directories(options_.events, reported_when_written);
  if (!options_.clock) options_.clock = wall_seconds;
  if (!wanted() || options_.steps == 0) due_ = std::numeric_limits<std::uint64_t>::max();
}

EDL_INLINE void history_log::flush() {
  file_.flush();
  // Nobody waits for a store because of these, and many small objects would be slow to read.
  if (bucket::names_objects(options_.events)) return;
  for (history_file& one : events_) one.flush();
}

/// To readers a job that rolls back starts over. It begins a new file; in a bucket, where what it has written
/// last may not be there yet, the objects go on in their order.
EDL_INLINE void history_log::begin_events(std::uint64_t version) {
  if (options_.events.empty()) return;
  double const time = options_.clock();
  if (bucket::names_objects(options_.events) && !events_.empty()) {
    events_.back().go_on_from(version);
    return events_.back().append(history_file::kind::training, 0, event_of_start(time, version + 1));
  }
  // Another job, or this one restarted, may begin a file in the same second.
  std::string writer = fmt::format("{}.{}", detail::host_name(), ::getpid()),
              begin = event_file_version(time);
  history_pace pace;
  if (bucket::names_objects(options_.events)) {
    // In pods, which may be called alike, all processes have the same number.
    writer += fmt::format(".{:08x}", std::random_device()());
    pace.head.swap(begin);
  }
  events_.emplace_back(options_.events + "/" + event_file_name(time, writer, events_.size()), log_,
                       options_.like, std::move(pace));
  events_.back().append(history_file::kind::training, 0, begin + event_of_start(time, version + 1));
}

/// Returns whether the job's starting point is known; if so, records it in the file.
EDL_INLINE bool history_log::begun(master::coordinator const& of, master::job_progress const& p) {
  auto const at = of.began_at();
  if (!at || !wanted()) return false;
  if (generation_ == of.generation()) return true;
  bool const first = !std::exchange(generation_, of.generation()).has_value();
  if (first || *at < newest_) {
    file_.go_on_from(newest_ = *at);
    if (options_.to.go_on_from) options_.to.go_on_from(*at);
    begin_events(*at);
  }
  if (!first && *at >= last_.version) return true;  // no step is lost, and the mean continues
  last_ = p;
  last_.version = *at;
  if (first) last_.trained = {};  // counts so far are from this master's time only
  since_.reset();
  if (options_.steps > 0) due_ = (*at / options_.steps + 1) * options_.steps;
  return true;
}

EDL_INLINE void history_log::look(master::coordinator const& of, master::job_progress const& p,
                                  time_point now) {
  if (!begun(of, p)) return;
  if (!since_) since_ = now;
  remember_members(p);
  if (due(p.version) && p.trained.minibatches > last_.trained.minibatches) write(p, now);
}

EDL_INLINE void history_log::close(master::coordinator const& of, master::job_progress const& p,
                                   time_point now) {
  if (begun(of, p) && options_.steps > 0 && p.version > last_.version &&
      p.trained.minibatches > last_.trained.minibatches)
    write(p, now);
  flush();
}

/// At the end of a job the members leave before its last line is written.
EDL_INLINE void history_log::remember_members(master::job_progress const& p) {
  if (p.workers == 0) return;
  workers_ = p.workers;
  servers_ = p.servers;
}

EDL_INLINE void history_log::append(history_file::kind of, std::uint64_t step, std::string line) {
  if (options_.to.line) options_.to.line(of, step, line);
  file_.append(of, step, std::move(line));
}

EDL_INLINE void history_log::write(master::job_progress const& p, time_point now) {
  remember_members(p);
  trained const done = p.trained - last_.trained;
  double const seconds = std::chrono::duration<double>(now - since_.value_or(now)).count(),
               time = options_.clock(), loss = done.loss / double(done.minibatches),
               rate = options_.rate(p.version - 1);
  auto const speed = [seconds](std::uint64_t n) {
    return seconds > 0 ? double(n) / seconds : std::numeric_limits<double>::quiet_NaN();
  };
  double const records = speed(done.records), steps = speed(p.version - std::min(last_.version, p.version));
  std::string const words =
      done.words > 0 ? fmt::format(R"(,"words":{},"unknown_words":{})", done.words, done.unknown) : "";
  append(
      history_file::kind::training, p.version,
      fmt::format(R"({{"step":{},"time":{:.3f},"epoch":{},"records":{},"loss":{},"learning_rate":{},)"
                  R"("records_per_s":{},"steps_per_s":{},"workers":{},"servers":{},"lost":{},"repeated":{},)"
                  R"("recovered":{}{}}})"
                  "\n",
                  p.version, time, p.epoch, p.done.records_done, detail::rounded(loss), detail::rounded(rate),
                  detail::rounded(records), detail::rounded(steps), workers_, servers_, p.lost - last_.lost,
                  p.repeated - last_.repeated, p.recovered - last_.recovered, words));
  if (!events_.empty())
    events_.back().append(history_file::kind::training, p.version,
                          event_of_scalars(time, p.version,
                                           {{"training/loss", loss},
                                            {"training/learning_rate", rate},
                                            {"training/records_per_s", records},
                                            {"training/workers", double(workers_)}}));
  last_ = p;
  newest_ = std::max(newest_, p.version);
  since_ = now;
  due_ = (p.version / options_.steps + 1) * options_.steps;
}

EDL_INLINE void history_log::evaluated(master::coordinator const& of, std::uint64_t version,
                                       metric_values const& values, std::uint64_t records) {
  if (!begun(of, of.progress())) return;
  newest_ = std::max(newest_, version);
  double const time = options_.clock();
  append(history_file::kind::evaluation, version,
         fmt::format(R"({{"step":{},"time":{:.3f},"evaluated":{},"metrics":{}}})"
                     "\n",
                     version, time, records, metrics_as_json(values)));
  if (events_.empty()) return;
  metric_values tagged = values;
  for (auto& [name, value] : tagged) name.insert(0, "validation/");
  events_.back().append(history_file::kind::evaluation, version, event_of_scalars(time, version, tagged));
}

EDL_INLINE void history_log::tensors(std::uint64_t version,
                                     std::vector<std::pair<std::string, view<float>>> const& values) {
  if (!events_.empty())
    events_.back().append(history_file::kind::values, version,
                          event_of_histograms(options_.clock(), version, values));
}

EDL_INLINE void history_log::pictures(std::vector<std::pair<std::string, event_picture>> const& all) {
  if (!events_.empty())
    events_.back().append(history_file::kind::pictures, last_.version,
                          event_of_pictures(options_.clock(), last_.version, all));
}

}  // namespace edl::train
