// SPDX-License-Identifier: Apache-2.0
// From the loss of workers' pods to the requests for their replacements: a master's platform against the
// double of the API server, in one process.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/platform/quiet_observer.hpp"
#include "edl/base/net/node.hpp"
#include "edl/cluster/kubernetes/cluster.hpp"
#include "kubernetes/double.hpp"

namespace {

namespace k = edl::kubernetes;
namespace lab = edl::testing::kubernetes;
using clock_type = std::chrono::steady_clock;
using edl::process_id;
using edl::role;
using nlohmann::json;

constexpr char pods[] = "/api/v1/namespaces/default/pods";

/// Every worker that leaves or ends is asked for again, under the next id: what a master decides.
class fleet : quiet_observer {
 public:
  explicit fleet(lab::cluster& c)
      : lab_(c),
        node_({.job = "bench", .secret = edl::net::token::random(), .log = quiet()}),
        owner_(c.post(
            pods,
            {{"apiVersion", "v1"},
             {"kind", "Pod"},
             {"metadata", {{"name", "master"}}},
             {"spec", {{"containers", {{{"name", "c"}, {"image", "i"}, {"command", {"sleep", "900"}}}}}}}})),
        cluster_(node_, k::from_kubeconfig(c.kubeconfig()), spec(), {"master", owner_["metadata"]["uid"]},
                 *this, quiet()) {}
  ~fleet() { node_.stop(); }

  void grow(std::uint32_t workers) {
    node_.post([this, workers] {
      while (next_ < workers) cluster_.start({role::worker, next_++}, std::nullopt);
    });
    lab_.wait([&] { return names("Running").size() == workers; }, std::chrono::seconds(60));
  }

  /// Seconds from the last deletion to the last request for a replacement.
  double lose(std::size_t n) {
    auto victims = names("Running");
    std::size_t const size = victims.size();
    victims.resize(n);
    std::size_t const before = next_;
    for (std::string const& name : victims) lab_.remove(fmt::format("{}/{}", pods, name));
    auto const start = clock_type::now();
    // Asked for one after the other, of which the last is cheap to look for at every change.
    std::string const last = fmt::format("{}/elasticdl-bench-worker-{}", pods, before + n - 1);
    lab_.wait([&] { return lab_.get(last)["kind"] == "Pod" && all_from(before) == n; },
              std::chrono::seconds(60));
    double const took = std::chrono::duration<double>(clock_type::now() - start).count();
    lab_.wait([&] { return names("Running").size() == size; }, std::chrono::seconds(60));
    return took;
  }

 private:
  static edl::logger quiet() { return edl::logger(edl::severity::critical); }
  static k::job_spec spec() {
    k::job_spec s;
    s.name = "bench", s.image = "i", s.command = {"sleep", "900"}, s.image_pull_policy = "Never",
    s.grace_seconds = 1;
    s.master.request = s.worker.request = s.server.request = {{"cpu", "0.1"}, {"memory", "64Mi"}};
    return s;
  }
  void leaving(edl::process_id who, std::string const&) override {
    cluster_.start({role::worker, next_++}, who.id);
  }
  std::vector<std::string> names(std::string const& phase) {
    std::vector<std::string> all;
    json const list = lab_.get(fmt::format("{}?labelSelector=elasticdl-replica-type=worker", pods));
    for (json const& p : list["items"])
      if (p["status"].value("phase", "") == phase && !p["metadata"].contains("deletionTimestamp"))
        all.push_back(p["metadata"]["name"]);
    return all;
  }
  std::size_t all_from(std::size_t id) {
    std::size_t n = 0;
    json const list = lab_.get(fmt::format("{}?labelSelector=elasticdl-replica-type=worker", pods));
    for (json const& p : list["items"])
      n += std::stoul(p["metadata"]["labels"]["elasticdl-replica-index"].get<std::string>()) >= id;
    return n;
  }

  lab::cluster& lab_;
  edl::net::node node_;
  json owner_;
  std::atomic<std::uint32_t> next_{0};
  k::cluster cluster_;
};

void measure(fleet& f, std::size_t lost, int times) {
  std::vector<double> took;
  for (int i = 0; i < times; ++i) took.push_back(1000 * f.lose(lost));
  std::ranges::sort(took);
  fmt::print("| {:2} | {:6.1f} | {:6.1f} | {:6.1f} |\n", lost, took.front(), took[took.size() / 2],
             took.back());
}

}  // namespace

int main() {
  lab::cluster c({.images = {{"i", {}}}, .history = 100000});
  c.post("/api/v1/namespaces/default/secrets", {{"apiVersion", "v1"},
                                                {"kind", "Secret"},
                                                {"metadata", {{"name", "elasticdl-bench"}}},
                                                {"stringData", {{"token", "a secret of some length"}}}});
  fleet f(c);
  f.grow(30);
  fmt::print("From the deletion of workers' pods to the requests for as many new ones, ms:\n\n");
  fmt::print("| lost | least | median | most |\n|---|---|---|---|\n");
  measure(f, 1, 15);
  measure(f, 30, 7);
}
