// SPDX-License-Identifier: Apache-2.0
#include "cluster/change.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cluster/pods.hpp"
#include "cluster/training_jobs.hpp"
#include "edl/cluster/kubernetes/annotations.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
namespace k8s = kubernetes;

json options(char const* propagation = "Background") {
  return {{"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"propagationPolicy", propagation}};
}

/// Whether it was there.
bool remove_one(cluster& c, std::string const& path) {
  try {
    c.api.remove(path, options());
    return true;
  } catch (k8s::api_error const& bad) {
    if (bad.code() != 404) throw;
    return false;
  }
}

/// "workers=3,servers=" says nothing of servers.
std::string without_blanks(std::string const& answer) {
  std::string text;
  for (std::string const& part : split(answer, ','))
    if (!part.ends_with('=')) text += (text.empty() ? "" : ", ") + part;
  return text;
}

char const* const scaled_at = "/metadata/annotations/elasticdl~1scaled";

/// Until `limit` from now.
auto after(std::chrono::seconds limit) { return clock::now() + limit; }

/// What the controller makes of a change: waits until it has read it, and the job is as `reached` asks.
/// Throws error that says `what` it did not do.
live_job await_controller(cluster& c, std::string const& job, std::int64_t generation,
                          std::chrono::seconds limit,
                          std::function<bool(edl::kubernetes::training_job const&)> const& reached,
                          std::string const& what) {
  for (auto const until = after(limit);;) {
    live_job now = training_job_again(c, job, until);
    bool const seen = now.resource.status.observed_generation >= generation;
    if (seen && (now.resource.finished() || reached(now.resource))) return now;
    if (clock::now() > until)
      throw error(fmt::format(
          "{0} within {1} s: {2}; the request stays", what, limit.count(),
          seen ? fmt::format("`edl explain {}` shows why", c.named(job))
               : fmt::format("no controller has read it; `edl doctor{}` checks for one", c.reach)));
    std::this_thread::sleep_for(200ms);
  }
}

[[noreturn]] void refuse_ended(edl::kubernetes::training_job const& job, char const* what) {
  throw error(
      fmt::format("job '{}' has ended ({}): nothing of it can be {}", job.name, status_of(job), what));
}

/// Whether it has no size to change now, because it is suspended or not admitted.
bool waits_for_room(edl::kubernetes::training_job const& job) {
  auto const* const admitted =
      edl::kubernetes::find_condition(job.status, edl::kubernetes::condition_type::admitted);
  return job.spec.suspend || (admitted != nullptr && admitted->status == edl::kubernetes::truth::no);
}

/// Writes how many workers and servers it is to have, and waits until the controller has told its master.
int scale_training_job(command_line const& l, cluster& c, live_job const& of) {
  edl::kubernetes::training_job const& job = of.resource;
  if (!of.fault.empty()) throw error(of.fault);
  if (job.finished()) refuse_ended(job, "scaled");
  json change = json::object();
  auto const& w = job.spec.workers;
  std::uint32_t workers = w.replicas.value_or(0);
  if (l.given("num_ps_pods"))
    throw usage_error(fmt::format(
        "--num_ps_pods: a TrainingJob keeps its servers; delete '{}' and create it again to have others",
        job.name));
  if (l.given("num_workers")) {
    bool const chosen = l.text("num_workers") != "auto";
    if (chosen) {
      workers = std::uint32_t(l.number("num_workers"));
      if (workers < w.min || workers > w.max)
        throw usage_error(
            fmt::format("--num_workers={0}: job '{1}' may have {2} to {3} workers; `kubectl edit tj {4}` "
                        "changes workers.min and workers.max",
                        workers, job.name, w.min, w.max, for_kubectl(c.named(job.name))));
    } else {
      workers = 0;
    }
    change["workers"]["replicas"] = chosen ? json(workers) : json();
  }
  live_job const changed = change_training_job(c, job.name, {{"spec", change}});
  auto const announced = [&](edl::kubernetes::training_job const& now) {
    return waits_for_room(now) || workers == 0 || now.status.workers.desired == workers;
  };
  live_job const now =
      await_controller(c, job.name, changed.resource.generation, std::chrono::seconds(l.number("timeout")),
                       announced, fmt::format("the request to resize job '{}' was not delivered", job.name));
  if (waits_for_room(now.resource))
    fmt::print("job {}: has the new size when it starts: {}\n", job.name,
               now.resource.spec.suspend ? fmt::format("`edl resume {}` lets it", c.named(job.name))
                                         : hindrance_of(now));
  else if (l.given("num_workers") && workers == 0)
    fmt::print("job {}: workers={}, and the autoscaler decides from {} to {}\n", job.name,
               now.resource.status.workers.desired, w.min, w.max);
  else
    fmt::print("job {}: workers={}, servers={}\n", job.name, now.resource.status.workers.desired,
               now.resource.status.servers.desired);
  return done;
}

/// Removes a TrainingJob, whose pods the cluster removes with it.
bool delete_training_job(cluster& c, std::string const& job) {
  return find_training_job(c, job) && remove_one(c, training_jobs_path(c.space, job));
}

/// Whether it goes on after a suspension where it was.
bool keeps_state(edl::kubernetes::training_job const& job) {
  auto const& flags = job.spec.flags;
  std::string const flag = "--checkpoint_dir", given = flag + "=";
  for (auto it = flags.begin(); it != flags.end(); ++it)
    if (*it == flag ? it + 1 != flags.end() && !it[1].empty()
                    : it->starts_with(given) && it->size() > given.size())
      return true;
  return false;
}

int set_suspended(command_line const& l, bool yes) {
  std::string const& name = l.arguments()[0];
  char const* const what = yes ? "suspended" : "resumed";
  cluster c = connect(l);
  auto const of = find_training_job(c, name);
  if (!of) {
    master_of(c, name);  // says that there is no such job
    throw error(fmt::format(
        "job '{}' is not a TrainingJob and cannot be {}: `edl submit` makes jobs that can", name, what));
  }
  if (of->fault.empty() && of->resource.finished()) refuse_ended(of->resource, what);
  bool const loses = yes && of->fault.empty() && !keeps_state(of->resource);
  if (loses && !of->resource.status.start_time.empty() && !l.truth("lose_progress"))
    throw usage_error(
        fmt::format("job '{0}' has no --checkpoint_dir among its spec.flags: if suspended, it loses its "
                    "progress and begins anew; `edl suspend {1} --lose_progress` suspends it all the same",
                    name, c.named(name)));
  live_job const changed = change_training_job(c, name, {{"spec", {{"suspend", yes}}}});
  fmt::print("job {} is {}{}\n", name, yes ? "being suspended" : "resumed",
             yes ? fmt::format("; `edl resume {}` lets it {}", c.named(name), loses ? "begin anew" : "go on")
                 : "; it starts when the cluster has room");
  std::fflush(stdout);
  if (!l.truth("wait")) return done;
  await_controller(
      c, name, changed.resource.generation, std::chrono::seconds(l.number("timeout")),
      [&](edl::kubernetes::training_job const& job) {
        return edl::kubernetes::is_true(job.status, yes ? edl::kubernetes::condition_type::suspended
                                                        : edl::kubernetes::condition_type::running);
      },
      fmt::format("job '{}' was not {}", name, what));
  fmt::print("job {} {}\n", name, yes ? "is suspended" : "runs");
  return done;
}

}  // namespace

bool delete_job(cluster& c, std::string const& job) {
  if (delete_training_job(c, job)) return true;
  k8s::job_spec const spec{.name = job, .space = c.space};
  bool const master = remove_one(c, c.path("pods", k8s::pod_name(job, {role::master, 0})));
  bool any = master;
  any |= remove_one(c, c.path("services", k8s::master_service(spec).at("metadata").at("name")));
  any |= remove_one(c, c.path("secrets", k8s::token_secret(spec, "").at("metadata").at("name")));
  if (!master)  // nothing owns what is left
    for (json const& pod : c.pods_of(job))
      any |= remove_one(c, c.path("pods", text_at(pod, "/metadata/name")));
  return any;
}

/// Those of a cluster, and how long to wait. `wait`: until when.
std::vector<flag> waiting_flags(std::string wait) {
  auto all = cluster_flags();
  all.push_back(
      {.name = "wait", .fallback = "false", .help = std::move(wait), .type = flag::value_type::truth});
  all.push_back({.name = "timeout",
                 .fallback = "600",
                 .help = "seconds to wait at most",
                 .type = flag::value_type::whole,
                 .least = 1,
                 .most = 86400});
  return all;
}

std::vector<flag> remove_flags() { return waiting_flags("return when all of its pods are gone"); }

int remove(words const& line) {
  command_line const l("delete", remove_flags(), line, 1, 100, "the job's name");
  auto const limit = std::chrono::seconds(l.number("timeout"));
  cluster c = connect(l);
  for (std::string const& job : l.arguments()) {
    if (!delete_job(c, job)) master_of(c, job);  // says that there is no such job
    fmt::print("job {} is deleted{}\n", job, l.truth("wait") ? "; waiting for its pods to end" : "");
    std::fflush(stdout);
  }
  if (!l.truth("wait")) return done;
  auto const until = clock::now() + limit;
  bool announced = false;
  for (std::string const& job : l.arguments())
    for (;;) {
      json pods;
      if (!answered([&] { pods = c.pods_of(job); }, until, announced)) continue;
      if (pods.empty() && !find_training_job(c, job)) break;
      if (clock::now() > until)
        throw error(pods.empty()
                        ? fmt::format("job '{}' still exists after {} s, without pods: a finalizer holds it",
                                      job, limit.count())
                        : fmt::format("{} pods of job '{}' still exist after {} s, {} among them",
                                      pods.size(), job, limit.count(), text_at(pods[0], "/metadata/name")));
      std::this_thread::sleep_for(500ms);
    }
  return done;
}

std::vector<flag> scale_flags() {
  auto all = cluster_flags();
  all.push_back({.name = "num_workers",
                 .help = "number of workers to run; auto: as many as the autoscaler gives a TrainingJob",
                 .choices = {"auto"},
                 .type = flag::value_type::whole,
                 .least = 1,
                 .most = 10000});
  all.push_back({.name = "num_ps_pods",
                 .help = "number of servers to run",
                 .type = flag::value_type::whole,
                 .least = 1,
                 .most = 10000});
  all.push_back({.name = "timeout",
                 .fallback = "30",
                 .help = "seconds to wait for the master's reply, or the controller's",
                 .type = flag::value_type::whole,
                 .least = 1,
                 .most = 3600});
  return all;
}

int scale(words const& line) {
  command_line const l("scale", scale_flags(), line, 1, 1, "the job's name");
  std::string const& job = l.arguments()[0];
  if (!l.given("num_workers") && !l.given("num_ps_pods"))
    throw usage_error("scale: give the new size with --num_workers or --num_ps_pods");
  bool const by_autoscaler = l.text("num_workers") == "auto";
  json wanted{{k8s::annotation::scaled, nullptr}};  // an older answer is none to this question
  for (auto const& [name, annotation] : {std::pair{"num_workers", k8s::annotation::num_workers},
                                         {"num_ps_pods", k8s::annotation::num_servers}})
    if (l.given(name) && l.text(name) != "auto") wanted[annotation] = std::to_string(l.number(name));
  auto const limit = std::chrono::seconds(l.number("timeout"));
  cluster c = connect(l);
  if (auto const above = find_training_job(c, job)) return scale_training_job(l, c, *above);
  json pod = master_of(c, job);
  if (by_autoscaler)
    throw usage_error(
        fmt::format("--num_workers=auto: job '{}' is not a TrainingJob, so no autoscaler manages it", job));
  if (pod_state const state = state_of(pod); state.ended)
    throw error(fmt::format("job '{}' has ended ({}): nothing of it can be scaled", job, state.status));
  std::string const path = c.path("pods", text_at(pod, "/metadata/name"));
  c.api.patch(path, json{{"metadata", {{"annotations", wanted}}}});
  bool announced = false;
  for (auto const until = clock::now() + limit;;) {
    if (!answered([&] { pod = c.api.get(path); }, until, announced)) continue;
    if (std::string const answer = text_at(pod, scaled_at); answer.starts_with("refused"))
      throw error(fmt::format("the master of job '{}' {}", job, answer));
    else if (!answer.empty())
      return fmt::print("job {}: {}\n", job, printable(without_blanks(answer))), done;
    if (clock::now() > until)
      throw error(fmt::format(
          "the master of job '{0}' did not reply within {1} s; it will when it runs: `edl explain {2}`", job,
          limit.count(), c.named(job)));
    std::this_thread::sleep_for(200ms);
  }
}

std::vector<flag> suspend_flags() {
  auto all = waiting_flags("return when it no longer has pods");
  all.push_back(
      {.name = "lose_progress",
       .fallback = "false",
       .help = "also a job that writes no checkpoints, and restarts from the beginning when it is resumed",
       .type = flag::value_type::truth});
  return all;
}

std::vector<flag> resume_flags() { return waiting_flags("return when it runs again"); }

int suspend(words const& line) {
  return set_suspended(command_line("suspend", suspend_flags(), line, 1, 1, "the job's name"), true);
}

int resume(words const& line) {
  return set_suspended(command_line("resume", resume_flags(), line, 1, 1, "the job's name"), false);
}

}  // namespace edl::tool
