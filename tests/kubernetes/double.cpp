// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/double.hpp"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "kubernetes/certificate.hpp"
#include "kubernetes/controllers.hpp"
#include "kubernetes/custom.hpp"
#include "kubernetes/front.hpp"
#include "kubernetes/garbage.hpp"
#include "kubernetes/kubelet.hpp"
#include "kubernetes/quantity.hpp"
#include "kubernetes/scheduler.hpp"
#include "kubernetes/types.hpp"

namespace edl::testing::kubernetes {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// A part of 127.0.0.0/8 that no other double on this machine has, for as long as the descriptor is open.
std::pair<int, int> claim_loopback() {
  for (int n = 1; n < 255; ++n) {
    int const s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;  // an abstract name: gone with the process, and private to a network namespace
    std::string const text = fmt::format("edl-kubernetes-double-127.{}", n);
    text.copy(name.sun_path + 1, sizeof name.sun_path - 1);
    if (::bind(s, reinterpret_cast<sockaddr*>(&name),
               socklen_t(offsetof(sockaddr_un, sun_path) + 1 + text.size())) == 0)
      return {n, s};
    ::close(s);
  }
  throw std::runtime_error("too many doubles of Kubernetes run on this machine");
}

json node_object(node const& n) {
  json room{{"cpu", n.cpu}, {"memory", n.memory}, {"pods", "110"}, {"ephemeral-storage", "1Ti"}};
  for (auto const& [name, amount] : n.more) room[name] = amount;
  json labels{
      {"kubernetes.io/hostname", n.name}, {"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", "amd64"}};
  for (auto const& [name, value] : n.labels) labels[name] = value;
  return {
      {"kind", "Node"},
      {"apiVersion", "v1"},
      {"metadata", {{"name", n.name}, {"labels", labels}}},
      {"spec", json::object()},
      {"status",
       {{"capacity", room},
        {"allocatable", room},
        {"conditions", {{{"type", "Ready"}, {"status", "True"}, {"reason", "KubeletReady"}}}},
        {"addresses",
         {{{"type", "InternalIP"}, {"address", "127.0.0.1"}}, {{"type", "Hostname"}, {"address", n.name}}}},
        {"nodeInfo",
         {{"kubeletVersion", "v1.36.0"}, {"operatingSystem", "linux"}, {"architecture", "amd64"}}}}}};
}

request parsed(std::string const& method, std::string const& path) {
  auto const mark = path.find('?');
  request r{method, path.substr(0, mark)};
  std::istringstream in(mark == path.npos ? "" : path.substr(mark + 1));
  for (std::string pair; std::getline(in, pair, '&');) {
    std::string value;
    auto const equals = pair.find('=');
    for (std::size_t i = equals == pair.npos ? pair.size() : equals + 1; i < pair.size(); ++i) {
      bool const escaped = pair[i] == '%' && i + 2 < pair.size();
      value += escaped ? char(std::stoi(pair.substr(i + 1, 2), nullptr, 16)) : pair[i];
      i += escaped ? 2 : 0;
    }
    r.query.emplace(pair.substr(0, equals), value);
  }
  return r;
}

}  // namespace

struct cluster::implementation {
  options with;
  bool temporary = false;
  std::pair<int, int> loopback = claim_loopback();
  int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  store all;
  api server;
  faults wrong;
  std::unique_ptr<front> door;
  std::unique_ptr<kubelet> nodes;
  definitions kinds;
  garbage_collector garbage;
  std::mutex door_mutex;
  std::mutex times_mutex;
  clock::time_point open_at = clock::time_point::max(), answer_at = clock::time_point::max();
  std::atomic<bool> close_now{false}, stopping{false};
  std::thread loop;

