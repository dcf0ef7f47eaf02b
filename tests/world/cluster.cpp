// SPDX-License-Identifier: Apache-2.0
#include "world/cluster.hpp"

#include <signal.h>

#include <stdexcept>
#include <thread>

#include "kubernetes/yaml.hpp"

int edl_controller_main(int argc, char** argv);

namespace world {

namespace {

namespace lab = edl::testing::kubernetes;
using nlohmann::json;

std::string const jobs = "/apis/elasticdl.org/v1alpha1/namespaces/default/trainingjobs";
std::string const directory = "/var/cluster";

lab::options options_of(cluster::options const& o) {
  lab::options all = o.more;
  all.directory = directory;
  all.tls = false;
  all.namespaces = {"default", "edl-system"};
  all.nodes.clear();
  for (int i = 0; i < o.nodes; ++i) {
    std::string const name = "node-" + std::to_string(i);
    all.nodes.push_back({.name = name, .cpu = o.cpu, .labels = {{"pool", name}}});
  }
  all.images["model:1"] = {.programs = {{"model", "/bin/model"}}, .entrypoint = {}};
  return all;
}

json made(json answer) {
  if (answer.value("kind", "") == "Status") throw std::runtime_error(answer.value("message", answer.dump()));
  return answer;
}

}  // namespace

json read_definition(std::string const& file) { return lab::read_yaml(file).at(0); }

cluster::cluster(options const& o, json const& definition) {
  mount_everywhere("/storage", "storage");
  install("/bin/model", o.main);
  lab::options const with = options_of(o);
  server_ = start({.name = "cluster",
                   .main = [this, with](int, char**) -> int {
                     ::signal(SIGPIPE, SIG_IGN);
                     api_ = new lab::cluster(with);
                     for (;;) std::this_thread::sleep_for(1h);
                   },
                   .environment = {{"TZ", "UTC0"}}});
  fail_forks(server_, 1);  // the guard of a real double's processes is not needed
  set_slack(server_, 500ms);
  while (!api_) {
    if (ended(server_)) fail("the double of the API server has ended");
    std::this_thread::sleep_for(1ms);
  }
  made(api_->post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition));
  made(api_->post("/api/v1/namespaces/default/serviceaccounts", {{"metadata", {{"name", "edl"}}}}));
}

pid cluster::start_controller(int number, std::vector<std::string> more) {
  std::string const name = "controller-" + std::to_string(number);
  program p{.name = name,
            .main = edl_controller_main,
            .arguments = {"edl-controller", "--metrics_address=0.0.0.0:8080", "--max_load=1"},
            .environment = {{"KUBECONFIG", api_->kubeconfig()}, {"TZ", "UTC0"}},
            .machine = "cluster"};
  p.arguments.insert(p.arguments.end(), more.begin(), more.end());
  return start(std::move(p));
}

void cluster::submit(training_job const& j) {
  json variables = json::array();
  for (auto const& [name, value] : j.environment) variables.push_back({{"name", name}, {"value", value}});
  json const like{{"spec",
                   {{"terminationGracePeriodSeconds", 10},
                    {"containers",
                     {{{"name", "main"},
                       {"image", "model:1"},
                       {"imagePullPolicy", "Never"},
                       {"env", variables},
                       {"volumeMounts", {{{"name", "data"}, {"mountPath", "/storage"}}}},
                       {"resources", {{"requests", {{"cpu", "1"}, {"memory", "64Mi"}}}}}}}},
                    {"volumes", {{{"name", "data"}, {"hostPath", {{"path", "/storage"}}}}}}}}};
  json object{{"apiVersion", "elasticdl.org/v1alpha1"},
              {"kind", "TrainingJob"},
              {"metadata", {{"name", j.name}}},
              {"spec",
               {{"model", "model"},
                {"strategy", j.servers > 0 ? "ParameterServerStrategy" : "AllreduceStrategy"},
                {"flags", j.flags},
                {"backoffLimit", j.retries},
                {"master", {{"template", like}}},
                {"workers", {{"min", j.min}, {"max", j.max}, {"template", like}}}}}};
  if (j.servers > 0) object["spec"]["servers"] = {{"replicas", j.servers}, {"template", like}};
  if (!j.spot.is_null()) {
    object["spec"]["spot"] = j.spot;
    for (char const* role : {"master", "servers"})
      if (object["spec"].contains(role))
        object["spec"][role]["template"]["spec"]["nodeSelector"] = {{"pool", "node-0"}};
  }
  made(api_->post(jobs, object));
}

void cluster::set_node(std::string const& node, bool there) {
  api_->call("PATCH", "/api/v1/nodes/" + node, {{"spec", {{"unschedulable", there ? json() : json(true)}}}});
  if (there) return;
  json const list = api_->get("/api/v1/namespaces/default/pods");
  for (json const& p : list.at("items"))
    if (p["spec"].value("nodeName", "") == node) api_->kill("default", p["metadata"]["name"], SIGKILL);
}

std::string cluster::path_of(std::string const& job) { return jobs + "/" + job; }

json cluster::status(std::string const& job) const {
  return api_->get(jobs + "/" + job).value("status", json::object());
}

std::string cluster::phase(std::string const& job) const { return status(job).value("phase", ""); }

std::map<std::string, std::string> cluster::pods() const {
  std::map<std::string, std::string> all;
  json const list = api_->get("/api/v1/namespaces/default/pods");
  for (json const& p : list.at("items"))
    all[p.at("metadata").at("name")] =
        p.at("metadata").contains("deletionTimestamp") ? "Terminating" : p.at("status").value("phase", "");
  return all;
}

}  // namespace world
