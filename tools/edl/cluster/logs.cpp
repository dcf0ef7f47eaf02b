// SPDX-License-Identifier: Apache-2.0
#include "cluster/logs.hpp"

#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "cluster/log_lines.hpp"
#include "cluster/pods.hpp"
#include "cluster/training_jobs.hpp"
#include "common/advice.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/kubernetes/watcher.hpp"
#include "edl/core/error.hpp"
#include "edl/core/log.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
namespace k8s = kubernetes;

bool is_wanted(json const& pod, log_options const& o) {
  std::string const role = text_at(pod, "/metadata/labels/elasticdl-replica-type");
  std::string const index = text_at(pod, "/metadata/labels/elasticdl-replica-index");
  return (o.role.empty() || o.role == role) && (!o.index || std::to_string(*o.index) == index);
}

/// Lines of several pods on standard output, each whole.
class printer {
 public:
  explicit printer(bool prefix) : prefix_(prefix), colour_(colourful()) {}
  void print(std::string const& who, std::string_view line) {
    static constexpr fmt::terminal_color palette[] = {
        fmt::terminal_color::cyan, fmt::terminal_color::green,   fmt::terminal_color::yellow,
        fmt::terminal_color::blue, fmt::terminal_color::magenta, fmt::terminal_color::bright_cyan};
    std::lock_guard const lock(mutex_);
    if (prefix_) {
      auto const [it, is_new] = colours_.try_emplace(who, colours_.size() % std::size(palette));
      std::string const name = fmt::format("{:<9} | ", who);
      if (colour_)
        fmt::print(stdout, fmt::fg(palette[it->second]), "{}", name);
      else
        fmt::print("{}", name);
    }
    fmt::print("{}\n", ::isatty(1) == 1 ? printable(line, std::string::npos) : std::string(line));
    std::fflush(stdout);
  }

 private:
  std::mutex mutex_;
  bool prefix_, colour_;
  std::map<std::string, std::size_t> colours_;
};

/// The logs of a job's pods as they come: one thread per pod, one that hears of pods.
class follower {
 public:
  /// `outlives_master`: of a TrainingJob, whose master may be replaced; it has ended when it says so.
  follower(cluster& c, std::string job, log_options const& o, bool outlives_master)
      : cluster_(c), job_(std::move(job)), o_(o), out_(o.prefix), outlives_master_(outlives_master) {}

  void run() {
    {
      k8s::watcher const heard(
          cluster_.api, cluster_.path("pods"), k8s::job_selector(job_),
          {.listed = [this](json const& items, std::string const&) { list(items); },
           .changed = [this](std::string const& type, json const& pod) { change(type, pod); }},
          logger(severity::error, "edl"));
      std::unique_lock lock(mutex_);
      if (outlives_master_)
        while (!changed_.wait_for(lock, 1s, [this] { return ended_; })) {
          lock.unlock();
          bool const over = has_ended();
          lock.lock();
          ended_ |= over;
        }
      else
        changed_.wait(lock, [this] { return ended_; });
      // What has ended still has something to say, and says it soon.
      changed_.wait_for(lock, 10s, [this] { return following_ == 0; });
      stopped_ = true;
      changed_.notify_all();
    }
    for (std::thread& t : threads_) t.join();
  }

 private:
  struct seen {
    std::string uid;
    bool has_log = false, over = false;  // over: nothing more will be written
    int restarts = 0;
  };

  /// Whether the TrainingJob has; a cluster that does not answer says nothing of it.
  bool has_ended() {
    try {
      auto const job = find_training_job(cluster_, job_);
      return !job || job->resource.finished();
    } catch (error const&) {
      return false;
    }
  }

  void list(json const& items) {
    std::lock_guard const lock(mutex_);
    std::map<std::string, bool> present;
    for (json const& pod : items) {
      present[text_at(pod, "/metadata/name")] = true;
      see(pod, false);
    }
    for (auto& [name, pod] : pods_)
      if (!present.count(name)) pod.over = true;
    if (!outlives_master_ && !present.count(k8s::pod_name(job_, {role::master, 0}))) ended_ = true;
    changed_.notify_all();
  }

  void change(std::string const& type, json const& pod) {
    std::lock_guard const lock(mutex_);
    see(pod, type == "DELETED");
    changed_.notify_all();
  }

