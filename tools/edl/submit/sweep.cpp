// SPDX-License-Identifier: Apache-2.0
#include "submit/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cluster/change.hpp"
#include "cluster/logs.hpp"
#include "cluster/training_jobs.hpp"
#include "common/yaml.hpp"
#include "edl/app/sweep_file.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/log.hpp"
#include "edl/core/printable.hpp"
#include "submit/plain_job.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
namespace k8s = kubernetes;

constexpr std::size_t longest_reason = 400;  // bytes
constexpr std::chrono::milliseconds first_pause{100}, longest_pause{1'000};
constexpr std::chrono::seconds report_timeout{10}, name_timeout{60};

/// A trial's job, from its turn to its end.
struct turn {
  std::string job;
  std::string uid{};  ///< of its master's pod; empty: it is not there yet
  time_point since;   ///< of its turn, or of its good end
  bool ended_well = false;
  std::string announced{};  ///< what it waits for, as was said last
};

class sweep_run {
 public:
  sweep_run(cluster_sweep const& s, cluster& c, app::signals const& stop)
      : sweep_(s),
        cluster_(c),
        stop_(stop),
        trials_(s.all),
        file_({.output = s.output,
               .identity = s.identity,
               .job = "sweep " + s.name,
               .cache = {.log = logger(severity::warning)}}) {
    if (auto before = file_.read(trials_, s.rounds.back())) go_on(std::move(*before));
  }

  int run() try {
    for (std::size_t round = 0; round < sweep_.rounds.size(); ++round) {
      std::uint64_t const steps = sweep_.rounds[round];
      auto left = app::runs_of(round, trials_, sweep_.options, sweep_.by);
      if (left.empty()) break;  // every trial has failed
      fmt::print("round {} of {}: {} up to step {}\n", round + 1, sweep_.rounds.size(),
                 counted(left.size(), "job"), steps);
      std::fflush(stdout);
      std::erase_if(left, [&](std::size_t i) { return trials_[i].steps >= steps; });
      std::ranges::reverse(left);
      if (auto const signal = work(left, round)) {
        tell_left("stopped");
        return 128 + *signal;
      }
    }
    return tell_end();
  } catch (...) {
    if (!under_way_.empty()) tell_left("the sweep ends");
    throw;
  }

 private:
  /// Takes the results of an earlier run of the same sweep.
  void go_on(std::vector<app::trial> before) {
    trials_ = std::move(before);
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      if (trials_[i].value || trials_[i].steps == 0) continue;
      // It runs again from the first round. Its folder may have the checkpoint of a later one, and only the
      // cluster reaches that: so it gets another folder.
      std::uint32_t const attempt = trials_[i].attempt + 1;
      trials_[i] = sweep_.all[i];
      trials_[i].attempt = attempt;
    }
  }

  /// Runs what is left, last first; nothing, or the signal that came.
  std::optional<int> work(std::vector<std::size_t>& left, std::size_t round) {
    for (auto pause = first_pause;;) {
      while (!left.empty() && under_way_.size() < sweep_.parallel) {
        under_way_.emplace(left.back(), turn{.job = job_name(sweep_, left.back()), .since = clock::now()});
        left.pop_back();
        pause = first_pause;
      }
      if (under_way_.empty()) return std::nullopt;
      for (auto& [i, t] : under_way_) {
        if (t.uid.empty() && !ask([&, i = i, &t = t] { submit(i, round, t); })) break;
        if (auto const signal = stop_.wait(0ms)) return signal;
      }
      ask([&] { look(round); });
      if (auto const signal = stop_.wait(pause)) return signal;
      pause = std::min(pause * 2, longest_pause);
    }
  }

  /// Whether the cluster has answered. It is asked again without end: its jobs go on meanwhile.
  bool ask(std::function<void()> const& what) {
    if (!answered(what, time_point::max(), away_)) return false;
    away_ = false;
    return true;
  }

  /// What is there under a path; nothing where there is none.
  std::optional<json> find(std::string const& path) {
    try {
      return cluster_.api.get(path);
    } catch (k8s::api_error const& bad) {
      if (bad.code() != 404) throw;
      return std::nullopt;
    }
  }

  std::string master_path(turn const& t) const {
    return cluster_.path("pods", k8s::pod_name(t.job, {role::master, 0}));
  }

  [[noreturn]] void refuse_name(turn const& t) const {
    throw k8s::api_error(409, "AlreadyExists", "",
                         fmt::format("job '{0}' in namespace '{1}' does not belong to this sweep: `edl "
                                     "delete {0} -n {1}{2}` removes it, or give another --job_name",
                                     t.job, cluster_.space, cluster_.reach));
  }

  /// Waits for a name that is about to be free, until it has taken too long.
  void await_name(turn& t) {
    if (clock::now() - t.since > name_timeout) refuse_name(t);
    tell(t, "a job of its name is being removed");
  }

  void tell(turn& t, std::string const& why) {
    if (why.empty() || t.announced == why) return;
    say(fmt::format("job {} waits: {}", t.job, why));
    t.announced = why;
  }

  /// Makes a trial's job, or finds it. Where its name is not free yet, the next call tries again.
  void submit(std::size_t i, std::size_t round, turn& t) {
    if (auto const pod = find(master_path(t))) return adopt(i, round, t, *pod);
    if (find_training_job(cluster_, t.job)) refuse_name(t);
    trial_turn const now{round, trials_[i].attempt};
    submission s = job_of(sweep_, i, now);
    s.spec.space = cluster_.space;
    s.spec.service_account = sweep_.base.spec.service_account;
    try {
      json const master = create_job(cluster_.api, s.spec, net::token::random().secret(),
                                     {.note = note,
                                      .reach = cluster_.reach,
                                      .labels = labels_of(sweep_),
                                      .annotations = annotations_of(sweep_, i, now)});
      t.uid = text_at(master, "/metadata/uid");
    } catch (k8s::api_error const& bad) {
      bool const others =
          std::ranges::any_of(under_way_, [](auto const& u) { return !u.second.uid.empty(); });
      if (bad.code() == 403 && others && bad.message().find("exceeded quota") != std::string::npos)
        return tell(t, bad.message());
      if (bad.reason() != "AlreadyExists") throw;
      return clear_name(i, t);
    }
    fmt::print("trial {} ({}): job {} is submitted\n", i, train::write_settings(trials_[i].values), t.job);
    std::fflush(stdout);
  }

  /// There is a master of this name. One of another round, and one whose trial has failed before, make room
  /// for another.
  void adopt(std::size_t i, std::size_t round, turn& t, json const& pod) {
    std::uint32_t& attempt = trials_[i].attempt;
    auto const of = turn_of(pod, sweep_, i, attempt);
    if (!of) refuse_name(t);
    using enum trial_state::phase;
    auto const is = state_of_trial(pod, sweep_.by, cluster_.flags()).state;
    if (is == leaving) return await_name(t);
    if (of->round != round) {
      delete_job(cluster_, t.job);
      return;
    }
    // A submission that was broken off may have taken them away again.
    bool const whole =
        is != under_way || find(cluster_.path("secrets", k8s::secret_name(k8s::job_spec{.name = t.job})));
    bool const earlier = of->attempt != attempt;
    if (!whole || (earlier && is != under_way && is != trial_state::phase::done)) {
      delete_job(cluster_, t.job);
      return;
    }
    attempt = of->attempt;  // of an earlier one that was given up too soon, too
    t.uid = text_at(pod, "/metadata/uid");
    fmt::print("trial {} ({}): job {} exists already; waiting for it\n", i,
               train::write_settings(trials_[i].values), t.job);
    std::fflush(stdout);
  }

  /// A secret or a service has the name, and no master. They are of a job that is being removed, which takes
  /// them along; of a submission of this sweep that was broken off; or another's.
  void clear_name(std::size_t i, turn& t) {
    k8s::job_spec const spec{.name = t.job, .space = cluster_.space};
    bool any = false;
    for (std::string const& path :
         {cluster_.path("secrets", k8s::secret_name(spec)),
          cluster_.path("services", k8s::master_service(spec).at("metadata").at("name"))})
      if (auto const object = find(path)) {
        if (object->at("metadata").contains("ownerReferences")) return await_name(t);
        if (!turn_of(*object, sweep_, i, trials_[i].attempt)) refuse_name(t);
        any = true;
      }
    if (any && !find(master_path(t))) delete_job(cluster_, t.job);
    await_name(t);
  }

  /// Looks at all jobs that are there.
  void look(std::size_t round) {
    json const list = cluster_.api.get(
        cluster_.path("pods"),
        {{"labelSelector", fmt::format("{}={},elasticdl-replica-type=master", sweep_label, sweep_.name)}});
    std::map<std::string, json const*> pods;
    for (json const& pod : list.at("items")) pods.emplace(text_at(pod, "/metadata/uid"), &pod);
    for (auto it = under_way_.begin(); it != under_way_.end();) {
      auto& [i, t] = *it;
      auto const pod = pods.find(t.uid);
      bool const over = !t.uid.empty() && is_over(i, round, t, pod == pods.end() ? nullptr : pod->second);
      it = over ? under_way_.erase(it) : std::next(it);
    }
  }

  /// Whether a trial's job has ended; notes what has become of it.
  bool is_over(std::size_t i, std::size_t round, turn& t, json const* pod) {
    using enum trial_state::phase;
    trial_state const now =
        pod ? state_of_trial(*pod, sweep_.by, cluster_.flags()) : trial_state{.state = leaving};
    if (now.state == under_way) return tell(t, now.why), false;
    if (now.state == unread) {
      if (!std::exchange(t.ended_well, true)) t.since = clock::now();
      if (clock::now() - t.since < report_timeout) return false;
    }
    // It may quote a log.
    std::string const why = printable(
        now.state == leaving  ? "somebody has deleted its job"
        : now.state == unread ? "its master could not report the result: the API server did not reply"
        : now.state == failed
            ? (text_at(*pod, "/status/phase") == "Failed" ? last_words(cluster_, *pod) : now.why)
            : now.why,
        longest_reason);
    app::trial& trial = trials_[i];
    trial.steps = sweep_.rounds[round];
    trial.value = now.value;
    trial.failure = trial.value ? "" : why;
    file_.write(trials_);
    std::string const how = trial.value ? fmt::format("{} {:.6g}", sweep_.by.metric, *trial.value)
                            : now.state == failed || now.state == unread
                                ? fmt::format("failed ({}); see `edl logs {}`", why, cluster_.named(t.job))
                                : fmt::format("failed ({})", why);
    fmt::print("trial {} ({}), {}: {}\n", i, train::write_settings(trial.values),
               counted(trial.steps, "step"), how);
    std::fflush(stdout);
    bool const removes = now.state == hopeless || (trial.value && !sweep_.keep_jobs);
    if (removes)
      remove(t.job);
    else if (!trial.value && now.state != leaving && with_logs_.empty())
      with_logs_ = t.job;
    return true;
  }

  /// A job whose result is kept. That it stays does no harm.
  void remove(std::string const& job) {
    try {
      delete_job(cluster_, job);
    } catch (error const& bad) {
      note(fmt::format("job {} stays: {}", job, bad.what()));
    }
  }

  void tell_left(std::string const& what) const {
    words jobs;
    for (auto const& [i, t] : under_way_)
      if (!t.uid.empty()) jobs.push_back(t.job);
    if (jobs.empty())
      fmt::print("{}; no job of it is left in the cluster\n", what);
    else
      fmt::print("{}; {} of its jobs go on in the cluster: {}\n`edl delete {} -n {}{}` removes {}\n", what,
                 jobs.size(), fmt::join(jobs, ", "), fmt::join(jobs, " "), cluster_.space, cluster_.reach,
                 jobs.size() == 1 ? "it" : "them");
    fmt::print("the same command finds them again and goes on with the rest\n");
    std::fflush(stdout);
  }

  int tell_end() const {
    fmt::print("{}", app::table_of(trials_, sweep_.by));
    auto const best = app::best_of(trials_, sweep_.by);
    if (!best) {
      fmt::print(stderr, "edl: every trial failed{}\n",
                 with_logs_.empty() ? std::string()
                                    : fmt::format("; see `edl logs {}`", cluster_.named(with_logs_)));
      return failed;
    }
    fmt::print("{}; the best is trial {}: --set \"{}\"\n", counted(trials_.size(), "trial"), *best,
               train::write_settings(trials_[*best].values));
    if (std::string const directory = sweep_.line.text("checkpoint_dir"); !directory.empty())
      fmt::print("its model: {}/best{}\n", folder_of(sweep_, *best, trials_[*best].attempt),
                 bucket::names_objects(directory) ? "" : ", in the jobs' volume");
    return tool::done;
  }

  cluster_sweep const& sweep_;
  cluster& cluster_;
  app::signals const& stop_;
  std::vector<app::trial> trials_;
  std::string with_logs_;  ///< the first job that has failed and stays
  app::sweep_file file_;
  std::map<std::size_t, turn> under_way_;
  bool away_ = false;  // the API server, which was said
};

