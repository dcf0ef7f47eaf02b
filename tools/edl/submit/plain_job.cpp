// SPDX-License-Identifier: Apache-2.0
#include "submit/plain_job.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cluster/change.hpp"
#include "cluster/cluster.hpp"
#include "cluster/explain.hpp"
#include "cluster/logs.hpp"
#include "cluster/pods.hpp"
#include "cluster/training_jobs.hpp"
#include "common/advice.hpp"
#include "common/text_file.hpp"
#include "common/yaml.hpp"
#include "edl/base/net/security/token.hpp"
#include "edl/cluster/kubernetes/annotations.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/core/clock.hpp"
#include "edl/core/error.hpp"
#include "submit/submission.hpp"
#include "zoo/zoo.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;
namespace k8s = kubernetes;

}  // namespace

std::string stamp() {
  std::time_t const now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[20];
  std::strftime(text, sizeof text, "%Y%m%d%H%M%S", &utc);
  return text;
}

void mark(json& object, std::map<std::string, std::string> const& labels,
          std::map<std::string, std::string> const& annotations) {
  for (auto const& [name, value] : labels) object["metadata"]["labels"][name] = value;
  for (auto const& [name, value] : annotations) object["metadata"]["annotations"][name] = value;
}

void build_image(submission const& s) {
  auto const step = [](words const& line) {
    if (zoo(line) != 0) throw error(fmt::format("edl zoo {} failed; see above", line[0]));
  };
  if (std::string const& engine = s.line.text("docker_base_url"); !engine.empty())
    ::setenv("DOCKER_HOST", engine.c_str(), 1);
  if (!s.build->base.empty() || !std::filesystem::exists("Dockerfile")) {
    words line{"init", "--model_zoo=" + s.build->zoo};
    if (!s.build->base.empty()) line.push_back("--base_image=" + s.build->base);
    step(line);
  }
  step({"build", "--image=" + s.spec.image, "."});
  if (s.build->push) step({"push", s.spec.image});
}

namespace {

void write_objects(command_line const& l, k8s::job_spec const& spec) {
  std::string const flags =
      (l.text("namespace").empty() ? "" : " " + shell_line({"-n", spec.space})) + reach_of(l);
  std::string text = fmt::format(
      "# Job {0}; `kubectl apply -f` makes it, `edl delete {0}{1}` removes all of it.\n", spec.name, flags);
  for (json const& object : objects_of(spec, net::token::random().secret()))
    text += "---\n" + to_yaml(object);
  write_output("--yaml", l.text("yaml"), text, true);  // there is a secret in it
}

/// What was made until now, in order; removed again unless all of it is there.
class made {
 public:
  /// `timeout`: for names that an older job is about to give up.
  made(k8s::client& api, k8s::job_spec const& spec, submission_options const& with)
      : api_(api), spec_(spec), with_(with), until_(clock::now() + with.timeout) {}
  made(made const&) = delete;
  ~made() {
    for (auto it = paths_.rbegin(); it != paths_.rend(); ++it) try {
        api_.remove(*it, json{{"kind", "DeleteOptions"}, {"apiVersion", "v1"}});
      } catch (error const&) {
        // The first failure is what the user hears of; `edl delete` removes what is left.
      }
  }
  json add(json object) {
    std::string const kind = object.at("kind");
    std::string const path = fmt::format("/api/v1/namespaces/{}/{}", spec_.space,
                                         kind == "Pod"       ? "pods"
                                         : kind == "Service" ? "services"
                                                             : "secrets");
    std::string const own = path + "/" + object.at("metadata").at("name").get<std::string>();
    object["metadata"]["annotations"][k8s::annotation::submission] = id_;
    mark(object, with_.labels, with_.annotations);
    json answer;
    for (;;) try {
        answer = api_.create(path, object, with_.try_only ? k8s::query{{"dryRun", "All"}} : k8s::query{});
        break;
      } catch (k8s::api_error const& bad) {
        if (bad.reason() != "AlreadyExists") throw;
        if (find_own(own, answer)) break;
        if (!await_removal()) throw;
      }
    if (!with_.try_only) paths_.push_back(own);
    return answer;
  }
  words const& paths() const { return paths_; }
  void keep() { paths_.clear(); }

