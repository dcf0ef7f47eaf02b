// SPDX-License-Identifier: Apache-2.0
#include "submit/submit_training_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "cluster/cluster.hpp"
#include "cluster/logs.hpp"
#include "cluster/pods.hpp"
#include "cluster/training_jobs.hpp"
#include "common/advice.hpp"
#include "common/text_file.hpp"
#include "common/yaml.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/cluster/kubernetes/annotations.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "submit/job_file.hpp"
#include "submit/paddle.hpp"
#include "submit/paddle_line.hpp"
#include "submit/plain_job.hpp"
#include "submit/submission_flags.hpp"
#include "submit/training_job_check.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
namespace k8s = kubernetes;

/// A job that is to be made, and where it comes from.
struct wanted_job {
  json object;
  std::optional<tool::submission> submission;  ///< nothing: a manifest of edl, which is sent as it is
  std::string name() const { return text_at(object, "/metadata/name"); }
  std::string space() const { return text_at(object, "/metadata/namespace"); }
};

/// Flags that are about the command, and may stand beside a manifest.
bool is_about_command(std::string const& name) {
  static words const all{"file", "yaml", "dry_run", "detach", "wait", "follow", "start_timeout"};
  if (std::ranges::find(all, name) != all.end()) return true;
  return std::ranges::any_of(cluster_flags(), [&](flag const& f) { return f.name == name; });
}

wanted_job from_flags(training_job_line job, std::string const& origin) {
  for (std::string const& text : job.submission.notes) note(text);
  wanted_job out{training_job_of(job.submission, job.options), std::move(job.submission)};
  check_training_job(out.object, origin);
  return out;
}

std::vector<wanted_job> from_objects(std::vector<json> const& documents, command_line const& given) {
  std::string const origin = "--file=" + given.text("file");
  std::vector<wanted_job> all;
  for (json const& one : documents) {
    if (is_paddle_job(one)) {
      all.push_back(from_flags(from_paddle(one, origin, given, without_program::refused), origin));
    } else if (is_training_job(one)) {
      for (auto const& [name, value] : given.in_order())
        if (!is_about_command(name))
          throw usage_error(fmt::format("--{}={}: the job is defined in {}: change it there", name, value,
                                        given.text("file")));
      check_training_job(one, origin);
      all.push_back({one, std::nullopt});
    } else {
      note(fmt::format("{}: {} '{}' is not a TrainingJob: `kubectl apply -f` makes it", origin,
                       text_at(one, "/kind", "?"), text_at(one, "/metadata/name", "?")));
    }
  }
  if (all.empty()) throw usage_error(fmt::format("{}: holds no TrainingJob", origin));
  return all;
}

void check_line(command_line const& l) {
  if (l.truth("detach") && (l.truth("wait") || l.truth("follow")))
    throw usage_error("--detach returns at once, --wait and --follow do not: leave one out");
  if (l.given("yaml") && l.given("dry_run"))
    throw usage_error("--yaml prints the objects, --dry_run checks them: leave one out");
}

enum class holder { ours, going, another };

/// Who has the name of `job`: this very submission, whose answer was lost; a job that is about to give it up;
/// or another.
holder holder_of_name(cluster& c, wanted_job const& job) {
  auto const old = find_training_job(c, job.name());
  if (!old || !old->resource.deleted.empty()) return holder::going;
  auto const id = old->resource.annotations.find(k8s::annotation::submission);
  bool const ours =
      id != old->resource.annotations.end() &&
      id->second == job.object["metadata"]["annotations"][k8s::annotation::submission].get<std::string>();
  return ours ? holder::ours : holder::another;
}

void create(cluster& c, wanted_job const& job, command_line const& l) {
  bool const try_only = l.text("dry_run") == "server";
  auto const until = clock::now() + std::chrono::seconds(l.number("start_timeout"));
  for (bool announced = false;;) try {
      k8s::query q{{"fieldValidation", "Strict"}};
      if (try_only) q.emplace_back("dryRun", "All");
      c.api.create(training_jobs_path(c.space), job.object, q);
      return;
    } catch (k8s::api_error const& bad) {
      if (bad.reason() != "AlreadyExists") explain_refusal(c, bad);
      holder const who = holder_of_name(c, job);
      if (who == holder::ours) return;
      if (who == holder::another || clock::now() >= until)
        throw k8s::api_error(bad.code(), bad.reason(), bad.message(),
                             fmt::format("job '{0}' already exists in namespace '{1}' ({2}): `edl delete {0} "
                                         "-n {1}{3}` removes it, or give another name",
                                         job.name(), c.space, bad.message(), c.reach));
      if (!std::exchange(announced, true))
        note(fmt::format("job '{}' is being removed: waiting until its name is free", job.name()));
      std::this_thread::sleep_for(250ms);
    }
}