void print_jobs(cluster_sweep const& s) {
  std::string text = fmt::format("# Sweep {}: {}, {} at once. `edl sweep` submits them in turn.\n", s.name,
                                 counted(s.all.size(), "trial"), counted(s.parallel, "job"));
  for (std::size_t i = 0; i < s.all.size(); ++i) {
    submission job = job_of(s, i, {});
    job.spec.space = namespace_of(s.line);
    text +=
        fmt::format("# Trial {} ({}): job {}\n", i, train::write_settings(s.all[i].values), job.spec.name);
    for (json object : objects_of(job.spec, net::token::random().secret())) {
      mark(object, labels_of(s), annotations_of(s, i, {}));
      text += "---\n" + to_yaml(object);
    }
  }
  fmt::print("{}", text);
}

}  // namespace

int run_sweep(cluster_sweep const& s, cluster& c, app::signals const& stop) {
  return sweep_run(s, c, stop).run();
}

int sweep(words const& line) {
  cluster_sweep s = read_sweep(line);
  for (std::string const& text : s.base.notes) note(text);
  if (s.prints) {
    print_jobs(s);
    return done;
  }
  app::signals const stop{SIGINT, SIGTERM};
  cluster c = connect(s.line);
  if (s.base.spec.service_account.empty()) s.base.spec.service_account = usual_account(c);
  if (s.base.build) build_image(s.base);
  return run_sweep(s, c, stop);
}

}  // namespace edl::tool