 private:
  /// Whether it is this submission's: made by a request whose answer was lost.
  bool find_own(std::string const& path, json& into) {
    try {
      into = api_.get(path);
    } catch (k8s::api_error const&) {
      return false;  // it may not be looked at
    }
    return text_at(into, "/metadata/annotations/elasticdl~1submission") == id_;
  }

  /// Waits a moment where the job that has the name is being removed: its master's pod ends, or is gone and
  /// what it owned follows. False: it stays, or it has taken too long.
  bool await_removal() {
    auto const now = clock::now();
    bool gone = false;
    try {
      json const pod = api_.get(fmt::format("/api/v1/namespaces/{}/pods/{}", spec_.space,
                                            k8s::pod_name(spec_.name, {role::master, 0})));
      if (text_at(pod, "/metadata/deletionTimestamp").empty()) return false;
    } catch (k8s::api_error const& bad) {
      if (bad.code() != 404) return false;
      gone = true;
    }
    if (gone && !gone_since_) gone_since_ = now;
    if (now >= until_ || (gone_since_ && now - *gone_since_ > garbage_timeout)) return false;
    if (!std::exchange(announced_, true))
      with_.note(fmt::format("job '{}' is being removed: waiting until its name is free", spec_.name));
    std::this_thread::sleep_for(250ms);
    return true;
  }

