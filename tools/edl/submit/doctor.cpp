// SPDX-License-Identifier: Apache-2.0
#include "submit/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "cluster/cluster.hpp"
#include "cluster/controller.hpp"
#include "cluster/rbac.hpp"
#include "cluster/training_jobs.hpp"
#include "common/table.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/core/error.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/quantity.hpp"
#include "submit/job_file.hpp"
#include "submit/submission.hpp"
#include "submit/submission_flags.hpp"
#include "zoo/engine.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
namespace k8s = kubernetes;

/// What was looked at: "ok", "fail", or "note" for what is not wrong in itself.
struct finding {
  std::string result, subject, detail, remedy{};
};

/// What is wrong with an image's name; empty: nothing.
std::string image_fault(std::string const& image) {
  auto const colon = image.find(':', image.rfind('/') == image.npos ? 0 : image.rfind('/'));
  auto const at = image.find('@');
  std::string const name = image.substr(0, std::min(colon, at));
  auto const slash = name.find('/');
  std::string const first = name.substr(0, slash == name.npos ? 0 : slash);
  bool const host = first.find_first_of(".:") != first.npos || first == "localhost";
  std::string const repository = host ? name.substr(slash + 1) : name;
  if (repository.empty() || repository.starts_with('/') || repository.ends_with('/'))
    return "names no repository";
  for (char const c : repository)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
          std::string_view("._-/").find(c) != std::string_view::npos))
      return c >= 'A' && c <= 'Z' ? "a repository has no capital letters"
                                  : fmt::format("'{}' does not belong there", c);
  if (colon != image.npos && colon < at) {
    std::string const tag = image.substr(colon + 1, at == image.npos ? at : at - colon - 1);
    if (tag.empty() || tag.size() > 128) return "a tag has 1 to 128 characters";
  }
  return "";
}

class examination {
 public:
  explicit examination(command_line const& l) : l_(l) {}

  std::vector<finding> const& run() {
    try {
      cluster_.emplace(l_);
    } catch (error const& bad) {
      add("fail", "cluster", bad.what());
      return all_;
    }
    if (!check_server()) return all_;
    check_user();
    check_permissions();
    check_master();
    check_training_jobs();
    check_nodes();
    check_priorities();
    check_volumes();
    check_image();
    check_quota();
    return all_;
  }

 private:
  // A client cannot be moved, and is made in its place.
  struct connection {
    explicit connection(command_line const& l) : to(connect(l)) {}
    cluster to;
  };

  void add(std::string result, std::string what, std::string detail, std::string remedy = "") {
    all_.push_back({std::move(result), std::move(what), std::move(detail), std::move(remedy)});
  }

  cluster& c() { return cluster_->to; }

  /// The answer; nothing, and a finding, when there is none. Who may not ask is told so as a note.
  std::optional<json> ask(std::string const& what, std::string const& path, k8s::query const& q = {}) {
    try {
      return c().api.get(path, q);
    } catch (k8s::api_error const& bad) {
      add(bad.code() == 403 ? "note" : "fail", what, bad.what());
    } catch (error const& bad) {
      add("fail", what, bad.what());
    }
    return std::nullopt;
  }

  bool check_server() {
    auto const version = ask("cluster", "/version");
    if (!version) return false;
    k8s::access const& via = c().api.via();
    add("ok", "cluster",
        fmt::format("{} at {} ({})", text_at(*version, "/gitVersion", "?"), via.server, via.origin));
    check_version();
    if (via.insecure)
      add("note", "certificate", "the server's certificate is not verified",
          "remove insecure-skip-tls-verify from the kubeconfig");
    return true;
  }

  void check_version() {
    auto const v = k8s::ask_version(c().api);
    auto const since = [](k8s::server_version const& first) {
      return fmt::format("Kubernetes {}.{}", first.major, first.minor);
    };
    if (v && *v < k8s::oldest_server)
      add("fail", "version",
          fmt::format("TrainingJobs need {} or later, with an API server that checks their rules",
                      since(k8s::oldest_server)),
          "`edl train` submits jobs that need no TrainingJob");
    else if (!k8s::knows_restart_rules(v))
      add("note", "version",
          fmt::format("before {} a master that is killed is not started again in its pod",
                      since(k8s::first_with_restart_rules)),
          "the controller makes another one for a TrainingJob; give --restart_policy=OnFailure to `edl "
          "train`");
  }

