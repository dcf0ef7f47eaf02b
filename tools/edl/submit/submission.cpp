// SPDX-License-Identifier: Apache-2.0
#include "submit/submission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/text_file.hpp"
#include "common/yaml.hpp"
#include "edl/app/arguments.hpp"
#include "edl/core/error.hpp"
#include "submit/job_file.hpp"
#include "submit/submission_flags.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
namespace k8s = kubernetes;

/// Where predictions go that no flag says a place for. A pod cannot write where its program would by itself,
/// and what it writes to its own /tmp goes with it.
std::string outputs_of(command_line const& l, words& notes) {
  for (k8s::volume const& v : k8s::parse_volumes(l.text("volume"))) {
    if (v.read_only) continue;
    std::string const directory = fmt::format("{}{}predictions/{}", v.mount_path,
                                              v.mount_path.ends_with('/') ? "" : "/", l.text("job_name"));
    notes.push_back(fmt::format("--prediction_outputs is not given: predictions go to {}", directory));
    return directory;
  }
  throw usage_error(
      "--prediction_outputs is needed: a directory of a --volume, because a pod's own files go with it; no "
      "--volume is writable");
}

/// Settles the strategy and the numbers of pods; what the program's parser would make of them is not what a
/// cluster is asked for without them.
std::vector<std::string> model_line(std::string const& command, command_line const& l, words& notes) {
  std::string how = l.text("distribution_strategy");
  std::string workers = l.given("num_workers") ? l.text("num_workers") : "2";
  std::string servers = l.text("num_ps_pods");
  if (how.empty()) {
    how = servers == "0" ? "AllreduceStrategy" : "ParameterServerStrategy";
    if (servers == "0")
      notes.push_back(
          "--num_ps_pods=0: no servers, so the workers train with AllreduceStrategy; for servers give "
          "--num_ps_pods, or --distribution_strategy=ParameterServerStrategy for one");
  }
  if (how == "Local") {
    // One process that nobody watches would be lost with its pod.
    how = "AllreduceStrategy";
    workers = "1";
    servers = "0";
    notes.push_back(
        "--distribution_strategy=Local: in a cluster a job of one worker, which a master replaces when it is "
        "lost (AllreduceStrategy, --num_workers=1)");
  }
  words line{command, "--job_name=" + l.text("job_name"), "--distribution_strategy=" + how,
             "--num_workers=" + workers, "--num_ps_pods=" + servers};
  std::set<std::string> const own_flags{"job_name", "distribution_strategy", "num_workers", "num_ps_pods"};
  std::set<std::string> own;
  for (flag const& f : model_flags(command)) own.insert(f.name);
  for (gone_flag const& g : gone_flags()) own.erase(g.flag.name);
  for (auto const& [name, value] : l.in_order()) {
    if (own_flags.count(name) > 0 || own.count(name) == 0) continue;
    if (name == "checkpoint_steps" && value != "0" && l.text("checkpoint_dir").empty()) {
      notes.push_back(
          fmt::format("--checkpoint_steps={}: no checkpoints are written without --checkpoint_dir; give a "
                      "directory of a --volume",
                      value));
      continue;
    }
    line.push_back("--" + name + "=" + value);
  }
  if (command == "predict" && !l.given("prediction_outputs"))
    line.push_back("--prediction_outputs=" + outputs_of(l, notes));
  return line;
}

k8s::role_spec read_role(command_line const& l, std::string const& role) {
  std::string const request = role + "_resource_request", limit = role + "_resource_limit";
  k8s::role_spec r;
  r.request = k8s::parse_resources("--" + request, l.text(request));
  r.limit = l.text(limit).empty() ? r.request : k8s::parse_resources("--" + limit, l.text(limit));
  r.priority = l.text(role + "_pod_priority");
  return r;
}

std::string read_cluster_spec(command_line const& l) {
  std::string const &file = l.text("cluster_spec"), &text = l.text("cluster_spec_json");
  if (!file.empty() && !text.empty())
    throw usage_error("--cluster_spec and --cluster_spec_json exclude each other: leave one out");
  if (file.empty() && text.empty()) return {};
  if (file.ends_with(".py"))
    throw usage_error(
        fmt::format("--cluster_spec={}: edl does not run Python; write the changes as JSON or YAML "
                    "(pod_spec, worker_pod_spec, …)",
                    file));
  std::string const origin = file.empty() ? "--cluster_spec_json" : "--cluster_spec=" + file;
  json const v = from_yaml(file.empty() ? text : read_small_file("--cluster_spec", file), origin);
  if (!v.is_object()) throw usage_error(fmt::format("{}: expected an object with pod_spec, …", origin));
  return v.dump();
}