  static constexpr std::chrono::seconds garbage_timeout{20};
  k8s::client& api_;
  k8s::job_spec const& spec_;
  submission_options const& with_;
  time_point until_;
  std::optional<time_point> gone_since_;
  bool announced_ = false;
  std::string id_ = net::token::random().secret().substr(0, 16);
  words paths_;
};

[[noreturn]] void rethrow(k8s::api_error const& bad, k8s::job_spec const& spec, std::string const& reach) {
  if (bad.message().find("error looking up service account") != std::string::npos)
    throw k8s::api_error(
        bad.code(), bad.reason(), bad.message(),
        fmt::format("{}; `edl rbac --apply -n {}{}` makes the account 'edl', and --service_account names "
                    "another",
                    bad.what(), spec.space, reach));
  if (bad.reason() != "AlreadyExists") throw bad;
  throw k8s::api_error(bad.code(), bad.reason(), bad.message(),
                       fmt::format("job '{0}' already exists in namespace '{1}' ({2}): `edl delete {0} -n "
                                   "{1}{3}` removes it, or give another --job_name",
                                   spec.name, spec.space, bad.message(), reach));
}

/// Waits for the master's container to run.
void await_start(cluster& c, submission const& s) {
  auto const until = clock::now() + std::chrono::seconds(s.line.number("start_timeout"));
  std::string const& job = s.spec.name;
  std::string shown;
  bool announced = false;
  for (auto pause = 100ms;; pause = std::min(pause * 2, 1000ms)) {
    json pod;
    if (!answered([&] { pod = master_of(c, job); }, until, announced)) continue;
    pod_state const state = state_of(pod);
    if (state.phase == "Running" || state.phase == "Succeeded") return;
    std::string const why =
        state.hinders ? in_words(state.hinders->reason, state.hinders->message, c.named(job)) : "";
    if (state.phase == "Failed")
      throw error(fmt::format("the master of job '{}' ended at once: {}; `edl logs {}` shows its log", job,
                              last_words(c, pod), c.named(job)));
    if (state.hinders && state.hinders->hopeless) {
      delete_job(c, job);
      throw error(fmt::format("job '{}' cannot start, and was removed: {}", job, why));
    }
    if (!why.empty() && why != shown) fmt::print(stderr, "edl: the master waits: {}\n", shown = why);
    if (clock::now() >= until)
      throw error(fmt::format(
          "the master of job '{0}' still waits: {1}; the job stays and starts when it can: "
          "`edl explain {2}`, `edl delete {2}`",
          job, why.empty() ? waits_for(pod, events_of(c, job, json::array({pod})).list, c.named(job)) : why,
          c.named(job)));
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

json objects_of(k8s::job_spec const& spec, std::string const& token, bool restart_rules) {
  return json::array(
      {k8s::token_secret(spec, token), k8s::master_service(spec), k8s::master_pod(spec, restart_rules)});
}

json create_job(k8s::client& api, k8s::job_spec const& spec, std::string const& token,
                submission_options const& with) {
  made all(api, spec, with);
  json master;
  std::string const no_rules = fmt::format(
      "the API server does not know rules for restarting a container (Kubernetes {}.{}): a master that is "
      "killed "
      "is replaced only with --restart_policy=OnFailure",
      k8s::first_with_restart_rules.major, k8s::first_with_restart_rules.minor);
  try {
    bool const rules = k8s::knows_restart_rules(k8s::ask_version(api));
    if (!rules && spec.restart_policy == "Never") with.note(no_rules);
    json const objects = objects_of(spec, token, rules);
    for (json const& object : objects)
      if (object != objects.back()) all.add(object);
    try {
      master = all.add(objects.back());
    } catch (k8s::api_error const& bad) {
      if (!rules || !k8s::refuses_restart_rules(bad)) throw;
      with.note(no_rules);
      master = all.add(k8s::master_pod(spec, false));
    }
  } catch (k8s::api_error const& bad) {
    rethrow(bad, spec, with.reach);
  }
  if (with.try_only) return master;
  k8s::owner const master_owner{.name = text_at(master, "/metadata/name"),
                                .uid = text_at(master, "/metadata/uid")};
  words const paths = all.paths();
  for (std::size_t i = 0; i + 1 < paths.size(); ++i) api.patch(paths[i], k8s::owned_by(master_owner));
  all.keep();
  return master;
}

int submit_plain(submission s) {
  for (std::string const& text : s.notes) note(text);
  if (s.line.given("yaml") && !s.line.text("yaml").empty()) {
    s.spec.space = namespace_of(s.line);
    write_objects(s.line, s.spec);
    return done;
  }
  if (s.line.text("dry_run") == "client") {
    fmt::print("job {}: nothing is wrong; nothing was submitted\n", s.spec.name);
    return done;
  }
  cluster c = connect(s.line);
  s.spec.space = c.space;
  if (s.spec.service_account.empty()) s.spec.service_account = usual_account(c);
  if (s.line.text("dry_run") == "server") {
    create_job(c.api, s.spec, net::token::random().secret(),
               {.note = note, .try_only = true, .reach = c.reach});
    fmt::print("job {}: the API server takes its objects; nothing was submitted\n", s.spec.name);
    return done;
  }
  if (find_training_job(c, s.spec.name))
    throw k8s::api_error(409, "AlreadyExists", "",
                         fmt::format("TrainingJob '{0}' already exists in namespace '{1}': `edl delete {0} "
                                     "-n {1}{2}` removes it, or give another --job_name",
                                     s.spec.name, c.space, c.reach));
  if (s.build) build_image(s);
  create_job(
      c.api, s.spec, net::token::random().secret(),
      {.note = note, .timeout = std::chrono::seconds(s.line.number("start_timeout")), .reach = c.reach});
  fmt::print("job {} is submitted to namespace {}\n", s.spec.name, s.spec.space);
  std::fflush(stdout);
  if (s.line.truth("detach")) return done;
  await_start(c, s);
  if (s.line.truth("follow")) {
    follow_logs(c, s.spec.name, {});
    return end_of(c, s.spec.name);
  }
  if (s.line.truth("wait")) return end_of(c, s.spec.name);
  fmt::print("its master runs; follow it with `edl logs {0} -f`, stop it with `edl delete {0}`\n",
             c.named(s.spec.name));
  return done;
}

}  // namespace edl::tool