  void check_user() {
    try {
      json const me =
          c().api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews",
                         {{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}});
      add("ok", "user", text_at(me, "/status/userInfo/username", "?"));
    } catch (k8s::api_error const& bad) {
      if (bad.code() == 404)
        add("note", "user", "the server does not report your user name");
      else
        add(bad.code() == 401 ? "fail" : "note", "user", bad.what());
    }
  }

  /// Which of `wanted` the review at `path` does not allow.
  std::string denied(std::vector<permission> const& wanted, std::string const& path, std::string const& kind,
                     json const& who) {
    std::string text;
    for (permission const& p : wanted)
      for (std::string const& verb : p.verbs) {
        auto const slash = p.resource.find('/');
        json attributes{{"namespace", c().space},
                        {"verb", verb},
                        {"group", p.group},
                        {"resource", p.resource.substr(0, slash)}};
        if (slash != p.resource.npos) attributes["subresource"] = p.resource.substr(slash + 1);
        json spec = who;
        spec["resourceAttributes"] = attributes;
        json const answer = c().api.create(path, {{"apiVersion", "authorization.k8s.io/v1"},
                                                  {"kind", kind},
                                                  {"metadata", json::object()},
                                                  {"spec", spec}});
        if (text_at(answer, "/status/allowed") != "true")
          text += fmt::format("{}{} {}", text.empty() ? "" : ", ", verb, p.resource);
      }
    return text;
  }

  void check_permissions() try {
    auto const missing = denied(user_permissions(), "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                                "SelfSubjectAccessReview", json::object());
    if (missing.empty())
      add("ok", "permissions", fmt::format("you may submit and follow jobs in namespace {}", c().space));
    else
      add("fail", "permissions", fmt::format("in namespace {} you may not: {}", c().space, missing),
          fmt::format("let an administrator bind you to the role edl-user of `edl rbac --users{}`",
                      c().flags()));
  } catch (k8s::api_error const& bad) {
    add("note", "permissions", bad.what());
  }

  void check_master() {
    std::string account = l_.text("service_account");
    if (account.empty()) {
      auto const usual = default_account(c());
      account = usual.name;
      if (!usual.seen)
        add("note", "service account",
            fmt::format("you may not list those of namespace {}: masters would run as '{}'", c().space,
                        account),
            fmt::format("let an administrator bind you to the role edl-user of `edl rbac --users{}`, or give "
                        "--service_account",
                        c().flags()));
    }
    if (account != "default") try {  // which every namespace has
        c().api.get(c().path("serviceaccounts", account));
      } catch (k8s::api_error const& bad) {
        if (bad.code() == 404 && bad.message().find('"' + account + '"') != std::string::npos) {
          add("fail", "service account",
              fmt::format("no service account '{}' in namespace {}", account, c().space),
              fmt::format("`{}`",
                          shell_line({"kubectl", "create", "serviceaccount", account, "-n", c().space}) +
                              c().reach_of_kubectl()));
          return;
        }
      }
    try {
      auto const missing = denied(
          master_permissions(),
          fmt::format("/apis/authorization.k8s.io/v1/namespaces/{}/localsubjectaccessreviews", c().space),
          "LocalSubjectAccessReview",
          {{"user", fmt::format("system:serviceaccount:{}:{}", c().space, account)}});
      if (missing.empty())
        add("ok", "master", fmt::format("service account '{}' may run jobs", account));
      else
        add("fail", "master", fmt::format("service account '{}' may not: {}", account, missing),
            fmt::format("`{}`", shell_line({"edl", "rbac", "--apply", "-n", c().space, "--service_account",
                                            account}) +
                                    c().reach));
    } catch (k8s::api_error const& bad) {
      add("note", "master",
          fmt::format("the permissions of service account '{}' are not shown: {}", account, bad.what()),
          fmt::format("`edl rbac{}` prints the permissions that it needs", c().flags()));
    }
  }

  /// Jobs that share the cluster need the resource and its controller; others need neither.
  void check_training_jobs() try {
    if (!knows_training_jobs(c())) {
      add("note", "TrainingJobs",
          "the cluster does not know them; `edl submit` needs them, `edl train` does not",
          fmt::format("`edl controller install{}`", c().reach));
      return;
    }
    auto const missing =
        denied(training_job_permissions(), "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
               "SelfSubjectAccessReview", json::object());
    if (missing.empty())
      add("ok", "TrainingJobs", fmt::format("you may make them in namespace {}", c().space));
    else
      add("fail", "TrainingJobs", fmt::format("in namespace {} you may not: {}", c().space, missing),
          fmt::format("let an administrator apply `edl rbac --users{}` again", c().flags()));
    check_controller();
  } catch (k8s::api_error const& bad) {
    add("note", "TrainingJobs", bad.what());
  }

  void check_controller() {
    controller_place const at = place_of_controller();
    try {
      json const found =
          c().api.get(fmt::format("/apis/apps/v1/namespaces/{}/deployments/{}", at.space, at.name));
      std::string const ready = text_at(found, "/status/readyReplicas", "0"),
                        wanted = text_at(found, "/spec/replicas", "1");
      add(ready == "0" ? "fail" : "ok", "controller",
          fmt::format("{} of {} replicas of {}/{} are ready", ready, wanted, at.space, at.name),
          ready == "0"
              ? fmt::format("`kubectl describe pods -n {}{}` shows why", at.space, c().reach_of_kubectl())
              : "");
    } catch (k8s::api_error const& bad) {
      if (bad.code() == 404)
        add("fail", "controller", fmt::format("no Deployment {} in namespace {}", at.name, at.space),
            fmt::format("`edl controller install{}` makes it; TrainingJobs of another controller name it in "
                        "spec.managedBy",
                        c().reach));
      else
        add("note", "controller", bad.what());
      return;
    }
    try {
      json const lease = c().api.get(
          fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}", at.space, at.lease));
      std::string const holder = text_at(lease, "/spec/holderIdentity");
      add(holder.empty() ? "fail" : "ok", "controller",
          holder.empty() ? "none of its replicas leads"
                         : fmt::format("{} leads, and last renewed its lease at {}", holder,
                                       text_at(lease, "/spec/renewTime", "?")),
          holder.empty() ? fmt::format("`kubectl logs -n {} deployment/{}{}` shows why", at.space, at.name,
                                       c().reach_of_kubectl())
                         : "");
    } catch (k8s::api_error const& bad) {
      add(bad.code() == 404 ? "fail" : "note", "controller",
          bad.code() == 404 ? fmt::format("none of its replicas leads: no Lease {}", at.lease) : bad.what());
    }
  }

  void check_nodes() {
    auto const nodes = ask("nodes", "/api/v1/nodes");
    if (!nodes) return;
    int ready = 0, all = 0;
    double cores = 0, memory = 0, widest = 0, largest = 0;
    nodes_ = nodes->at("items");
    for (json const& node : nodes_) {
      ++all;
      bool is_ready = false;
      for (json const& condition : node.at("status").value("conditions", json::array()))
        is_ready |= condition.value("type", "") == "Ready" && condition.value("status", "") == "True";
      if (!is_ready || node.at("spec").value("unschedulable", false)) continue;
      ++ready;
      double const cpu = amount(text_at(node, "/status/allocatable/cpu", "0"));
      double const bytes = amount(text_at(node, "/status/allocatable/memory", "0"));
      cores += cpu, memory += bytes;
      widest = std::max(widest, cpu), largest = std::max(largest, bytes);
    }
    std::string const detail = fmt::format("{} of {} take pods; {:.3g} cores and {:.3g} GiB together", ready,
                                           all, cores, memory / (1 << 30));
    add(ready > 0 ? "ok" : "fail", "nodes", detail,
        ready > 0 ? "" : fmt::format("`kubectl describe nodes{}` shows why", c().reach_of_kubectl()));
    if (ready == 0) return;
    for (char const* role : {"master", "ps", "worker"}) {
      std::string const flag = std::string(role) + "_resource_request";
      auto const r = k8s::parse_resources("--" + flag, l_.text(flag));
      auto const exceeds = [&](char const* key, double most) {
        return r.count(key) > 0 && amount(r.at(key)) > most;
      };
      if (exceeds("cpu", widest) || exceeds("memory", largest))
        add("fail", flag, fmt::format("{}: no node has so much", l_.text(flag)),
            fmt::format("the largest have {:.3g} cores, {:.3g} GiB: ask for less", widest,
                        largest / (1 << 30)));
    }
  }

  /// In units, of what the API server writes; 0 for what is no amount.
  static double amount(std::string const& quantity) {
    try {
      return double(thousandths_of(quantity)) / 1000;
    } catch (error const&) {
      return 0;
    }
  }

  void check_priorities() {
    for (char const* role : {"master", "ps", "worker"}) {
      std::string const& text = l_.text(std::string(role) + "_pod_priority");
      if (text.empty()) continue;
      std::vector<std::string> classes{text};
      if (role == std::string("worker")) {
        classes = {k8s::worker_priority(text, 0, 2), k8s::worker_priority(text, 1, 2)};
        if (classes[0] == classes[1]) classes.pop_back();
      }
      for (std::string const& name : classes) check_priority(name);
    }
  }

  void check_priority(std::string const& name) try {
    json const found = c().api.get("/apis/scheduling.k8s.io/v1/priorityclasses/" + name);
    add("ok", "priority class", fmt::format("{} is {}", name, text_at(found, "/value", "0")));
  } catch (k8s::api_error const& bad) {
    if (bad.code() == 404)
      add("fail", "priority class", fmt::format("no class '{}'", name),
          name == "high" || name == "low"
              ? fmt::format("an administrator makes it: `kubectl apply -f k8s/priority-{}.yaml{}`", name,
                            c().reach_of_kubectl())
              : fmt::format("an administrator makes it: `{}{} --value=NUMBER`",
                            shell_line({"kubectl", "create", "priorityclass", name}),
                            c().reach_of_kubectl()));
    else
      add("note", "priority class", bad.what());
  }

  void check_volumes() {
    for (k8s::volume const& v : k8s::parse_volumes(l_.text("volume"))) {
      if (v.claim_name.empty()) {
        add("note", "volume",
            fmt::format("{} is a directory of each node: it must hold the same on all", v.host_path));
        continue;
      }
      try {
        json const claim = c().api.get(c().path("persistentvolumeclaims", v.claim_name));
        std::string const phase = text_at(claim, "/status/phase", "Pending");
        std::string const modes = claim.at("spec").value("accessModes", json::array()).dump();
        bool const is_bound = phase == "Bound";
        add(is_bound ? "ok" : "fail", "volume", fmt::format("claim '{}' is {}", v.claim_name, phase),
            is_bound
                ? ""
                : fmt::format("`{}` shows why", shell_line({"kubectl", "describe", "pvc", v.claim_name}) +
                                                    for_kubectl(c().flags())));
        if (modes.find("Many") == modes.npos)
          add("note", "volume",
              fmt::format("claim '{}' is {}: all pods of a job must be on one node", v.claim_name, modes),
              "claim it as ReadWriteMany");
      } catch (k8s::api_error const& bad) {
        add(bad.code() == 403 ? "note" : "fail", "volume", bad.what(),
            bad.code() == 404 ? "make the claim first" : "");
      }
    }
  }

  /// Where nodes get the image from. Whether it is there only they and the registry can tell.
  void check_reference(std::string const& image, std::string const& policy) {
    if (std::string const wrong = image_fault(image); !wrong.empty())
      return add("fail", "image", fmt::format("--image_name={}: {}", image, wrong),
                 "a name is REGISTRY/REPOSITORY:TAG, as `edl zoo push` takes it");
    if (std::string const node = node_with(image); !node.empty())
      return add("ok", "image", fmt::format("{} is on node {}", image, node));
    auto const slash = image.find('/');
    std::string const host = image.substr(0, slash == image.npos ? 0 : slash);
    bool const named = host.find_first_of(".:") != host.npos || host == "localhost";
    if (policy == "Never")
      add("note", "image", fmt::format("{} must be on each node already: --image_pull_policy=Never", image));
    else if (!named)
      add("note", "image",
          fmt::format("{} names no registry: nodes pull it from docker.io; edl did not check that it exists",
                      image),
          "give --image_pull_policy=Never where it is on the nodes, or name the registry");
    else
      add("note", "image",
          fmt::format("nodes pull {} from {}; edl did not check that it exists", image, host),
          fmt::format("`{} manifest inspect {}` checks", engine_name(), image));
  }

  /// The node that says it has the image; nodes tell of some of theirs only.
  std::string node_with(std::string const& image) const {
    for (json const& node : nodes_)
      for (json const& one : node.value("/status/images"_json_pointer, json::array()))
        for (json const& name : one.value("names", json::array()))
          if (std::string const known = name.is_string() ? name.get<std::string>() : "";
              known == image || known == "docker.io/library/" + image || known == "docker.io/" + image)
            return text_at(node, "/metadata/name");
    return "";
  }

  static std::string engine_name() {
    char const* const program = std::getenv("EDL_DOCKER");
    return program == nullptr ? "docker" : program;
  }

  void check_image() {
    std::string const &image = l_.text("image_name"), &policy = l_.text("image_pull_policy");
    if (!image.empty()) check_reference(image, policy);
    for (std::string const& name : list_of("image_pull_secrets", l_.text("image_pull_secrets")))
      if (ask("pull secret", c().path("secrets", name))) add("ok", "pull secret", name + " is there");
    try {
      container_engine(engine_name()).check();
      add("ok", "engine", "images can be built and pushed here");
    } catch (error const& bad) {
      add("note", "engine", bad.what(), "only `edl zoo build` and `push` need it");
    }
  }

  void check_quota() {
    auto const quotas = ask("quota", c().path("resourcequotas"));
    if (!quotas) return;
    for (json const& q : quotas->at("items")) {
      json const hard = q.at("status").value("hard", json::object());
      for (auto const& [what, most] : hard.items()) {
        std::string const used = q.at("status").value("used", json::object()).value(what, "0");
        bool const full = amount(used) >= amount(most.get<std::string>());
        add(full ? "fail" : "ok", "quota",
            fmt::format("{} of {} {} are used", used, most.get<std::string>(), what),
            full ? "delete objects that are not needed, or ask an administrator to raise it" : "");
      }
    }
  }

  command_line const& l_;
  std::optional<connection> cluster_;
  std::vector<finding> all_;
  json nodes_ = json::array();
};

}  // namespace