  void see(json const& pod, bool deleted) {
    std::string const name = text_at(pod, "/metadata/name");
    pod_state const state = state_of(pod);
    if (!outlives_master_ && name == k8s::pod_name(job_, {role::master, 0}) && (deleted || state.ended))
      ended_ = true;
    if (!is_wanted(pod, o_)) return;
    seen& s = pods_[name];
    s.uid = text_at(pod, "/metadata/uid");
    s.over = deleted || state.ended;
    s.restarts = state.restarts;
    if (!s.has_log && !deleted && (state.phase == "Running" || state.ended)) {
      s.has_log = true;
      ++following_;
      threads_.emplace_back([this, name, who = role_name(pod)] { follow(name, who); });
    }
    if (deleted) pods_[name].has_log = false;  // a server comes back under the same name
  }

  bool stopped() {
    std::lock_guard const lock(mutex_);
    return stopped_;
  }

  void follow(std::string const& name, std::string const& who) {
    log_place place;
    for (bool last = false; !last && !stopped();) {
      {
        std::lock_guard const lock(mutex_);
        last = pods_[name].over;
      }
      try {
        read(name, who, place);
      } catch (k8s::api_error const& bad) {
        if (bad.code() == 404) last = true;
      } catch (error const&) {
        last = false;  // the server is away: what was written meanwhile is not lost
      }
      std::unique_lock lock(mutex_);
      if (!last) changed_.wait_for(lock, 500ms, [&] { return stopped_; });
    }
    std::lock_guard const lock(mutex_);
    --following_;
    changed_.notify_all();
  }

  void read(std::string const& name, std::string const& who, log_place& place) {
    k8s::query q{{"follow", "true"}, {"timestamps", "true"}};
    if (std::string const since = place.since(); !since.empty())
      q.emplace_back("sinceTime", since);
    else if (o_.tail)
      q.emplace_back("tailLines", std::to_string(*o_.tail));
    line_splitter lines;
    place.reread();
    cluster_.api.stream(
        cluster_.path("pods", name) + "/log", q,
        [&](std::string_view piece) {
          lines.take(piece, [&](std::string_view line) {
            if (auto const text = place.next(line)) out_.print(who, *text);
          });
          return true;
        },
        std::chrono::hours(24), [this] { return stopped(); });
    lines.end([&](std::string_view line) {
      if (auto const text = place.next(line)) out_.print(who, *text);
    });
  }

  cluster& cluster_;
  std::string job_;
  log_options o_;
  printer out_;
  bool const outlives_master_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, seen> pods_;
  std::vector<std::thread> threads_;
  int following_ = 0;
  bool ended_ = false, stopped_ = false;
};

}  // namespace

bool colourful() { return ::isatty(1) == 1 && std::getenv("NO_COLOR") == nullptr; }

void print_logs(cluster& c, std::string const& job, log_options const& o) {
  printer out(o.prefix);
  json const pods = c.pods_of(job);
  if (pods.empty()) {
    if (auto const above = find_training_job(c, job); above)
      throw error(fmt::format("job '{}' has no pods: it is {}; `edl explain {}` shows why", job,
                              status_of(above->resource), c.named(job)));
    throw no_such_job(c, job);
  }
  bool any = false;
  for (json const& pod : pods) {
    if (!is_wanted(pod, o)) continue;
    any = true;
    std::string const who = role_name(pod);
    k8s::query q;
    if (o.tail) q.emplace_back("tailLines", std::to_string(*o.tail));
    line_splitter lines;
    auto const print = [&](std::string_view line) { out.print(who, line); };
    try {
      c.api.stream(
          c.path("pods", text_at(pod, "/metadata/name")) + "/log", q,
          [&](std::string_view piece) {
            lines.take(piece, print);
            return true;
          },
          60s, [] { return false; });
      lines.end(print);
    } catch (k8s::api_error const& bad) {
      pod_state const state = state_of(pod);
      fmt::print(stderr, "edl: {} has no log: {}\n", who,
                 state.hinders ? in_words(state.hinders->reason, state.hinders->message, c.named(job))
                               : bad.message());
    }
  }
  if (!any)
    throw error(fmt::format("job '{}' has no such pod; `edl describe {}` lists its pods", job, c.named(job)));
}

