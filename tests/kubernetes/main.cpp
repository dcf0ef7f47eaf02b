// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "kubernetes/double.hpp"

// The double as a program: says where it is, and runs until it is told to end (SIGTERM, SIGINT).
int main(int argc, char** argv) {
  namespace double_ = edl::testing::kubernetes;
  double_::options o;
  std::vector<std::string> nodes, images, claims, forbidden, environment;
  int second = 1000, image_start = 0, report_delay = 0;
  bool http = false;
  CLI::App app("A double of a Kubernetes API server, whose pods are processes of this machine.");
  app.add_option("--directory", o.directory, "Of certificates, kubeconfig and logs")->required();
  app.add_option("--port", o.port, "0: any that is free");
  app.add_flag("--http", http, "Without TLS");
  app.add_option("--token", o.token, "The bearer token that is accepted");
  app.add_option("--namespace", o.namespaces, "Namespaces that exist; the first is kubeconfig's");
  app.add_option("--node", nodes, "NAME,CPU,MEMORY: lab-node,64,64Gi");
  app.add_option("--image", images, "IMAGE or IMAGE,PROGRAM=PATH,…; without any, every image is present");
  app.add_option("--claim", claims, "CLAIM=DIRECTORY");
  app.add_option("--env", environment, "NAME=VALUE of every container");
  app.add_option("--forbid", forbidden, "VERB,RESOURCE[,NAMESPACE[,USER]]: refused with 403");
  app.add_flag("!--no-pods", o.run_pods, "No pod is placed or run");
  app.add_option("--history", o.history, "Changes that are kept for watches");
  app.add_option("--second-ms", second, "Length of a second of grace periods and pauses, in milliseconds");
  app.add_option("--image-start-ms", image_start, "Between the scheduling of a pod and its processes");
  app.add_option("--report-delay-ms", report_delay,
                 "Between the end of a process and the kubelet's word of it");
  CLI11_PARSE(app, argc, argv);

  auto const split = [](std::string const& text, char at) { return CLI::detail::split(text, at); };
  o.tls = !http;
  o.second = std::chrono::milliseconds(second);
  o.image_start = std::chrono::milliseconds(image_start);
  o.report_delay = std::chrono::milliseconds(report_delay);
  if (!nodes.empty()) o.nodes.clear();
  for (std::string const& n : nodes) {
    auto const p = split(n, ',');
    o.nodes.push_back({p.at(0), p.size() > 1 ? p[1] : "64", p.size() > 2 ? p[2] : "64Gi"});
  }
  for (std::string const& text : images) {
    auto const p = split(text, ',');
    double_::image& i = o.images[p.at(0)];
    for (std::size_t n = 1; n < p.size(); ++n) {
      auto const equals = p[n].find('=');
      i.programs[p[n].substr(0, equals)] = p[n].substr(equals + 1);
      if (i.entrypoint.empty()) i.entrypoint = {p[n].substr(0, equals)};
    }
  }
  for (auto const& [list, map] : {std::pair{&claims, &o.claims}, {&environment, &o.environment}})
    for (std::string const& text : *list)
      (*map)[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  for (std::string const& text : forbidden) {
    auto const p = split(text, ',');
    o.forbidden.push_back(
        {p.at(0), p.size() > 1 ? p[1] : "*", p.size() > 2 ? p[2] : "*", p.size() > 3 ? p[3] : "*"});
  }

  sigset_t ends;
  sigemptyset(&ends);
  for (int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, s);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    double_::cluster const c(o);
    fmt::print("{}\nexport KUBECONFIG={}\n", c.url(), c.kubeconfig());
    std::fflush(stdout);
    int which;
    ::sigwait(&ends, &which);
  } catch (std::exception const& e) {
    fmt::print(stderr, "kubernetes-double: {}\n", e.what());
    return 1;
  }
}
