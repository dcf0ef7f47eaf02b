// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>

#include "edl/app/job_metrics.hpp"
#include "edl/base/net/traffic.hpp"
#include "edl/core/generation.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/text.hpp"
#include "edl/version.hpp"

namespace edl::app {

EDL_INLINE std::span<job_metric const> job_metrics() {
  using enum metric_type;
  static constexpr job_metric all[] = {
      {"edl_process_info", info, "all", "The process: its job, role, number and edl's version."},
      {"process_cpu_seconds_total", counter, "all", "Processor time, of the user and the system."},
      {"process_resident_memory_bytes", gauge, "all", "Memory that it has."},
      {"process_memory_limit_bytes", gauge, "all", "Memory limit of its container; absent without a limit."},
      {"edl_net_sent_bytes_total", counter, "all", "Bytes sent to the job's other processes."},
      {"edl_net_received_bytes_total", counter, "all", "Bytes received from them."},
      {"edl_rpc_calls_total", counter, "all", "Calls made to them."},
      {"edl_rpc_failures_total", counter, "all", "Calls that failed or were rejected."},
      {"edl_rpc_wait_seconds_total", counter, "all", "Time from requests to their replies."},
      {"edl_model_version", gauge, "all", "The newest version of the model that this process knows."},
      {"edl_records_total", counter, "master, workers",
       "Master: training records of completed tasks, of all epochs; worker: records that it has trained."},
      {"edl_loss", gauge, "master, workers", "Mean training loss of the newest minibatches."},
      {"edl_records_skipped_total", counter, "master", "Damaged records that were left out."},
      {"edl_records_per_second", gauge, "master", "Records trained a second, over all workers."},
      {"edl_job_records", gauge, "master", "Records of all epochs; absent for a job without end."},
      {"edl_epoch", gauge, "master", "The newest epoch that was begun, from 0."},
      {"edl_workers", gauge, "master", "Workers that take part."},
      {"edl_servers", gauge, "master", "Parameter servers that take part."},
      {"edl_tasks_waiting", gauge, "master", "Tasks of the epochs begun that no worker has leased yet."},
      {"edl_tasks_leased", gauge, "master", "Tasks that workers hold."},
      {"edl_tasks_done_total", counter, "master", "Training tasks that are done."},
      {"edl_tasks_repeated_total", counter, "master", "Tasks that were leased again."},
      {"edl_tasks_recovered_total", counter, "master", "Tasks that were taken back from a lost worker."},
      {"edl_records_taken_back_total", counter, "master",
       "Records of completed training tasks that were undone when the job went back to a checkpoint."},
      {"edl_ledger_lost_records", gauge, "master",
       "In the ledger from which the job last resumed: records marked as applied that were not. Absent if "
       "the servers' histories differed, because the ledger then lacks a count."},
      {"edl_ledger_repeated_records", gauge, "master",
       "Likewise: records that were applied more often than once."},
      {"edl_members_lost_total", counter, "master", "Workers and servers that were lost."},
      {"edl_generation", gauge, "master, servers", "The generation of servers, or the world of workers."},
      {"edl_ranges", gauge, "servers", "Ranges of the variables that it serves."},
      {"edl_minibatches_total", counter, "master, workers",
       "Minibatches that were trained; master: by all workers that it has heard."},
  };
  return all;
}

namespace detail {

/// The number in a file with one number; none: it holds another text ("max").
inline std::optional<std::uint64_t> number_in(char const* path) {
  std::ifstream in(path);
  std::string text;
  in >> text;
  return number_from<std::uint64_t>(text);
}

inline void set_loss(metric_registry& into, double loss) {
  if (loss != 0) into.set("edl_loss", loss);  // 0: no loss yet
}

}  // namespace detail

EDL_INLINE void collect_process(metric_registry& into) {
  ::rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto const seconds = [](::timeval const& t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  into.set("process_cpu_seconds_total", seconds(used.ru_utime) + seconds(used.ru_stime));
  std::uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  into.set("process_resident_memory_bytes", double(resident) * double(::sysconf(_SC_PAGESIZE)));
  if (auto const most = detail::number_in("/sys/fs/cgroup/memory.max"))
    into.set("process_memory_limit_bytes", double(*most));
  net::traffic const& t = net::total_traffic();
  into.set("edl_net_sent_bytes_total", double(t.sent));
  into.set("edl_net_received_bytes_total", double(t.received));
  into.set("edl_rpc_calls_total", double(t.calls));
  into.set("edl_rpc_failures_total", double(t.failures));
  into.set("edl_rpc_wait_seconds_total", double(t.waited) * 1e-9);
}

EDL_INLINE void collect(metric_registry& into, master::coordinator const& of) {
  master::job_progress const p = of.progress();
  into.set("edl_model_version", double(p.version));
  into.set("edl_records_total", double(p.done.records_done));
  into.set("edl_records_skipped_total", double(p.done.records_skipped));
  into.set("edl_records_per_second", p.rate);
  detail::set_loss(into, p.loss);
  if (p.total_records) into.set("edl_job_records", double(*p.total_records));
  into.set("edl_epoch", p.epoch);
  into.set("edl_minibatches_total", double(p.trained.minibatches));
  if (auto const* const tasks = of.tasks())
    into.set("edl_tasks_waiting", double(tasks->remaining() - tasks->leased()));
  into.set("edl_workers", double(p.workers));
  into.set("edl_servers", double(p.servers));
  into.set("edl_tasks_leased", double(p.leased));
  into.set("edl_tasks_done_total", double(p.done.tasks_done));
  into.set("edl_tasks_repeated_total", double(p.repeated));
  into.set("edl_tasks_recovered_total", double(p.recovered));
  into.set("edl_members_lost_total", double(p.lost));
  into.set("edl_records_taken_back_total", double(p.taken_back));
  if (p.account) {
    into.set("edl_ledger_lost_records", double(p.account->lost));
    into.set("edl_ledger_repeated_records", double(p.account->repeated));
  }
  into.set("edl_generation", double(count_of(of.generation())));
}

EDL_INLINE void collect(metric_registry& into, ps::server const& of) {
  into.set("edl_model_version", double(of.version()));
  into.set("edl_generation", double(count_of(of.generation())));
  into.set("edl_ranges", double(of.held().size()));
}

EDL_INLINE void collect(metric_registry& into, worker::progress const& of) {
  into.set("edl_model_version", double(of.version));
  auto const trained = of.trained();
  into.set("edl_records_total", double(trained.records));
  into.set("edl_minibatches_total", double(trained.minibatches));
  detail::set_loss(into, of.loss);
}

EDL_INLINE http::route metrics_route(process_environment const& s,
                                     std::function<void(metric_registry&)> collect) {
  auto const all = std::make_shared<metric_registry>();
  std::string_view const role = s.role == "ps" ? "servers" : s.role == "worker" ? "workers" : "master";
  for (job_metric const& m : job_metrics())
    if (m.roles == "all" || m.roles.find(role) != m.roles.npos)
      all->describe(std::string(m.name), m.type, std::string(m.help));
  all->set("edl_process_info", 1,
           fmt::format("job=\"{}\",role=\"{}\",id=\"{}\",version=\"{}\"", label_value(s.job_name),
                       s.role.empty() ? "master" : s.role, s.id, package_version));
  return {"GET", "/metrics", http::at_once([all, collect = std::move(collect)](http::request const& r) {
            collect_process(*all);
            collect(*all);
            return http::metrics_response(r, all->text());
          })};
}

EDL_INLINE std::unique_ptr<http::server> serve_metrics(net::node& on, job const& j,
                                                       process_environment const& s,
                                                       std::function<void(metric_registry&)> collect,
                                                       logger const& log) {
  if (!j.processes.metrics_port) return nullptr;
  bool const any = is_of_a_command(s) && s.role != "master";
  auto made = std::make_unique<http::server>(
      on,
      http::server_options{.host = s.host.empty() ? j.processes.host : s.host,
                           .port = any ? std::uint16_t(0) : *j.processes.metrics_port,
                           .bounds = {.body = 1024, .connections = 64},
                           .log = log},
      std::vector<http::route>{metrics_route(s, std::move(collect))});
  log.info(fmt::format("metrics: {}/metrics", made->address()));
  return made;
}

}  // namespace edl::app