std::vector<flag> doctor_flags() {
  static words const some{"file",
                          "service_account",
                          "volume",
                          "image_name",
                          "image_pull_policy",
                          "image_pull_secrets",
                          "master_resource_request",
                          "ps_resource_request",
                          "worker_resource_request",
                          "master_pod_priority",
                          "ps_pod_priority",
                          "worker_pod_priority"};
  auto all = cluster_flags();
  for (flag const& f : job_flags())
    if (std::ranges::find(some, f.name) != some.end()) all.push_back(f);
  all.push_back(output_flag("output_format"));
  return all;
}

int doctor(words const& line) {
  // A job's file has flags of all kinds, and may be given as it is.
  auto known = submission_flags("train");
  known.push_back(doctor_flags().back());
  command_line const l = read_with_file("doctor", known, line);
  examination of(l);
  auto const& all = of.run();
  bool good = true;
  for (finding const& f : all) good &= f.result != "fail";
  if (l.text("output_format") != "table") {
    json list = json::array();
    for (finding const& f : all)
      list.push_back({{"result", f.result}, {"what", f.subject}, {"detail", f.detail}, {"remedy", f.remedy}});
    fmt::print("{}", to_text(list, l.text("output_format")));
  } else {
    for (finding const& f : all)
      fmt::print("{}\n", printable(fmt::format("{:<5} {:<16} {}{}{}", f.result, f.subject, f.detail,
                                               f.remedy.empty() ? "" : "; ", f.remedy)));
  }
  return good ? done : failed;
}

}  // namespace edl::tool