  explicit implementation(options o)
      : with(std::move(o)), all(with.history), server(all, with), kinds(all, with), garbage(all) {
    if (with.directory.empty()) {
      temporary = true;
      std::string name = (fs::temp_directory_path() / "kubernetes-double-XXXXXX").string();
      if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make a temporary directory");
      with.directory = name;
    }
    fs::create_directories(with.directory);
    with.directory = fs::canonical(with.directory);
    if (with.tls) make_certificates(with.directory, with.user);
    define_types(all);
    for (std::string const& n : with.namespaces)
      all.add(all.kind("namespaces"), {{"kind", "Namespace"},
                                       {"apiVersion", "v1"},
                                       {"metadata", {{"name", n}}},
                                       {"status", {{"phase", "Active"}}}});
    for (node const& n : with.nodes) all.add(all.kind("nodes"), node_object(n));
    door = std::make_unique<front>(
        all, server, with, wrong,
        front::sources{
            [this](log_request const& l) { return nodes->log_path(l.space, l.pod, l.container, l.previous); },
            [this](std::string const& path) { return nodes->writes(path); },
            [this](request const& r) { return control(r); }});
    door->open();
    write_file(with.directory + "/token", with.token);
    write_kubeconfigs(with.directory, url(), with.directory + "/token", with.namespaces.front());
    nodes = std::make_unique<kubelet>(all, with, url(), loopback.first);
    all.on_change = [this](type const& of) {
      if (of.plural != "events") ::eventfd_write(wake, 1);  // nothing follows from an event
    };
    loop = std::thread([this] { run(); });
  }

  ~implementation() {
    close();
    stopping = true;
    ::eventfd_write(wake, 1);
    loop.join();
    door.reset();
    nodes.reset();
    ::close(wake);
    ::close(loopback.second);
    std::error_code ignored;
    if (temporary) fs::remove_all(with.directory, ignored);
  }

  std::string url() const {
    return fmt::format("{}://127.0.0.1:{}", with.tls ? "https" : "http", door->port());
  }

  // The life of the cluster. Processes are started here: the kernel ties them to this thread.
  void run() {
    while (!stopping) {
      eventfd_t ignored;
      ::eventfd_read(wake, &ignored);
      auto const next_kind = kinds.pass();
      garbage.pass();
      keep_deployments(all);
      auto next = next_kind;
      if (with.run_pods) {
        schedule(all, with);
        next = std::min(next, nodes->pass());
      }
      keep_times(next);
      std::vector<pollfd> handles = nodes->handles();
      handles.push_back({wake, POLLIN, 0});
      auto const left =
          std::chrono::ceil<milliseconds>(std::min(next, clock::now() + milliseconds(1000)) - clock::now());
      ::poll(handles.data(), handles.size(), std::max(0, int(left.count())));
    }
    nodes.reset();  // kills what runs, on the thread that started it
  }

  void keep_times(clock::time_point& next) {
    if (close_now.exchange(false)) close();
    std::unique_lock held(times_mutex);
    if (clock::now() >= answer_at) answer_at = clock::time_point::max(), hang(false);
    bool const reopen = clock::now() >= open_at;
    if (reopen) open_at = clock::time_point::max();
    next = std::min({next, open_at, answer_at});
    held.unlock();
    if (reopen) open();
  }

  void open() {
    std::lock_guard const held(door_mutex);
    door->open();
  }

  void close() {
    std::lock_guard const held(door_mutex);
    door->close();
  }

  void hang(bool yes) {
    wrong.hanging = yes;
    all.wake();
  }

  void rotate(std::string const& token) {
    door->accept_token(token);
    write_file(with.directory + "/token", token);
    nodes->write_tokens(token);
    all.lock(), with.token = token;
  }

  void kill(std::string const& space, std::string const& pod, int signal) {
    for (pid_t p : nodes->processes(space, pod)) ::kill(p, signal);
  }

  // What goes wrong on a path; made when it is first asked for.
  void on_path(std::string const& path, std::function<void(faults::on_path&)> const& how) {
    std::lock_guard const held(wrong.mutex);
    auto it = std::ranges::find(wrong.paths, path, &faults::on_path::path);
    if (it == wrong.paths.end()) it = wrong.paths.insert(it, {path});
    how(*it);
  }

  void delay_path(std::string const& path, milliseconds each) {
    on_path(path, [&](faults::on_path& f) { f.delay = each; });
  }