/// A plain job of that name has the pods' names.
void check_name(cluster& c, std::string const& name) {
  json pod;
  try {
    pod = c.api.get(c.path("pods", k8s::pod_name(name, {role::master, 0})));
  } catch (k8s::api_error const& bad) {
    if (bad.code() == 404 || bad.code() == 403) return;
    throw;
  }
  if (training_job_of_pod(pod).empty() && text_at(pod, "/metadata/deletionTimestamp").empty())
    throw k8s::api_error(409, "AlreadyExists", "",
                         fmt::format("job '{0}' of `edl train` already exists in namespace '{1}': `edl "
                                     "delete {0} -n {1}{2}` removes it, or give another name",
                                     name, c.space, c.reach));
}

/// Whether others have the room that it needs, which is no failure.
bool waits_for_room(edl::kubernetes::training_job const& job) {
  auto const* const admitted =
      edl::kubernetes::find_condition(job.status, edl::kubernetes::condition_type::admitted);
  return admitted != nullptr && admitted->status == edl::kubernetes::truth::no &&
         !edl::kubernetes::is_true(job.status, edl::kubernetes::condition_type::stalled);
}

/// Waits for the master to run, and says meanwhile what it waits for. False: it waits for room.
bool await_start(cluster& c, std::string const& name, std::chrono::seconds timeout) {
  auto const until = clock::now() + timeout;
  std::string shown;
  for (auto pause = 100ms;; pause = std::min(pause * 2, 1000ms)) {
    live_job const now = training_job_again(c, name, until);
    if (now.resource.finished() || now.resource.spec.suspend || now.resource.status.master.running > 0)
      return true;
    std::string why = now.fault.empty() ? hindrance_of(now) : now.fault;
    if (why.empty()) {
      json const pods = own_pods(c.pods_of(name), now.resource.uid);
      if (!pods.empty())
        if (auto const state = state_of(pods[0]); state.hinders)
          why = in_words(state.hinders->reason, state.hinders->message, c.named(name));
    }
    if (!why.empty() && why != shown && now.resource.status.observed_generation > 0)
      fmt::print(stderr, "edl: job '{}' waits: {}\n", name, shown = why);
    bool const late = clock::now() >= until;
    if (late && waits_for_room(now.resource))
      return fmt::print("it waits, and starts when it can: {}\n", why), false;
    if (late)
      throw error(
          fmt::format("job '{0}' still waits: {1}; it stays and starts when it can: `edl explain {2}`, `edl "
                      "delete {2}`",
                      name, why.empty() ? "its master is being made" : why, c.named(name)));
    std::this_thread::sleep_for(pause);
  }
}

int follow(cluster& c, std::vector<wanted_job> const& jobs, command_line const& l) {
  if (l.truth("detach")) return done;
  bool const follows = l.truth("follow"), waits = follows || l.truth("wait");
  int code = done;
  for (wanted_job const& job : jobs) {
    c.space = job.space();
    if (text_at(job.object, "/spec/suspend") == "true") {
      fmt::print("it is suspended: `edl resume {}` starts it\n", c.named(job.name()));
      continue;
    }
    bool runs = true;
    try {
      runs = await_start(c, job.name(), std::chrono::seconds(l.number("start_timeout")));
    } catch (k8s::unreachable const&) {
      throw;
    } catch (error const& late) {
      if (!waits) throw;
      fmt::print(stderr, "edl: {}\n", late.what());
    }
    if (follows) follow_logs(c, job.name(), {});
    if (waits) code = std::max(code, end_of(c, job.name()));
    if (!waits && runs)
      fmt::print(
          "it runs; follow it with `edl logs {0} -f`, stop it with `edl suspend {0}` or `edl delete {0}`\n",
          c.named(job.name()));
  }
  return code;
}

/// The account of the master that a conversion or flags leave open.
void choose_account(cluster& c, wanted_job& job) {
  if (!job.submission || !job.submission->spec.service_account.empty()) return;
  if (std::string const name = usual_account(c); !name.empty())
    job.object["spec"]["master"]["template"]["spec"]["serviceAccountName"] = name;
}

int print(std::vector<wanted_job> const& jobs, command_line const& l) {
  std::string text;
  for (wanted_job const& job : jobs) text += (text.empty() ? "" : "---\n") + to_yaml(job.object);
  write_output("--yaml", l.text("yaml"), text, false);
  return done;
}

