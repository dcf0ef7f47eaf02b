// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>

#include "edl/cli/program.hpp"
#include "kubernetes/double.hpp"

namespace {

namespace double_ = edl::testing::kubernetes;
using edl::cli::flag, edl::cli::split, edl::cli::words;

std::vector<flag> flags() {
  using enum flag::value_type;
  double_::options const defaults;
  return {{.name = "directory", .help = "of certificates, kubeconfig and logs", .needed = true},
          {.name = "port",
           .fallback = "0",
           .help = "0: any that is free",
           .type = whole,
           .least = 0,
           .most = 65535},
          {.name = "http", .help = "without TLS", .type = truth},
          {.name = "token", .fallback = defaults.token, .help = "the bearer token that is accepted"},
          {.name = "namespace", .help = "namespaces that exist; the first is kubeconfig's", .repeats = true},
          {.name = "node", .help = "NAME,CPU,MEMORY: lab-node,64,64Gi", .repeats = true},
          {.name = "image",
           .help = "IMAGE or IMAGE,PROGRAM=PATH,…; without any, every image is present",
           .repeats = true},
          {.name = "claim", .help = "CLAIM=DIRECTORY", .repeats = true},
          {.name = "env", .help = "NAME=VALUE of every container", .repeats = true},
          {.name = "forbid", .help = "VERB,RESOURCE[,NAMESPACE[,USER]]: refused with 403", .repeats = true},
          {.name = "no_pods", .help = "no pod is placed or run", .type = truth},
          {.name = "history",
           .fallback = std::to_string(defaults.history),
           .help = "changes that are kept for watches",
           .type = whole,
           .least = 0},
          {.name = "second_ms",
           .fallback = "1000",
           .help = "length of a second of grace periods and pauses, in milliseconds",
           .type = whole,
           .least = 0,
           .most = 1'000'000},
          {.name = "image_start_ms",
           .fallback = "0",
           .help = "between the scheduling of a pod and its processes",
           .type = whole,
           .least = 0,
           .most = 1'000'000},
          {.name = "report_delay_ms",
           .fallback = "0",
           .help = "between the end of a process and the kubelet's word of it",
           .type = whole,
           .least = 0,
           .most = 1'000'000}};
}

double_::options options_of(edl::cli::command_line const& l) {
  double_::options o;
  o.directory = l.text("directory");
  o.port = std::uint16_t(l.number("port"));
  o.token = l.text("token");
  if (l.given("namespace")) o.namespaces = l.all("namespace");
  o.run_pods = !l.truth("no_pods");
  o.history = std::size_t(l.number("history"));
  o.tls = !l.truth("http");
  o.second = std::chrono::milliseconds(l.number("second_ms"));
  o.image_start = std::chrono::milliseconds(l.number("image_start_ms"));
  o.report_delay = std::chrono::milliseconds(l.number("report_delay_ms"));
  if (l.given("node")) o.nodes.clear();
  for (std::string const& n : l.all("node")) {
    words const p = split(n, ',');
    o.nodes.push_back({p.at(0), p.size() > 1 ? p[1] : "64", p.size() > 2 ? p[2] : "64Gi"});
  }
  for (std::string const& text : l.all("image")) {
    words const p = split(text, ',');
    double_::image& i = o.images[p.at(0)];
    for (std::size_t n = 1; n < p.size(); ++n) {
      auto const equals = p[n].find('=');
      i.programs[p[n].substr(0, equals)] = p[n].substr(equals + 1);
      if (i.entrypoint.empty()) i.entrypoint = {p[n].substr(0, equals)};
    }
  }
  for (auto const& [flag, map] : {std::pair{"claim", &o.claims}, {"env", &o.environment}})
    for (std::string const& text : l.all(flag))
      (*map)[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  for (std::string const& text : l.all("forbid")) {
    words const p = split(text, ',');
    o.forbidden.push_back(
        {p.at(0), p.size() > 1 ? p[1] : "*", p.size() > 2 ? p[2] : "*", p.size() > 3 ? p[3] : "*"});
  }
  return o;
}

/// Says where the double is, and runs until it is told to end (SIGTERM, SIGINT).
int run(edl::cli::command_line const& l) {
  double_::options const o = options_of(l);
  sigset_t ends;
  sigemptyset(&ends);
  for (int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, s);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  double_::cluster const c(o);
  fmt::print("{}\nexport KUBECONFIG={}\n", c.url(), c.kubeconfig());
  std::fflush(stdout);
  int which;
  ::sigwait(&ends, &which);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return edl::cli::run_program(
      {.command = "kubernetes-double", .flags = flags()},
      "A double of a Kubernetes API server, whose pods are processes of this machine.",
      {argv + 1, argv + argc}, run);
}
