// SPDX-License-Identifier: Apache-2.0
#include "submit/sweep_jobs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "cluster/pods.hpp"
#include "common/advice.hpp"
#include "common/fields.hpp"
#include "edl/cluster/kubernetes/annotations.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/compute/features/hashing.hpp"
#include "edl/core/error.hpp"
#include "edl/core/json.hpp"
#include "submit/job_file.hpp"
#include "submit/plain_job.hpp"
#include "submit/submission_flags.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
namespace k8s = kubernetes;

/// What a sweep says to its jobs itself, and what is about one job that somebody waits for.
bool is_set_by_sweep(std::string const& name) {
  static std::set<std::string> const all{
      "save_best", "keep_checkpoint_max", "early_stopping", "output", "yaml", "dry_run", "detach", "wait",
      "follow",    "start_timeout"};
  return name.starts_with("export_") || all.contains(name);
}

std::string why_not_in_sweep(std::string const& name) {
  if (name == "early_stopping")
    return "is not for a sweep: it compares its trials after equal numbers of steps; leave it out";
  if (name.starts_with("export_"))
    return "is for one model: export the best trial's with the command export; leave it out";
  if (name == "yaml") return "is not for a sweep; --dry_run prints the objects of its jobs";
  if (name == "save_best" || name == "keep_checkpoint_max")
    return "is set by the sweep, for each trial; leave it out";
  if (is_set_by_sweep(name)) return "is for one job, but a sweep runs many; leave it out";
  return "";
}

/// What changes where and beside what the jobs run, and no result.
bool is_about_running(std::string const& name) {
  static std::set<std::string> const all{"output",
                                         "parallel",
                                         "keep_jobs",
                                         "dry_run",
                                         "file",
                                         "docker_base_url",
                                         "image_pull_policy",
                                         "restart_policy",
                                         "image_pull_secrets",
                                         "service_account",
                                         "grace_seconds"};
  return all.contains(name) || name.ends_with("_resource_request") || name.ends_with("_resource_limit") ||
         name.ends_with("_pod_priority") ||
         std::ranges::any_of(cluster_flags(), [&](flag const& f) { return f.name == name; });
}

std::vector<flag> own_flags() {
  using enum flag::value_type;
  std::vector<flag> all = app::sweep_flags();
  for (flag& f : all) f.needed = false;  // a file may say it
  all.push_back({.name = "parallel",
                 .fallback = "4",
                 .help = "jobs that exist at once, running or waiting for room",
                 .type = whole,
                 .least = 1,
                 .most = 1024});
  all.push_back(
      {.name = "output",
       .help = "directory on this machine, or s3://BUCKET/PREFIX, for sweep.json, the list of trials with "
               "their results; without it --job_name"});
  all.push_back({.name = "keep_jobs",
                 .fallback = "false",
                 .help = "leave jobs that are done; those that failed stay anyway, for `edl logs`",
                 .type = truth});
  all.push_back({.name = "dry_run",
                 .fallback = "false",
                 .help = "print the objects of the first round's jobs, and submit nothing",
                 .type = truth});
  return all;
}

std::string behind_attempt(std::uint32_t attempt, char const* before) {
  return attempt == 0 ? std::string() : fmt::format("{}attempt-{}", before, attempt);
}

std::string digest_of(cluster_sweep const& s, std::size_t trial, trial_turn turn) {
  return fmt::format("{:016x}", features::fingerprint(fmt::format(
                                    "{}\n{}\n{}{}", s.identity, train::write_settings(s.all[trial].values),
                                    s.rounds[turn.round], behind_attempt(turn.attempt, "\n"))));
}

submission submission_of(cluster_sweep const& s, std::string const& name, std::size_t trial,
                         trial_turn turn) {
  static std::set<std::string> const of_build{"image_name", "image_base", "docker_image_repository",
                                              "model_zoo"};
  bool const built = s.base.build.has_value();  // once, for all
  words line{"--job_name=" + name};
  for (std::string const& word : s.job_flags)
    if (!built || !of_build.contains(word.substr(2, word.find('=') - 2))) line.push_back(word);
  if (built) line.push_back("--image_name=" + s.base.spec.image);
  line.push_back(fmt::format("--max_step={}", s.rounds[turn.round]));
  line.push_back(fmt::format("--set={}", train::write_settings(s.all[trial].values)));
  if (!s.line.text("checkpoint_dir").empty()) {
    line.push_back("--checkpoint_dir=" + folder_of(s, trial, turn.attempt));
    line.push_back(fmt::format("--save_best={}:{}", s.by.metric, s.by.higher ? "max" : "min"));
    line.push_back("--keep_checkpoint_max=1");
  }
  // The last version is evaluated in any case.
  if (!s.line.given("evaluation_steps"))
    line.push_back(fmt::format("--evaluation_steps={}", std::uint64_t{1} << 60));
  if (!s.line.given("num_epochs")) line.push_back("--num_epochs=0");
  return read_submission("train", line, stamp());
}

void check(cluster_sweep const& s) {
  command_line const& l = s.line;
  if (s.name.empty() || !l.given("job_name"))
    throw usage_error("--job_name is needed: the sweep's name, with which the names of its jobs begin");
  if (!l.given("by")) throw usage_error("--by is needed: the metric by which trials are ranked");
  if (!l.given("validation_data") && !l.given("validation_split"))
    throw usage_error(
        "a sweep needs --validation_data or --validation_split: its trials are compared on those records");
  if (s.rounds.size() > 1 && l.text("checkpoint_dir").empty())
    throw usage_error(
        fmt::format("--halving={}: a trial that goes on does so from its checkpoint: give a --checkpoint_dir "
                    "in a --volume",
                    s.options.halving));
  std::size_t const behind = job_name(s, s.all.size() - 1).size() - s.name.size();
  if (s.name.size() + behind > k8s::longest_job_name)
    throw usage_error(
        fmt::format("--job_name={}: at most {} characters, because the {} trials' jobs are "
                    "named after it",
                    s.name, k8s::longest_job_name - behind, s.all.size()));
}

}  // namespace

