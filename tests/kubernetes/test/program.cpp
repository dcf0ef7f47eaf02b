// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <httplib.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "kubernetes/test/support.hpp"

// The double as a program, and kubectl pointed at it.
namespace edl::testing::kubernetes {
namespace {

namespace fs = std::filesystem;

class program {
 public:
  explicit program(std::vector<std::string> more = {}) {
    std::string name = (fs::temp_directory_path() / "double-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory_ = name;
    std::vector<std::string> words{KUBERNETES_DOUBLE, "--directory", directory_, "--second-ms", "50"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    arguments.push_back(nullptr);
    int out[2];
    REQUIRE(::pipe2(out, O_CLOEXEC) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(out[1], 1);
      ::execv(KUBERNETES_DOUBLE, arguments.data());
      ::_exit(127);
    }
    ::close(out[1]);
    for (char c; ::read(out[0], &c, 1) == 1 && c != '\n';) url_ += c;
    ::close(out[0]);
  }
  ~program() {
    end(SIGTERM);
    fs::remove_all(directory_);
  }

  void end(int signal) {
    if (process_ == 0) return;
    ::kill(process_, signal);
    ::waitpid(std::exchange(process_, 0), nullptr, 0);
  }
  int port() const { return std::stoi(url_.substr(url_.rfind(':') + 1)); }
  std::string const& directory() const { return directory_; }

  /// What a command of kubectl prints on both streams.
  std::string kubectl(std::string const& words) const {
    std::string const line = "KUBECONFIG=" + directory_ + "/kubeconfig kubectl --cache-dir=" + directory_ +
                             "/cache " + words + " 2>&1";
    std::FILE* const in = ::popen(line.c_str(), "r");
    std::string out;
    for (int c; (c = std::fgetc(in)) != EOF;) out += char(c);
    ::pclose(in);
    return out;
  }

  /// Repeats it until it prints `wanted`.
  bool shows(std::string const& words, std::string const& wanted) const {
    for (auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(20);;) {
      std::string const out = kubectl(words);
      if (out.find(wanted) != out.npos) return true;
      if (std::chrono::steady_clock::now() > end) {
        MESSAGE(out);
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  std::string file(std::string const& name, std::string const& text) const {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }

 private:
  std::string directory_, url_;
  pid_t process_ = 0;
};

bool no_kubectl() {
  bool const there = std::system("kubectl version --client >/dev/null 2>&1") == 0;
  if (!there) MESSAGE("skipped: there is no kubectl here");
  return !there;
}

std::string const nginx = R"(
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000000
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: test-nginx, labels: {app: nginx}}
spec:
  replicas: 2
  selector: {matchLabels: {app: nginx}}
  template:
    metadata: {labels: {app: nginx}}
    spec:
      priorityClassName: high
      terminationGracePeriodSeconds: 2
      containers:
      - {name: nginx, image: "nginx:1.7.9", command: [sh, -c, "echo serving; sleep 600; true"]}
)";

}  // namespace

TEST_CASE("kubectl creates, lists, follows, scales and deletes") {
  if (no_kubectl()) return;
  program const d;
  std::string const file = d.file("nginx.yaml", nginx);
  CHECK(d.kubectl("create -f " + file).find("deployment.apps/test-nginx created") != std::string::npos);
  CHECK(d.kubectl("apply -f " + file).find("deployment.apps/test-nginx configured") != std::string::npos);
  CHECK(d.shows("get deployment test-nginx", "2/2"));
  std::string const line = d.kubectl("get pods -l app=nginx --no-headers | head -1");
  std::string const name = line.substr(0, line.find(' '));
  CHECK(name.starts_with("test-nginx-"));
  CHECK(line.find("1/1   Running   0") != std::string::npos);
  CHECK(d.kubectl("logs " + name) == "serving\n");
  CHECK(d.kubectl("logs --tail=1 -l app=nginx") == "serving\nserving\n");
  CHECK(d.kubectl("describe pod " + name).find("Successfully assigned default/" + name) != std::string::npos);
  CHECK(d.kubectl("get events").find("Started container nginx") != std::string::npos);
  CHECK(d.kubectl("delete pod " + name).find("deleted") != std::string::npos);
  CHECK(d.kubectl("get pod " + name).find("pods \"" + name + "\" not found") != std::string::npos);
  CHECK(d.shows("get deployment test-nginx", "2/2"));
  CHECK(d.kubectl("scale deployment.v1.apps/test-nginx --replicas=1").find("scaled") != std::string::npos);
  CHECK(d.shows("get deployment test-nginx", "1/1"));
  CHECK(d.kubectl("wait --for=condition=Ready pod -l app=nginx --timeout=10s").find("condition met") !=
        std::string::npos);
  CHECK(d.kubectl("delete -f " + file).find("deleted") != std::string::npos);
  CHECK(d.shows("get pods", "No resources found"));
}

TEST_CASE("kubectl says Terminating, OOMKilled and ErrImageNeverPull, and follows a log to its end") {
  if (no_kubectl()) return;
  program const d({"--image", "debian"});
  auto const make = [&](std::string const& name, std::string const& image, std::string const& script) {
    json p = pod(name, script);
    p["spec"]["containers"][0]["image"] = image;
    p["spec"]["containers"][0]["imagePullPolicy"] = "Never";
    p["spec"]["terminationGracePeriodSeconds"] = 40;
    CHECK(d.kubectl("create -f " + d.file(name + ".json", p.dump())) == "pod/" + name + " created\n");
  };
  make("lost", "debain", "true");
  make("big", "debian", "sleep 600; true");
  make("deaf", "debian", "trap '' TERM; sleep 600; true");
  make("talks", "debian", "for i in 1 2 3; do echo $i; sleep 0.1; done");
  CHECK(d.kubectl("logs -f talks") == "1\n2\n3\n");
  CHECK(d.shows("get pod talks", "Completed"));
  CHECK(d.shows("get pod lost", "ErrImageNeverPull"));
  httplib::SSLClient orders("127.0.0.1", d.port());
  orders.enable_server_certificate_verification(false);
  REQUIRE(d.shows("get pod big", "Running"));
  CHECK(orders.Post("/double/out_of_memory?pod=big")->status == 200);
  CHECK(d.shows("get pod big", "OOMKilled"));
  d.kubectl("delete pod deaf --wait=false");
  CHECK(d.kubectl("get pod deaf").find("Terminating") != std::string::npos);
  CHECK(d.kubectl("get --raw /api/v1/namespaces/default/pods/nope").find("pods \"nope\" not found") !=
        std::string::npos);
}

TEST_CASE("what pods have started ends with the double, even when that is killed") {
  program d;
  httplib::SSLClient client("127.0.0.1", d.port());
  client.enable_server_certificate_verification(false);
  std::string const mark = d.directory() + "/pid";
  std::string const body =
      pod("w", "sleep 600 & echo $! > " + mark + ".new; mv " + mark + ".new " + mark + "; wait").dump();
  CHECK(client.Post(pods, {{"Authorization", "Bearer double-token"}}, body, "application/json")->status ==
        201);
  pid_t child = 0;
  while (!(std::ifstream(mark) >> child)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  REQUIRE(::kill(child, 0) == 0);
  d.end(SIGKILL);
  auto const runs = [&] {  // an orphan may stay as a zombie where nobody reaps it
    std::ifstream in("/proc/" + std::to_string(child) + "/stat");
    std::string number, name, state;
    return bool(in >> number >> name >> state) && state != "Z";
  };
  for (int i = 0; i < 4000 && runs(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(!runs());
}

}  // namespace edl::testing::kubernetes
