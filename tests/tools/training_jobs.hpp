// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>

#include "tools/edl.hpp"

namespace edl_command {

inline std::string const training_jobs = "/apis/elasticdl.org/v1alpha1/namespaces/default/trainingjobs";

/// Answers size requests as the controller of TrainingJobs does, without making any pod. Every job has the
/// workers that its spec says, or its minimum, and runs unless it is suspended.
class played_controller {
 public:
  explicit played_controller(lab::cluster& c)
      : cluster_(c), thread_([this](std::stop_token stop) { run(stop); }) {}

 private:
  void run(std::stop_token stop) {
    for (; !stop.stop_requested(); std::this_thread::sleep_for(20ms))
      for (json const& job : cluster_.get(training_jobs).value("items", json::array())) look_at(job);
  }

  void look_at(json const& job) {
    json const &spec = job.at("spec"), &metadata = job.at("metadata");
    std::int64_t const generation = metadata.value("generation", 0);
    if (job.value("status", json::object()).value("observedGeneration", 0) == generation) return;
    bool const asleep = spec.value("suspend", false);
    int const workers = asleep ? 0 : spec["workers"].value("replicas", spec["workers"]["min"].get<int>());
    json status{{"observedGeneration", generation},
                {"phase", asleep ? "suspended" : "running"},
                {"replicas", workers},
                {"master", {{"desired", 1}, {"running", asleep ? 0 : 1}, {"pending", 0}}},
                {"servers", {{"desired", spec["servers"]["replicas"]}, {"running", 0}, {"pending", 0}}},
                {"workers", {{"desired", workers}, {"running", workers}, {"pending", 0}}},
                {"conditions", json::array()}};
    for (auto const& [type, yes] :
         {std::pair{"Admitted", !asleep}, {"Running", !asleep}, {"Suspended", asleep}})
      status["conditions"].push_back({{"type", type},
                                      {"status", yes ? "True" : "False"},
                                      {"reason", "Played"},
                                      {"message", ""},
                                      {"lastTransitionTime", "2026-11-22T10:00:00Z"}});
    cluster_.call("PATCH", training_jobs + "/" + metadata.at("name").get<std::string>() + "/status",
                  {{"status", status}});
  }

  lab::cluster& cluster_;
  std::jthread thread_;
};

}  // namespace edl_command