  void fail_path(std::string const& path, int requests, int code, int retry_after) {
    on_path(path,
            [&](faults::on_path& f) { f.failures = requests, f.code = code, f.retry_after = retry_after; });
  }

  void fail_next(int requests, int code, int retry_after) {
    std::lock_guard const held(wrong.mutex);
    wrong.failures = requests, wrong.code = code, wrong.retry_after = retry_after;
  }

  // The same for scripts: POST /double/ORDER?NAME=VALUE.
  answer control(request const& r) {
    std::string const order = r.path.substr(8), pod = r.parameter("pod");
    std::string const space =
        r.parameter("namespace").empty() ? with.namespaces.front() : r.parameter("namespace");
    auto const number = [&](char const* name, int otherwise) {
      std::string const text = r.parameter(name);
      return text.empty() ? otherwise : std::stoi(text);
    };
    auto const at = clock::now() + milliseconds(number("ms", 0));
    std::lock_guard const held(times_mutex);
    if (order == "kill")
      kill(space, pod, number("signal", SIGKILL));
    else if (order == "out_of_memory")
      nodes->out_of_memory(space, pod);
    else if (order == "close")
      open_at = at, close_now = true;
    else if (order == "hang")
      hang(true), answer_at = at;
    else if (order == "delay" && !r.parameter("path").empty())
      delay_path(r.parameter("path"), milliseconds(number("ms", 0)));
    else if (order == "fail" && !r.parameter("path").empty())
      fail_path(r.parameter("path"), number("requests", 1), number("code", 503), number("retry_after", 0));
    else if (order == "events")
      wrong.events_late_ms = number("late_ms", 0), wrong.events_twice = r.is_set("twice");
    else if (order == "delay")
      wrong.delay_ms = number("ms", 0);
    else if (order == "fail")
      fail_next(number("requests", 1), number("code", 503), number("retry_after", 0));
    else if (order == "expire_watches")
      all.forget();
    else if (order == "end_watches")
      ++wrong.watch_generation, all.wake();
    else if (order == "forbid")
      server.forbid(r.parameter("verb").empty()
                        ? std::vector<rule>()
                        : std::vector<rule>{{r.parameter("verb"), r.parameter("resource")}});
    else if (order == "rotate_token")
      rotate(r.parameter("to"));
    else
      return {404, fmt::format("there is no order {}\n", order), "text/plain"};
    ::eventfd_write(wake, 1);
    return {200, "done\n", "text/plain"};
  }
};

cluster::cluster(options o) : self_(std::make_unique<implementation>(std::move(o))) {}
cluster::~cluster() = default;

std::string cluster::url() const { return self_->url(); }
std::uint16_t cluster::port() const { return self_->door->port(); }
std::string cluster::directory() const { return self_->with.directory; }
std::string cluster::ca_file() const { return self_->with.directory + "/ca.crt"; }
std::string cluster::kubeconfig() const { return self_->with.directory + "/kubeconfig"; }
std::string cluster::token() const {
  auto const held = self_->all.lock();
  return self_->with.token;
}

json cluster::call(std::string const& method, std::string const& path, json const& body,
                   std::string const& kind) {
  request r = parsed(method, path);
  if (!body.is_null()) r.body = body.dump();
  r.content_type = kind;
  r.user = self_->with.user;
  response const what = self_->server.handle(r);
  auto const* const a = std::get_if<answer>(&what);
  if (!a) throw std::invalid_argument(path + ": neither watches nor logs are answered here");
  return json::parse(a->body);
}

json cluster::get(std::string const& path) { return call("GET", path, nullptr); }
json cluster::post(std::string const& path, json const& body) { return call("POST", path, body); }
json cluster::remove(std::string const& path) { return call("DELETE", path, nullptr); }

bool cluster::wait(std::function<bool()> const& ready, milliseconds limit) {
  for (auto const end = clock::now() + limit; clock::now() < end;)  // files and processes tell of no change
    if (self_->all.wait(std::min(end, clock::now() + milliseconds(10)), ready)) return true;
  return ready();
}

std::vector<pid_t> cluster::processes(std::string const& space, std::string const& pod) const {
  return self_->nodes->processes(space, pod);
}

