// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cluster/kueue/kueue_double.hpp"

namespace edl::controller::kueue_double {

inline edl::kubernetes::template_text template_of(std::string const& image, std::string const& cpu) {
  return json{{"spec",
               {{"containers",
                 {{{"name", "main"},
                   {"image", image},
                   {"ports", {{{"containerPort", 80}}}},
                   {"resources", {{"requests", {{"cpu", cpu}}}}}}}}}}}
      .dump();
}

struct job_options {
  std::string space = "team", queue = "q";
  std::uint32_t servers = 0, min = 1, max = 4;
  bool is_elastic = false;
  int priority = 0;
};

/// A job whose pods do as they are told, one in each step, and stop slowly.
struct fake_job {
  edl::kubernetes::training_job job;
  std::uint32_t master = 0, servers = 0, workers = 0;
  std::uint32_t announced = 0;  ///< the size that its master was told last
  std::uint32_t plan = 100;     ///< what the autoscaler would give it
  kueue::assessment last{};

  std::uint32_t pods() const { return master + servers + workers; }

  void step() {
    bool const runs = last.may_run && !job.finished() && !job.spec.suspend;
    if (!runs) {
      (workers > 0 ? workers : servers > 0 ? servers : master) -= pods() > 0;
      if (pods() == 0) announced = 0;
      return;
    }
    std::uint32_t const most = std::min(job.spec.workers.replicas.value_or(job.spec.workers.max),
                                        last.most_workers.value_or(job.spec.workers.max));
    if (master == 0 && !last.may_start) return;
    if (master == 0) master = 1, servers = job.spec.servers, workers = job.spec.workers.min;
    announced = std::clamp(plan, job.spec.workers.min, std::max(most, job.spec.workers.min));
    if (workers < announced) ++workers;
    if (workers > announced) --workers;
  }
};

/// Jobs, their controller, an API server and Kueue.
struct cluster {
  explicit cluster(std::int64_t cpus) : kueue(cpus) {
    flavors["spot"] = {.node_selector = {{"disk", "ssd"}}};
  }

  kueue_double::server server;
  kueue_double::scheduler kueue;
  std::map<std::string, fake_job> jobs;
  std::map<std::string, kueue::pod_changes> flavors;
  std::map<std::string, std::int64_t> priorities;
  bool served = true, unsafe = false;
  std::minstd_rand* lossy = nullptr;  ///< the controller is killed between requests, and sees old Workloads

  fake_job& add(std::string const& name, job_options const& o) {
    edl::kubernetes::training_job j{
        .space = o.space, .name = name, .uid = "uid-of-" + (o.space == "team" ? name : o.space + "/" + name)};
    if (!o.queue.empty()) j.labels[kueue::queue_label] = o.queue;
    if (o.is_elastic) j.annotations[kueue::elastic_annotation] = "true";
    if (o.priority > 0) {
      j.labels[kueue::priority_label] = "p" + std::to_string(o.priority);
      priorities["p" + std::to_string(o.priority)] = o.priority;
    }
    j.spec.master = j.spec.server = j.spec.worker = template_of("edl:mnist", "1");
    j.spec.servers = o.servers;
    j.spec.workers = {o.min, o.max};
    return jobs[o.space + "/" + name] = {.job = std::move(j)};
  }

  fake_job& at(std::string const& name, std::string const& space = "team") {
    return jobs.at(space + "/" + name);
  }

  /// The Workload that counts; empty: none.
  std::string key_of(std::string const& name, std::string const& space = "team") const {
    std::string const uid = jobs.at(space + "/" + name).job.uid;
    std::string found;
    for (auto const& [key, w] : server.objects)
      if (w["metadata"]["ownerReferences"][0]["uid"] == uid) found = key;
    return found;
  }
  json object_of(std::string const& name, std::string const& space = "team") const {
    return server.objects.at(key_of(name, space));
  }

  /// `steps` of the controller and of the pods.
  void run_jobs(int steps) {
    for (int i = 0; i < steps; ++i) {
      server.now += 1;
      for (auto& [key, x] : jobs) {
        control(x);
        x.step();
      }
      check();
    }
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      run_jobs(1);
      kueue.step(server);
      check();
    }
  }

 private:
  void control(fake_job& x) {
    if (!lossy || (*lossy)() % 3 == 0 || view_.empty()) view_ = server.read();
    kueue::situation is{.job = x.job, .served = served, .wanted = x.plan, .now = server.now};
    for (auto const& w : view_)
      if (w.owner == x.job.uid) is.workloads.push_back(&w);
    is.pods = {x.pods(), std::max(x.workers, x.announced), x.master > 0, x.servers, x.workers};
    is.flavor = [&](std::string const& name) { return flavors.contains(name) ? &flavors.at(name) : nullptr; };
    is.priority = [&](kueue::priority_choice const& p) -> std::optional<std::int64_t> {
      if (p.name.empty()) return 0;
      if (!priorities.contains(p.name)) return std::nullopt;
      return priorities.at(p.name);
    };
    x.last = kueue::judge(is);
    for (auto const& r : x.last.requests) {
      if (lossy && (*lossy)() % 4 == 0) return;
      try {
        server.apply(r);
        take_answer(r);
      } catch (refusal const& e) {
        CAPTURE(r.body);
        CAPTURE(e.what());
        bool const expected = e.code == 409 || (lossy && e.code == 404);
        CHECK(expected);  // nothing that is refused for what it says
        return;
      }
    }
    if (!lossy) view_.clear();
  }

  /// Who has changed an object has been told what it is now.
  void take_answer(kueue::api_write const& r) {
    std::erase_if(view_, [&](auto const& w) { return w.space == r.space && w.name == r.name; });
    if (auto const at = server.objects.find(r.space + "/" + r.name); at != server.objects.end())
      view_.push_back(*kueue::read_workload(at->second));
  }

  /// No pod without quota, no quota twice.
  void check() const {
    for (auto const& [key, x] : jobs) {
      if (unsafe || kueue::queue_of(x.job).empty()) continue;
      std::int64_t quota = 0;
      for (auto const& [name, w] : server.objects)
        if (w["metadata"]["ownerReferences"][0]["uid"] == x.job.uid) quota += scheduler::held_by(w);
      CAPTURE(key);
      CHECK(std::int64_t(x.pods()) * 1000 <= quota);
    }
  }

  std::vector<kueue::workload> view_;
};

}  // namespace edl::controller::kueue_double
