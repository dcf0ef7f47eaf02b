// SPDX-License-Identifier: Apache-2.0
// Covers tools/edl/cluster/cluster.hpp
#include <fstream>

#include "cluster/cluster.hpp"
#include "command/tool.hpp"
#include "common/advice.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

namespace hints_test {

using namespace edl::tool;

struct kubeconfig {
  scratch dir;
  std::string path = [this] {
    std::ofstream(dir / "config") << R"({"apiVersion": "v1", "kind": "Config", "current-context": "usual",
      "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
      "users": [{"name": "u", "user": {}}],
      "contexts": [{"name": "usual", "context": {"cluster": "k", "user": "u", "namespace": "own"}},
                   {"name": "the test", "context": {"cluster": "k", "user": "u"}}]})";
    return dir / "config";
  }();
  cluster reached(words line) const {
    line.push_back("--kubeconfig=" + path);
    return connect(command_line("logs", cluster_flags(), line));
  }
};

TEST_CASE("a command that a hint names has the flags by which its reader reached the cluster") {
  kubeconfig const k;
  std::string const file = " --kubeconfig=" + k.path;
  CHECK(k.reached({}).named("j") == "j" + file);
  cluster named = k.reached({"-n", "own", "--context=usual"});
  CHECK(named.named("j") == "j -n own --context=usual" + file);
  CHECK(k.reached({"--context=the test"}).flags() == " '--context=the test'" + file);
  cluster elsewhere = k.reached({});  // a file of jobs names their namespaces
  elsewhere.space = "team";
  CHECK(elsewhere.flags() == " -n team" + file);
}

TEST_CASE("an advice has the flags behind the job's name in each command that it names") {
  std::string const job = "j -n team --context=c";
  auto const remedy = [&](char const* reason, char const* message = "") {
    return advise(reason, message, job).remedy;
  };
  CHECK(contains(remedy("CrashLoopBackOff"), "`edl logs j -n team --context=c`"));
  CHECK(contains(remedy("BackOff"), "`edl logs j -n team --context=c`"));
  CHECK(contains(remedy("Failed"), "`edl logs j -n team --context=c --role=master`"));
  CHECK(contains(remedy("CreateContainerConfigError"), "`edl doctor -n team --context=c`"));
  CHECK(contains(remedy("FailedCreate"), "`kubectl describe quota -n team --context=c`"));
  CHECK(contains(remedy("Unschedulable", "unbound"), "`kubectl get pvc -n team --context=c`"));
  CHECK(contains(remedy("Unschedulable"), "`kubectl get nodes -n team --context=c`"));
  CHECK(for_kubectl(" -n a --force_use_kube_config_file") == " -n a");
  CHECK(contains(advise("CrashLoopBackOff", "", "j").remedy, "`edl logs j`"));
}

}  // namespace hints_test
