// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/kubelet.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "kubernetes/api.hpp"
#include "kubernetes/certificate.hpp"
#include "kubernetes/container.hpp"
#include "kubernetes/events.hpp"
#include "kubernetes/front.hpp"
#include "kubernetes/quantity.hpp"

namespace edl::testing::kubernetes {
namespace {

bool has_ended(int handle) {
  pollfd p{handle, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

// As far as jobs need it: whether something listens where the probe asks. Other probes pass.
bool passes(json const& container, std::string const& ip) {
  json const probe = container.value("readinessProbe", json::object());
  json const at = probe.value("tcpSocket", probe.value("httpGet", json::object()));
  if (!at.contains("port")) return true;
  int port = at["port"].is_number() ? at["port"].get<int>() : 0;
  for (json const& p : container.value("ports", json::array()))
    if (p.value("name", json()) == at["port"]) port = p["containerPort"];
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(std::uint16_t(port));
  ::inet_pton(AF_INET, ip.c_str(), &to.sin_addr);
  // The API server's lock is held: where nobody takes connections, the kernel would try for two minutes.
  int const s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int code = ::connect(s, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
  pollfd p{s, POLLOUT, 0};
  socklen_t size = sizeof code;
  if (code == EINPROGRESS && ::poll(&p, 1, 20) == 1) ::getsockopt(s, SOL_SOCKET, SO_ERROR, &code, &size);
  ::close(s);
  return code == 0;
}

}  // namespace

kubelet::kubelet(store& s, options const& o, std::string url, int loopback)
    : store_(s), options_(o), url_(std::move(url)), token_(o.token), loopback_(loopback) {}

kubelet::~kubelet() {
  for (auto& [uid, p] : pods_)
    for (container& c : p.containers)
      if (c.process) kill_all(c.process, SIGKILL), ::waitpid(c.process, nullptr, 0), ::close(c.handle);
}

// Nothing of the pod runs, and nothing of it is due.
bool kubelet::waits(pod const& p) {
  auto const now = clock::now();
  return now < p.kill_at && std::ranges::all_of(
                                p.containers,
                                [&](container const& c) {
                                  return !c.process && now < c.again &&
                                         c.report_at == clock::time_point::max();
                                });
}

clock::time_point kubelet::pass() {
  type const& pods = store_.kind("pods");
  std::set<std::string> silent;
  for (object const& n : store_.list(store_.kind("nodes")))
    for (json const& c : (*n)["status"]["conditions"])
      if (c["type"] == "Ready" && c["status"] == "Unknown") silent.insert((*n)["metadata"]["name"]);
  for (object const& o : store_.list(pods)) {
    auto const held = store_.lock();
    if ((*o)["spec"].contains("nodeName") && !silent.contains((*o)["spec"]["nodeName"]) &&
        !pods_.contains((*o)["metadata"]["uid"]) && !is_over(*o) &&
        store_.find(pods, (*o)["metadata"]["namespace"], (*o)["metadata"]["name"]) == o)
      adopt(*o);
  }
  auto next = clock::time_point::max();
  std::vector<std::string> uids;
  for (auto const& [uid, p] : pods_) uids.push_back(uid);
  for (std::string const& uid : uids) {
    auto const held = store_.lock();
    pod& p = pods_.at(uid);
    if ((p.silent = silent.contains(p.node))) continue;
    object const o = store_.find(pods, p.space, p.name);
    bool const gone = !o || (*o)["metadata"]["uid"] != uid;
    if (gone)
      for (container& c : p.containers) kill_all(c.process, SIGKILL);
    if (!gone && o == p.seen && waits(p)) {
      for (container const& c : p.containers) next = std::min(next, c.again);
      next = std::min(next, p.kill_at);
      continue;
    }
    json const last = gone ? json{{"metadata", {{"uid", uid}, {"deletionTimestamp", ""}}}} : json();
    for (container& c : p.containers)
      if (c.process && has_ended(c.handle)) {
        if (c.report_at == clock::time_point::max()) c.report_at = clock::now() + options_.report_delay;
        if (gone || clock::now() >= c.report_at) reap(p, c, gone ? last : *o);
      }
    if (!gone) advance(p, *o);
    if (gone && std::ranges::none_of(p.containers, [](container const& c) { return c.process != 0; })) {
      pods_.erase(uid);
      continue;
    }
    if (!gone) p.seen = store_.find(pods, p.space, p.name);
    next = std::min(next, p.kill_at);
    for (container const& c : p.containers) {
      next = std::min({next, c.again, c.report_at});
      if (c.runs() && !c.ready) next = std::min(next, clock::now() + std::chrono::milliseconds(20));
    }
  }
  return next;
}

void kubelet::adopt(json const& o) {
  json const& meta = o["metadata"];
  pod p{meta["namespace"], meta["name"], meta["uid"], "", "", ""};
  p.node = o["spec"]["nodeName"];
  p.account = o["spec"].value("serviceAccountName", "default");
  p.directory = fmt::format("{}/pods/{}", options_.directory, p.uid);
  for (json const& c : o["spec"]["containers"]) {
    p.containers.emplace_back();
    p.containers.back().spec = c;
    p.containers.back().again = clock::now() + options_.image_start;
  }
  write_account(p, token_);
  publish(pods_[p.uid] = std::move(p));
}

void kubelet::advance(pod& p, json const& o) {
  if (p.over) return;
  json const& meta = o["metadata"];
  if (meta.contains("deletionTimestamp")) {
    if (std::int64_t const grace = meta["deletionGracePeriodSeconds"]; p.grace < 0 || grace < p.grace) {
      bool const first = std::exchange(p.grace, grace) < 0;
      p.kill_at = clock::now() + grace * options_.second;
      if (first) begin_deletion(p, o);
    }
    if (clock::now() >= p.kill_at) {
      for (container const& c : p.containers) kill_all(c.process, SIGKILL);
      p.kill_at = clock::time_point::max();
    }
  } else {
    for (container& c : p.containers)
      if (clock::now() >= c.again) {
        if (!p.sandbox) {
          std::string const ip = new_address(p);
          if (ip.empty()) {
            c.again = clock::now() + std::chrono::milliseconds(20);
            continue;
          }
          p.sandbox = true;
          publish(p);
          p.ip = ip;
        }
        start(p, c, o);
      }
    for (container& c : p.containers)
      if (c.runs() && !c.ready) c.ready = passes(c.spec, p.ip);
    publish(p);
  }
  if (!p.over && std::ranges::all_of(p.containers, [](container const& c) { return c.done; })) finish(p, o);
}

void kubelet::begin_deletion(pod& p, json const& o) {
  bool runs = false;
  for (container& c : p.containers) {
    c.again = clock::time_point::max();
    runs |= c.process != 0;
    if (!c.process && !c.done) c.state = json{{"waiting", {{"reason", "ContainerCreating"}}}};
  }
  publish(p);
  for (container& c : p.containers) {
    if (c.process) {
      tell_event(store_, o, "kubelet", "Normal", "Killing",
                 fmt::format("Stopping container {}", c.spec["name"].get<std::string>()));
      ask_to_end(c.process);
    } else if (!c.done) {
      if (!runs) p.sandbox = false, publish(p);
      c.state = json{{"terminated",
                      {{"exitCode", 137},
                       {"reason", "ContainerStatusUnknown"},
                       {"message", "The container could not be located when the pod was terminated"},
                       {"startedAt", nullptr},
                       {"finishedAt", nullptr}}}};
      c.done = true;
    }
  }
}

void kubelet::start(pod& p, container& c, json const& o) {
  std::string const name = c.spec["name"], image = c.spec["image"];
  auto const tell = [&](char const* kind, std::string const& reason, std::string const& message) {
    tell_event(store_, o, "kubelet", kind, reason, message);
  };
  c.again = clock::time_point::max();
  try {
    command run =
        prepare({store_, options_, o, p.ip, p.directory,
                 [this](auto const& space, auto const& selector) { return address(space, selector); }},
                c.spec);
    tell("Normal", "Pulled", fmt::format("Container image \"{}\" already present on machine", image));
    if (c.state.contains("terminated")) c.last = c.state;
    if (!c.id.empty()) ++c.restarts;
    run.log = c.log = fmt::format("{}/{}.{}.log", p.directory, name, c.restarts);
    if (c.process = spawn(run, guard_); !c.process)
      throw cannot{"waiting", "RunContainerError", "no more processes"};
    c.handle = int(::syscall(SYS_pidfd_open, c.process, 0));
    c.id = fmt::format("containerd://{}{:032x}", p.uid.substr(0, 8), std::uint64_t(c.process));
    c.ready = c.killed_for_memory = false;
    c.state = json{{"running", {{"startedAt", timestamp()}}}};
    tell("Normal", "Created", fmt::format("Created container: {}", name));
    tell("Normal", "Started", fmt::format("Started container {}", name));
  } catch (cannot const& why) {
    std::string reason = why.reason, message = why.message;
    if (why.state == "terminated") {
      end(c, 128, reason, message);
      decide(c, o);
      tell("Warning", "Failed", "Error: " + message);
      return;
    }
    if (reason == "ErrImagePull") {
      tell("Warning", "Failed", fmt::format("Failed to pull image \"{}\": {}", image, message));
      bool const again = c.state.value("waiting", json::object()).value("reason", "") != "ContainerCreating";
      if (again) {
        reason = "ImagePullBackOff";
        tell("Normal", "BackOff", fmt::format("Back-off pulling image \"{}\"", image));
        message = fmt::format("Back-off pulling image \"{}\": ErrImagePull: {}", image, message);
      }
      c.again = clock::now() + (again ? 10 : 1) * options_.second;
    } else if (reason == "ErrImageNeverPull") {
      tell("Warning", reason, message);
    } else {
      c.again = clock::now() + options_.second / 4;  // until what it refers to is there
    }
    tell("Warning", "Failed", "Error: " + (reason == "CreateContainerConfigError" ? message : reason));
    c.state = json{{"waiting", {{"reason", reason}, {"message", message}}}};
  }
}

void kubelet::end(container& c, int code, std::string const& reason, std::string const& message) {
  json const began = c.state.value("running", json::object()).value("startedAt", timestamp());
  json ended{{"exitCode", code}, {"reason", reason}, {"startedAt", began}, {"finishedAt", timestamp()}};
  if (c.id.empty()) c.id = fmt::format("containerd://{:064x}", std::hash<std::string>{}(message));
  ended["containerID"] = c.id;
  if (!message.empty()) ended["message"] = message;
  c.state = json{{"terminated", ended}};
  c.ready = false;
}

void kubelet::reap(pod& p, container& c, json const& o) {
  c.report_at = clock::time_point::max();
  kill_all(c.process, SIGKILL);  // what it has started ends with it
  int status = 0;
  ::waitpid(c.process, &status, 0);
  ::close(std::exchange(c.handle, -1));
  guard_.forget(std::exchange(c.process, 0));
  int const code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  end(c, c.killed_for_memory ? 137 : code, c.killed_for_memory ? "OOMKilled" : code ? "Error" : "Completed");
  decide(c, o);
  if (!c.done) publish(p);
}

// Whether it runs again, and when: the first time at once, then after growing pauses.
void kubelet::decide(container& c, json const& o) {
  int const code = c.state["terminated"]["exitCode"];
  std::string policy;
  for (json const& rule : c.spec.value("restartPolicyRules", json::array())) {
    json const codes = rule.value("exitCodes", json::object()).value("values", json::array());
    bool const among = std::ranges::find(codes, json(code)) != codes.end();
    if (policy.empty() && among == (rule["exitCodes"].value("operator", "In") == "In")) policy = "Always";
  }
  if (policy.empty()) policy = c.spec.value("restartPolicy", "");
  if (policy.empty()) policy = o.value("spec", json::object()).value("restartPolicy", "Never");
  c.done = o["metadata"].contains("deletionTimestamp") || policy == "Never" ||
           (policy == "OnFailure" && code == 0);
  if (c.done) return;
  auto const pause = c.restarts == 0 ? 0 : std::min(300, 10 << std::min(c.restarts - 1, 5));
  c.again = clock::now() + pause * options_.second;
  if (pause == 0) return;
  std::string const name = c.spec["name"];
  c.last = c.state;
  json const& meta = o["metadata"];
  std::string const whose = fmt::format("{} in pod {}_{}({})", name, meta["name"].get<std::string>(),
                                        meta["namespace"].get<std::string>(), meta["uid"].get<std::string>());
  c.state = json{{"waiting",
                  {{"reason", "CrashLoopBackOff"},
                   {"message", fmt::format("back-off {}s restarting failed container={}", pause, whose)}}}};
  tell_event(store_, o, "kubelet", "Warning", "BackOff", "Back-off restarting failed container " + whose);
}

void kubelet::finish(pod& p, json const& o) {
  bool const failed = std::ranges::any_of(
      p.containers, [](container const& c) { return c.state["terminated"]["exitCode"] != 0; });
  if (p.grace < 0) publish(p, "Running");
  p.over = true;
  p.sandbox = false;
  publish(p, failed ? "Failed" : "Succeeded");
  if (p.grace >= 0) api::remove_pod(store_, o, 0);
}

void kubelet::publish(pod const& p, std::string const& phase) {
  std::vector<container_facts const*> facts(p.containers.size());
  std::ranges::transform(p.containers, facts.begin(), [](container const& c) { return &c; });
  store_.change_by(store_.kind("pods"), p.space, p.name, [&](json& o) {
    if (o["metadata"]["uid"] == p.uid) o["status"] = pod_status(o, facts, p.sandbox, p.ip, phase);
  });
}

std::string kubelet::address(std::string const& space, json const& selector) const {
  if (selector.empty()) return "";
  for (auto const& [uid, p] : pods_) {
    object const o = store_.find(store_.kind("pods"), space, p.name);
    if (o && p.space == space && !p.over && !p.ip.empty() && (*o)["metadata"]["uid"] == uid &&
        has_labels((*o)["metadata"].value("labels", json::object()), selector))
      return p.ip;
  }
  return "";
}

// No name is resolved here but when a process starts. So that others find the successor of a pod behind a
// service, it has the address of the one before. Nothing: that one's processes still have it.
std::string kubelet::new_address(pod const& p) {
  std::string& last = addresses_[{p.space, p.name}];
  auto const runs = [](container const& c) { return c.process != 0; };
  for (auto const& [uid, other] : pods_)
    if (other.ip == last && std::ranges::any_of(other.containers, runs)) return {};
  if (!last.empty()) return last;
  int const n = next_address_++;
  return last = fmt::format("127.{}.{}.{}", loopback_, n / 250 % 250, n % 250 + 1);
}

kubelet::pod const* kubelet::find(std::string const& space, std::string const& name) const {
  object const o = store_.find(store_.kind("pods"), space, name);
  auto const it = o ? pods_.find((*o)["metadata"]["uid"]) : pods_.end();
  return it == pods_.end() ? nullptr : &it->second;
}

std::vector<pollfd> kubelet::handles() const {
  auto const held = store_.lock();
  std::vector<pollfd> out;
  for (auto const& [uid, p] : pods_)
    for (container const& c : p.containers)
      if (c.process && !p.silent && c.report_at == clock::time_point::max())
        out.push_back({c.handle, POLLIN, 0});
  return out;
}

std::vector<pid_t> kubelet::processes(std::string const& space, std::string const& name) const {
  auto const held = store_.lock();
  std::vector<pid_t> out;
  if (pod const* p = find(space, name))
    for (container const& c : p->containers)
      if (c.process) out.push_back(c.process);
  return out;
}

void kubelet::out_of_memory(std::string const& space, std::string const& name) {
  auto const held = store_.lock();
  pod const* const p = find(space, name);
  if (!p) return;
  for (container& c : pods_.at(p->uid).containers)
    if (c.process) c.killed_for_memory = true, kill_all(c.process, SIGKILL);
}

void kubelet::write_account(pod const& p, std::string const& token) const {
  std::string const at = p.directory + "/serviceaccount";
  std::filesystem::create_directories(at);
  write_file(at + "/token.new", fmt::format("{}{}{}:{}", token, account_mark, p.space, p.account));
  std::filesystem::rename(at + "/token.new", at + "/token");  // as a whole: someone may be reading it
  write_file(at + "/namespace", p.space);
  if (options_.tls)
    std::filesystem::copy_file(options_.directory + "/ca.crt", at + "/ca.crt",
                               std::filesystem::copy_options::overwrite_existing);
  write_kubeconfigs(at, url_, at + "/token", p.space);
}

void kubelet::write_tokens(std::string const& token) {
  auto const held = store_.lock();
  token_ = token;
  for (auto const& [uid, p] : pods_) write_account(p, token);
}

std::string kubelet::log_path(std::string const& space, std::string const& name, std::string container,
                              bool previous) const {
  auto const held = store_.lock();
  type const& pods = store_.kind("pods");
  object const o = store_.find(pods, space, name);
  if (!o) throw not_found(pods, name);
  json const& specs = (*o)["spec"]["containers"];
  if (container.empty() && specs.size() > 1)
    throw bad_request(fmt::format("a container name must be specified for pod {}", name));
  if (container.empty()) container = specs[0]["name"];
  pod const* const p = find(space, name);
  if (!p) throw bad_request(fmt::format("pod {} does not have a host assigned", name));
  for (auto const& c : p->containers) {
    if (c.spec["name"] != container) continue;
    if (previous && c.restarts == 0)
      throw bad_request(
          fmt::format("previous terminated container \"{}\" in pod \"{}\" not found", container, name));
    if (previous) return fmt::format("{}/{}.{}.log", p->directory, container, c.restarts - 1);
    if (!c.log.empty()) return c.log;
    std::string const why = c.state.value("waiting", json::object()).value("reason", "");
    throw bad_request(fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}", container, name,
                                  why == "ErrImagePull"       ? "image can't be pulled"
                                  : why == "ImagePullBackOff" ? "trying and failing to pull image"
                                                              : why));
  }
  throw bad_request(fmt::format("container {} is not valid for pod {}", container, name));
}

bool kubelet::writes(std::string const& path) const {
  auto const held = store_.lock();
  for (auto const& [uid, p] : pods_)
    for (container const& c : p.containers)
      if (c.log == path && c.process) return true;
  return false;
}

}  // namespace edl::testing::kubernetes