int check_only(std::vector<wanted_job> const& jobs) {
  for (wanted_job const& job : jobs)
    fmt::print("job {}: nothing is wrong; nothing was submitted\n", job.name());
  return done;
}

int send(cluster& c, std::vector<wanted_job> jobs, command_line const& l) {
  std::string const usual = c.space;
  for (wanted_job& job : jobs) {
    json& metadata = job.object["metadata"];
    if (!metadata.contains("namespace")) metadata["namespace"] = usual;
    c.space = job.space();
    if (l.given("namespace") && c.space != l.text("namespace"))
      throw usage_error(fmt::format("--namespace={}: job '{}' names namespace {} itself", l.text("namespace"),
                                    job.name(), c.space));
    metadata["annotations"][k8s::annotation::submission] = net::token::random().secret().substr(0, 16);
    choose_account(c, job);
    check_name(c, job.name());
    if (l.text("dry_run").empty() && job.submission && job.submission->build) build_image(*job.submission);
    create(c, job, l);
    if (l.text("dry_run") == "server")
      fmt::print("job {}: the API server takes it; nothing was submitted\n", job.name());
    else
      fmt::print("job {} is submitted to namespace {}\n", job.name(), c.space);
    std::fflush(stdout);
  }
  return l.text("dry_run") == "server" ? done : follow(c, jobs, l);
}

int send(std::vector<wanted_job> jobs, command_line const& l) {
  if (!l.text("yaml").empty()) return print(jobs, l);
  if (l.text("dry_run") == "client") return check_only(jobs);
  cluster c = connect(l);
  return send(c, std::move(jobs), l);
}

/// What a job of PaddlePaddle is in a cluster that has no controller to change its size.
submission as_plain_job(json const& document, command_line const& given, std::string const& flags) {
  std::string const origin = "--file=" + given.text("file");
  paddle_line const theirs = line_from_paddle(document, origin, given, without_program::refused);
  words line;
  for (std::string const& word : theirs.line)
    if (!word.starts_with("--min_workers=") && !word.starts_with("--max_workers=")) line.push_back(word);
  if (!given.given("num_workers")) line.push_back(fmt::format("--num_workers={}", theirs.min));
  submission s = read_submission("train", line, stamp());
  s.notes.clear();  // they have been said of the TrainingJob that it is not
  note(fmt::format(
      "the cluster knows no TrainingJobs: a plain job of {} workers, min-instance, takes its place; `edl "
      "scale {}{}` changes that",
      s.spec.num_workers, s.spec.name, flags));
  return s;
}

}  // namespace

std::vector<flag> submit_training_job_flags() { return training_job_flags("train"); }

int submit_training_job(words const& line) {
  static words const commands{"train", "evaluate", "predict"};
  bool const named = !line.empty() && std::ranges::find(commands, line[0]) != commands.end();
  std::string const command = named ? line[0] : "train";
  words const rest(line.begin() + (named ? 1 : 0), line.end());
  command_line const given("submit", training_job_flags(command), rest);
  check_line(given);
  words flags = rest;
  if (given.given("file")) {
    std::string const text = read_small_file("--file", given.text("file"));
    if (auto const documents = objects_in(text, "--file=" + given.text("file")))
      return send(from_objects(*documents, given), given);
    flags = with_flags_of("submit", training_job_flags(command), rest, text);
  }
  std::vector<wanted_job> jobs;
  training_job_line job = read_training_job_line(command, flags, stamp());
  command_line const whole = job.submission.line;  // with what its file says
  jobs.push_back(from_flags(std::move(job), "edl submit"));
  return send(std::move(jobs), whole);
}

int submit_objects(std::vector<json> const& documents, command_line const& given) {
  check_line(given);
  auto jobs = from_objects(documents, given);
  if (!given.text("yaml").empty()) return print(jobs, given);
  if (given.text("dry_run") == "client") return check_only(jobs);
  cluster c = connect(given);
  if (std::ranges::none_of(documents, is_paddle_job) || knows_training_jobs(c))
    return send(c, std::move(jobs), given);
  if (jobs.size() > 1)
    throw error(
        fmt::format("--file={}: has {} jobs, and the cluster knows no TrainingJobs: submit them one by one",
                    given.text("file"), jobs.size()));
  return submit_plain(as_plain_job(*std::ranges::find_if(documents, is_paddle_job), given, c.flags()));
}

}  // namespace edl::tool