std::vector<flag> sweep_job_flags() {
  std::vector<flag> all = own_flags();
  for (flag& f : job_flags())
    if (!is_set_by_sweep(f.name)) all.push_back(std::move(f));
  return all;
}

std::vector<flag> sweep_model_flags() {
  std::vector<flag> all = model_flags("train");
  std::erase_if(all, [](flag const& f) { return is_set_by_sweep(f.name); });
  return all;
}

std::vector<flag> cluster_sweep_flags() {
  std::vector<flag> all = own_flags();
  for (flag& f : submission_flags("train"))
    if (!is_set_by_sweep(f.name)) all.push_back(std::move(f));
  return all;
}

cluster_sweep read_sweep(words const& line) {
  command_line const l = read_with_file("sweep", cluster_sweep_flags(), line, why_not_in_sweep);
  auto const own = own_flags();
  cluster_sweep s{.name = l.text("job_name"),
                  .options = app::sweep_options_of(l),
                  .by = read_monitor("--by", l.given("by") ? l.text("by") : "loss"),
                  .parallel = std::size_t(l.number("parallel")),
                  .output = l.text("output").empty() ? l.text("job_name") : l.text("output"),
                  .keep_jobs = l.truth("keep_jobs"),
                  .prints = l.truth("dry_run"),
                  .all = app::trials_of(app::sweep_options_of(l), std::nullopt),
                  .rounds = app::rounds_of(app::sweep_options_of(l)),
                  .job_flags = {},
                  .identity = {},
                  .base = {.spec = {}, .build = {}, .notes = {}, .line = l},
                  .line = l};
  words of_results;
  for (auto const& [name, value] : l.in_order()) {
    std::string const word = fmt::format("--{}={}", name, value);
    if (!is_about_running(name)) of_results.push_back(word);
    if (std::ranges::find(own, name, &flag::name) == own.end() && name != "file" && name != "job_name" &&
        name != "max_step" && name != "checkpoint_dir")
      s.job_flags.push_back(word);
  }
  std::ranges::sort(of_results);
  s.identity = fmt::format("{}", fmt::join(of_results, " "));
  check(s);
  s.base = submission_of(s, s.name, 0, {});
  return s;
}

std::string job_name(cluster_sweep const& s, std::size_t trial) {
  return fmt::format("{}-{}", s.name, trial);
}

std::string folder_of(cluster_sweep const& s, std::size_t trial, std::uint32_t attempt) {
  std::string base = s.line.text("checkpoint_dir");
  while (base.size() > 1 && base.ends_with('/')) base.pop_back();
  return fmt::format("{}/trial-{}{}", base, trial, behind_attempt(attempt, "-"));
}

submission job_of(cluster_sweep const& s, std::size_t trial, trial_turn turn) {
  return submission_of(s, job_name(s, trial), trial, turn);
}

std::map<std::string, std::string> labels_of(cluster_sweep const& s) { return {{sweep_label, s.name}}; }

std::map<std::string, std::string> annotations_of(cluster_sweep const& s, std::size_t trial,
                                                  trial_turn turn) {
  return {{sweep_annotation, digest_of(s, trial, turn)}};
}

std::optional<trial_turn> turn_of(json const& object, cluster_sweep const& s, std::size_t trial,
                                  std::uint32_t attempt) {
  std::string const digest = text_at(object, "/metadata/annotations/elasticdl~1sweep");
  if (digest.empty()) return std::nullopt;
  for (trial_turn turn{.attempt = attempt};; --turn.attempt) {  // the latest is the likely one
    for (turn.round = 0; turn.round < s.rounds.size(); ++turn.round)
      if (digest == digest_of(s, trial, turn)) return turn;
    if (turn.attempt == 0) return std::nullopt;
  }
}

trial_state state_of_trial(json const& master, monitor const& by, std::string const& flags) {
  using enum trial_state::phase;
  pod_state const pod = state_of(master);
  bool const deleted = !text_at(master, "/metadata/deletionTimestamp").empty();
  if (pod.phase != "Succeeded") {
    if (deleted) return {.state = leaving};
    std::string const why = pod.hinders
                                ? in_words(pod.hinders->reason, pod.hinders->message,
                                           text_at(master, "/metadata/labels/elasticdl-job-name") + flags)
                                : waits_of(master);
    return {.state = pod.phase == "Failed"                  ? failed
                     : pod.hinders && pod.hinders->hopeless ? hopeless
                                                            : under_way,
            .why = why};
  }
  std::string const text = text_at(master, "/metadata/annotations/elasticdl~1report");
  json const report = parse_json(text);
  if (!report.is_object() || report.value("over", json()) != true) return {.state = unread};
  json const evaluation = report.value("evaluation", json::object());
  json const metrics = evaluation.is_object() ? evaluation.value("metrics", json::object()) : json();
  if (!metrics.is_object() || metrics.empty()) return {.state = failed, .why = "it has evaluated nothing"};
  if (!metrics.contains(by.metric)) {
    words names;
    for (auto const& [name, value] : metrics.items()) names.push_back(name);
    return {.state = failed,
            .why = fmt::format("--by={}: the model's metrics are {}", by.metric, fmt::join(names, ", "))};
  }
  json const& value = metrics.at(by.metric);
  if (!value.is_number()) return {.state = failed, .why = fmt::format("{} is not a number", by.metric)};
  return {.state = done, .value = value.get<double>()};
}

}  // namespace edl::tool