std::string cluster::log(std::string const& space, std::string const& pod,
                         std::string const& container) const {
  try {
    std::ifstream in(self_->nodes->log_path(space, pod, container, false), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  } catch (refusal const&) {
    return "";
  }
}

void cluster::kill(std::string const& space, std::string const& pod, int signal) {
  self_->kill(space, pod, signal);
}
void cluster::out_of_memory(std::string const& space, std::string const& pod) {
  self_->nodes->out_of_memory(space, pod);
}
void cluster::silence(std::string const& node, bool yes) {
  call("PATCH", "/api/v1/nodes/" + node + "/status",
       {{"status",
         {{"conditions",
           {{{"type", "Ready"},
             {"status", yes ? "Unknown" : "True"},
             {"reason", yes ? "NodeStatusUnknown" : "KubeletReady"}}}}}}});
  json taints = json::array();
  for (char const* effect : {"NoSchedule", "NoExecute"})
    if (yes) taints.push_back({{"key", "node.kubernetes.io/unreachable"}, {"effect", effect}});
  call("PATCH", "/api/v1/nodes/" + node, {{"spec", {{"taints", taints}}}});
}
std::string cluster::drain(std::string const& node, bool force) {
  call("PATCH", "/api/v1/nodes/" + node, {{"spec", {{"unschedulable", true}}}});
  std::vector<json> there;
  std::string alone;
  json const all = get("/api/v1/pods");
  for (json const& p : all.at("items")) {
    if (p["spec"].value("nodeName", "") != node) continue;
    json const owners = p["metadata"].value("ownerReferences", json::array());
    bool const controlled =
        std::ranges::any_of(owners, [](json const& o) { return o.value("controller", false); });
    std::string const space = p["metadata"]["namespace"], name = p["metadata"]["name"];
    if (!controlled && !is_over(p)) alone += (alone.empty() ? "" : ", ") + space + "/" + name;
    there.push_back(p);
  }
  if (!alone.empty() && !force)
    return fmt::format(
        "error: unable to drain node \"{}\" due to error: cannot delete cannot delete Pods that declare no "
        "controller (use --force to override): {}, continuing command...",
        node, alone);
  std::string held;
  for (json const& p : there) {
    std::string const space = p["metadata"]["namespace"], name = p["metadata"]["name"];
    json const answer = post(fmt::format("/api/v1/namespaces/{}/pods/{}/eviction", space, name),
                             {{"apiVersion", "policy/v1"},
                              {"kind", "Eviction"},
                              {"metadata", {{"name", name}, {"namespace", space}}}});
    if (answer.value("code", 0) == 429)
      held += fmt::format("error when evicting pods/\"{}\" -n \"{}\" (will retry after 5s): {}\n", name,
                          space, answer["message"].get<std::string>());
  }
  return held;
}

void cluster::close() { self_->close(); }
void cluster::open() { self_->open(); }
void cluster::hang(bool yes) { self_->hang(yes); }
void cluster::delay(milliseconds each) { self_->wrong.delay_ms = each.count(); }
void cluster::fail_next(int requests, int code, int retry_after) {
  self_->fail_next(requests, code, retry_after);
}
void cluster::delay_path(std::string const& path, milliseconds each) { self_->delay_path(path, each); }
void cluster::fail_path(std::string const& path, int requests, int code, int retry_after) {
  self_->fail_path(path, requests, code, retry_after);
}
void cluster::events_late(milliseconds each) { self_->wrong.events_late_ms = each.count(); }
void cluster::events_twice(bool yes) { self_->wrong.events_twice = yes; }
void cluster::expire_watches() { self_->all.forget(); }
void cluster::end_watches() {
  ++self_->wrong.watch_generation;
  self_->all.wake();
}
void cluster::forbid(std::vector<rule> rules) { self_->server.forbid(std::move(rules)); }
void cluster::rotate_token(std::string const& token) { self_->rotate(token); }
std::size_t cluster::watches() const { return self_->door->watches(); }

}  // namespace edl::testing::kubernetes