void follow_logs(cluster& c, std::string const& job, log_options const& o) {
  follower(c, job, o, find_training_job(c, job).has_value()).run();
}

std::string last_words(cluster& c, json const& master) {
  pod_state const state = state_of(master);
  std::string message = state.hinders ? state.hinders->message : "";
  if (message.empty()) try {
      c.api.stream(
          c.path("pods", text_at(master, "/metadata/name")) + "/log", {{"tailLines", "1"}},
          [&](std::string_view piece) {
            message.append(piece);
            return message.size() < 4096;
          },
          5s, [] { return false; });
    } catch (error const&) {
      // A container that never began has no log.
    }
  std::string text = in_words(state.hinders ? state.hinders->reason : "Error", message,
                              c.named(text_at(master, "/metadata/labels/elasticdl-job-name")));
  return state.exit_code ? fmt::format("{} (exit code {})", text, *state.exit_code) : text;
}

int end_of(cluster& c, std::string const& job) {
  std::string shown;
  auto const tell = [&](std::string const& waits) {
    if (!waits.empty() && waits != shown) say(fmt::format("job '{}' waits: {}", job, waits));
    shown = waits;
  };
  for (bool owned = false;; std::this_thread::sleep_for(1s)) try {
      if (auto const above = find_training_job(c, job)) {
        owned = true;
        if (!above->resource.finished()) {
          tell(hindrance_of(*above));
          continue;
        }
        if (edl::kubernetes::is_true(above->resource.status, edl::kubernetes::condition_type::succeeded)) {
          fmt::print("job {} is done\n", job);
          return done;
        }
        say(fmt::format("job '{}' failed: {}; see `edl logs {}` and `edl explain {}`", job,
                        hindrance_of(*above), c.named(job), c.named(job)));
        return failed;
      }
      if (owned)
        throw error(fmt::format(
            "job '{}' is gone, deleted or past its ttlSecondsAfterFinished, before its end was seen", job));
      json const pod = master_of(c, job);
      pod_state const state = state_of(pod);
      if (!state.ended) {
        tell(waits_of(pod));
        continue;
      }
      if (state.phase == "Succeeded") {
        fmt::print("job {} is done\n", job);
        return done;
      }
      say(fmt::format("job '{}' failed: {}; see `edl logs {}` and `edl explain {}`", job, last_words(c, pod),
                      c.named(job), c.named(job)));
      return failed;
    } catch (k8s::unreachable const& away) {
      say(fmt::format("{}; the job goes on, and so does the waiting", away.what()));
    } catch (k8s::api_error const& busy) {
      if (busy.code() < 500 && busy.code() != 429) throw;
      say(fmt::format("{}; the job goes on, and so does the waiting", busy.what()));
    }
}

std::vector<flag> logs_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "follow",
                 .fallback = "false",
                 .help = "follow the logs, also of new pods, until the job has ended",
                 .aliases = {"f"},
                 .type = flag::value_type::truth});
  all.push_back({.name = "role", .help = "pods of one role only", .choices = {"master", "ps", "worker"}});
  all.push_back({.name = "index",
                 .help = "the pod of that number only",
                 .aliases = {"i"},
                 .type = flag::value_type::whole,
                 .least = 0,
                 .most = 10000});
  all.push_back({.name = "tail",
                 .help = "so many last lines of each pod",
                 .type = flag::value_type::whole,
                 .least = 0,
                 .most = 1000000000});
  all.push_back({.name = "prefix",
                 .fallback = "true",
                 .help = "begin each line with the name of the process that wrote it",
                 .type = flag::value_type::truth});
  return all;
}

int logs(words const& line) {
  command_line const l("logs", logs_flags(), line, 1, 1, "the job's name");
  log_options o{.role = l.text("role"), .prefix = l.truth("prefix")};
  if (l.given("index")) o.index = std::uint32_t(l.number("index"));
  if (l.given("tail")) o.tail = l.number("tail");
  cluster c = connect(l);
  std::string const& job = l.arguments()[0];
  if (!l.truth("follow")) {
    print_logs(c, job, o);
  } else {
    if (!find_training_job(c, job)) master_of(c, job);  // says that there is no such job
    follow_logs(c, job, o);
  }
  return done;
}

}  // namespace edl::tool