/// Where an image comes from that is made at submission.
void read_image(command_line const& l, submission& s, std::string const& stamp) {
  s.spec.image = l.text("image_name");
  bool const wanted = !l.text("docker_image_repository").empty() || !l.text("image_base").empty();
  if (!wanted) {
    if (l.given("model_zoo"))
      s.notes.push_back(
          "--model_zoo: the image holds the zoo's programs already, so nothing is read from there");
    if (s.spec.image.empty())
      throw usage_error(
          "--image_name is needed: the image that `edl zoo build` made; or --docker_image_repository, to "
          "build "
          "one from --model_zoo");
    return;
  }
  image_build b{.zoo = l.text("model_zoo"), .base = l.text("image_base")};
  if (b.zoo.empty()) {
    // Older command lines name the model's directory itself.
    std::string const& def = l.text("model_def");
    b.zoo = def.find('/') != std::string::npos ? std::filesystem::path(def).parent_path().string() : ".";
  }
  std::string repository = l.text("docker_image_repository");
  while (repository.ends_with('/')) repository.pop_back();
  b.push = !repository.empty();
  if (s.spec.image.empty())
    s.spec.image =
        fmt::format("{}{}{}:{}", repository, repository.empty() ? "" : "/", l.text("job_name"), stamp);
  s.build = std::move(b);
}

}  // namespace

std::string program_of(std::string const& model_def) {
  if (model_def.empty())
    throw usage_error(
        "--model_def is needed: the name of the program in the image (an image may hold several), or a "
        "dotted name "
        "such as mnist.mnist_functional_api.custom_model");
  std::string name = model_def;
  while (name.ends_with('/')) name.pop_back();
  bool const path = name.find('/') != std::string::npos;
  name = name.substr(name.rfind('/') + 1);
  bool const source = name.ends_with(".py") || name.ends_with(".cpp");
  if (source) name.resize(name.rfind('.'));
  if (!path && !source) {
    words const parts = split(name, '.');
    if (parts.size() > 1) name = parts[parts.size() - 2];
  }
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+") !=
          std::string::npos)
    throw usage_error(
        fmt::format("--model_def={}: expected the name of a program, or package.source.Symbol with the "
                    "source named like it",
                    model_def));
  return name;
}

bool relaunches(std::string const& aux_params) {
  bool yes = true;
  for (std::string const& pair : split(aux_params, ';')) {
    words const parts = split(pair, '=');
    if (parts.size() != 2 || parts[0] != "disable_relaunch")
      throw usage_error(fmt::format("--aux_params={}: expected disable_relaunch=True", aux_params));
    yes = !parse_truth("aux_params=disable_relaunch", parts[1]);
  }
  return yes;
}

submission read_submission(std::string const& command, words const& line, std::string const& stamp) {
  submission s{.line = read_with_file(command, submission_flags(command), line)};
  command_line const& l = s.line;
  auto const gone = gone_flags();
  for (auto const& [name, value] : l.in_order())
    for (gone_flag const& g : gone)
      if (g.flag.name == name) s.notes.push_back(fmt::format("--{}: does nothing: {}", name, g.why));
  if (l.text("job_name").empty() || !l.given("job_name"))
    throw usage_error("--job_name is needed: pods are named after it, and it is unique in its namespace");

  words const program = model_line(command, l, s.notes);
  auto const parsed = app::parse("edl", program).run.value();
  s.notes.insert(s.notes.end(), parsed.notes.begin(), parsed.notes.end());

  k8s::job_spec& j = s.spec;
  j.name = l.text("job_name");
  if (l.given("namespace")) j.space = l.text("namespace");
  read_image(l, s, stamp);
  j.worker_image = l.text("worker_image");
  j.command = {program_of(l.text("model_def"))};
  j.command.insert(j.command.end(), program.begin(), program.end());
  j.num_workers = std::uint32_t(parsed.job.processes.num_workers);
  j.num_servers = std::uint32_t(parsed.job.processes.num_ps_pods);
  for (std::string& word : j.command)  // as the program's parser settled them
    if (word.starts_with("--num_ps_pods="))
      word = fmt::format("--num_ps_pods={}", j.num_servers);
    else if (word.starts_with("--num_workers="))
      word = fmt::format("--num_workers={}", j.num_workers);
  if (parsed.job.strategy == strategy::allreduce)
    j.command.erase(std::ranges::find(j.command, "--num_ps_pods=0"));
  j.master = read_role(l, "master");
  j.server = read_role(l, "ps");
  j.worker = read_role(l, "worker");
  k8s::worker_priority(j.worker.priority, 0, std::max(1u, j.num_workers));
  j.image_pull_policy = l.text("image_pull_policy");
  j.restart_policy = l.text("restart_policy");
  j.image_pull_secrets = list_of("image_pull_secrets", l.text("image_pull_secrets"));
  j.service_account = l.text("service_account");
  j.volumes = k8s::parse_volumes(l.text("volume"));
  j.variables = k8s::parse_environment("--envs", l.text("envs"));
  j.populate_env_names = l.text("populate_env_names");
  j.cluster_spec = read_cluster_spec(l);
  j.relaunch = relaunches(l.text("aux_params"));
  j.grace_seconds = std::uint32_t(l.number("grace_seconds"));
  if (l.truth("detach") && (l.truth("wait") || l.truth("follow")))
    throw usage_error("--detach returns at once, --wait and --follow do not: leave one out");
  if (l.given("yaml") && l.given("dry_run"))
    throw usage_error("--yaml prints the objects, --dry_run checks them: leave one out");
  k8s::check(j);
  return s;
}

}  // namespace edl::tool
