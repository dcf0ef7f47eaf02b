// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>

#include "edl/compute/nn/metric/metric.hpp"
#include "edl/compute/optim/part_rates.hpp"
#include "edl/compute/optim/whole_variables.hpp"
#include "edl/core/cores.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/observe/history_log.hpp"
#include "edl/job/train/setup/setup.hpp"
#include "edl/job/train/setup/start.hpp"

namespace edl::train {
namespace detail {

inline std::vector<master::shard> shards_of(data::source const* from) {
  std::vector<master::shard> out;
  if (from)
    for (data::shard const& s : from->shards()) out.push_back({s.name, s.records});
  return out;
}

/// `a` × `b`, saturated.
inline std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  return a > ~std::uint64_t{0} / b ? ~std::uint64_t{0} : a * b;
}

/// The number of versions kept for evaluations, and for checkpoints. Before an evaluation starts, workers
/// complete the tasks that they hold, two each, and their rounds. If evaluations decide something, no such
/// version may be dropped.
inline std::size_t frozen_versions(job const& j) {
  constexpr std::size_t usual = 2, most = 64;
  bool const rounds = j.training.outer_steps > 1;
  if (!j.judges() && !rounds) return usual;
  std::uint64_t const pushing =
      j.strategy == strategy::parameter_server ? std::uint64_t(std::max(1, j.processes.num_workers)) : 1;
  std::uint64_t const held = j.judges() ? 2 * std::uint64_t(j.data.num_minibatches_per_task) : 0,
                      steps = (held + (rounds ? std::uint64_t(j.training.outer_steps) : 0)) * pushing;
  std::uint64_t every = ~std::uint64_t{0};
  for (std::uint64_t n : {j.evaluation.evaluation_steps, rounds ? j.checkpoints.checkpoint_steps : 0})
    if (n > 0) every = std::min(every, n);
  return std::size_t(std::min<std::uint64_t>(most, usual + steps / every));
}

/// --max_step in minibatches of the whole job. An earlier run may have had another number of minibatches per
/// step, and the last step of its data may have been smaller.
inline std::uint64_t last_minibatch(job const& j, master::restore_point const& from) {
  if (j.training.outer_steps > 1) return j.data.max_step;  // a version that lies in a round has all of it
  std::uint64_t const of_a_step = minibatches_of_a_step(j);
  std::uint64_t applied = 0;
  for (auto const& [epoch, t] : from.applied.tallies()) applied += t.minibatches;
  if (j.data.max_step == 0 || applied == 0 || j.strategy == strategy::allreduce)
    return times(j.data.max_step, of_a_step);
  std::uint64_t const left = times(j.data.max_step - std::min(j.data.max_step, from.version), of_a_step);
  return left > ~std::uint64_t{0} - applied ? left : applied + left;
}

inline constexpr std::size_t most_account_lines = 8;  // one for each epoch

inline part_rates rates_of(job const& j, program const& p) {
  return j.command == command::train ? rates_of_parts(p.layout, p.rates, j.training.rates) : part_rates{};
}

inline kernels kernels_of(job const& j) {
  bool const same_bits = j.compute.deterministic || j.training.verify_gradients > 0;
  return same_bits && j.compute.kernels == kernels::measured ? kernels::fixed : j.compute.kernels;
}

/// The file of kernel measurements: as given, or in the user's cache directory; empty if there is none.
inline std::string kernel_cache_of(job const& j) {
  if (!j.compute.kernel_cache.empty())
    return j.compute.kernel_cache == "none" ? std::string() : j.compute.kernel_cache;
  if (char const* const cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/edl/kernels";
  if (char const* const home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/edl/kernels";
  return {};
}

}  // namespace detail

EDL_INLINE master::job_options master_options(job const& j, program const& p, records const& r,
                                              logger const& log) {
  using enum master::job_type;
  master::job_options o;
  o.type = j.command == command::evaluate  ? evaluation_only
           : j.command == command::predict ? prediction_only
           : r.evaluation                  ? training_with_evaluation
                                           : training_only;
  o.training = detail::shards_of(r.training.get());
  o.validation = detail::shards_of(r.evaluation.get());
  o.prediction = detail::shards_of(r.prediction.get());
  if (j.training.outer_steps > 1 && !p.embeddings.tables.empty())
    throw usage_error(fmt::format(
        "--outer_steps: the rows of table '{}' are on the servers, and a worker needs new ones for "
        "each minibatch: leave it out",
        p.layout.tables.front().name));
  o.minibatch_size = std::uint64_t(j.data.minibatch_size);
  o.minibatches_per_task = std::uint64_t(j.data.num_minibatches_per_task);
  o.num_epochs = j.data.num_epochs;
  if (p.rule->depends_on_training() && r.training) o.steps = training_steps(j, *r.training);
  // For the user 0 means the end of training; the master has no such value.
  o.evaluation_steps = j.evaluation.evaluation_steps > 0 ? j.evaluation.evaluation_steps : ~std::uint64_t{0};
  o.judges = j.judges();
  o.checkpoint = o.final_checkpoint = j.command == command::train && !j.checkpoints.checkpoint_dir.empty();
  o.seed = j.seed;
  o.shuffle = j.data.shuffle;
  o.flags = shared_flags(j, true, &p);
  o.max_retries = std::uint32_t(j.data.max_task_retries);
  o.max_damaged = j.data.max_damaged;
  o.num_workers = std::uint32_t(std::max(1, j.processes.num_workers));
  o.num_servers = std::uint32_t(j.processes.num_ps_pods);
  o.ranges = std::uint32_t(j.processes.ps_ranges);
  o.server_copies = unsigned(j.processes.ps_replicas);
  o.replicas = j.strategy == strategy::allreduce;
  o.lanes = o.replicas && j.training.fixed_global_batch ? o.num_workers : 0;
  o.rests_to_evaluate = j.rests_to_evaluate();
  o.worker_failures = std::uint32_t(j.processes.relaunch_on_worker_failure);
  o.checks = j.training.verify_gradients > 0;
  o.leave_bad_nodes = j.training.leave_bad_nodes;
  o.start = start_of(j, p, r, log);
  o.max_step = detail::last_minibatch(j, o.start);
  std::uint64_t applied = 0;
  for (auto const& [epoch, t] : o.start.applied.tallies()) applied += t.minibatches;
  if (j.command == command::train && j.data.max_step > 0 && applied >= o.max_step)
    log.warning(
        fmt::format("--max_step={} is reached already: {} is at version {}, and nothing is trained; give a "
                    "larger one to go on",
                    j.data.max_step, o.start.directory, o.start.version));
  return o;
}

EDL_INLINE std::vector<std::string> shared_flags(job const& j, bool reads_records, program const* of) {
  if (j.command != command::train) return {};
  std::vector<std::string> all{fmt::format("--seed={}", j.seed)};
  if (j.training.outer_steps > 1) all.push_back(fmt::format("--outer_steps={}", j.training.outer_steps));
  if (!reads_records) return all;
  all.push_back(fmt::format("--shuffle={}", j.data.shuffle));
  all.push_back(fmt::format("--minibatch_size={}", j.data.minibatch_size));
  if (of && of->adapted && of->adapted->base)
    all.push_back(fmt::format("--base_model of CRC-32 {:08x}", of->adapted->base->crc32));
  return all;
}

EDL_INLINE int threads_of(job const& j, int processes) {
  return j.compute.num_threads > 0 ? j.compute.num_threads
                                   : std::max(1, granted_cores() / std::max(1, processes));
}

EDL_INLINE std::string precision_note(job const& j, worker::trainer const& from) {
  std::string const device = from.device();
  bool const processor = device.empty() || device.starts_with("the processor");
  // --device=cpu is reported before there is a trainer.
  if (j.compute.precision != precision::tf32 || j.compute.device != worker::device_kind::any || !processor)
    return {};
  return "--precision=tf32 does nothing: it is for GPUs, and the processor computes in float32 here";
}

EDL_INLINE worker::trainer_options trainer_options_of(job const& j, program const& p, int workers, int id) {
  // Call what may throw first: GCC 12 destroys the members of a half-built aggregate twice.
  auto rated = detail::rates_of(j, p).elements;
  std::string compiled = detail::kernel_cache_of(j);
  if (!compiled.empty()) compiled += "-cuda";
  return {.max_batch = j.data.minibatch_size,
          .seed = j.seed,
          .on = j.compute.device,
          .device = {.threads = threads_of(j, workers),
                     .kernels = detail::kernels_of(j),
                     .kernel_cache = detail::kernel_cache_of(j),
                     .precision =
                         j.compute.precision == precision::tf32 ? precision::float32 : j.compute.precision},
          .cuda = {.index = workers > 1 ? id : 0,
                   .precision = j.compute.precision,
                   .measured = detail::kernels_of(j) == kernels::measured,
                   .compiled = std::move(compiled)},
          .keep = j.compute.activations.value_or(
              j.compute.precision == precision::bfloat16 ? nn::storage::compact : nn::storage::recomputed),
          .memory_budget = std::size_t(j.compute.memory_budget) * 1'000'000,
          .samples = j.compute.keep_samples,
          .rated = std::move(rated),
          .frozen = p.adapted ? p.adapted->values() : view<float>(),
          .profile = !j.compute.profile.empty(),
          .compares = j.command == command::evaluate};
}

EDL_INLINE worker::session_options session_options_of(job const& j, program const& p) {
  auto fixed = fixed_elements(p.layout, j.training.freeze);
  auto rated = detail::rates_of(j, p).elements;
  return {.trains = j.command == command::train,
          .one_pass = j.data.num_epochs == 1,
          .evaluates = j.evaluation.evaluation_steps != 0,
          .minibatch_size = j.data.minibatch_size,
          .loader_threads = j.data.loader_threads,
          .seed = j.seed,
          .shuffle = j.data.shuffle,
          .skip_damaged = j.data.skip_damaged,
          .get_model_steps = j.training.get_model_steps,
          .rounds = j.training.outer_steps > 1,
          .clip = {.value = j.training.clip_value, .norm = j.training.clip_norm},
          .fixed = std::move(fixed),
          .rated = std::move(rated),
          .log_loss_steps = j.observe.log_loss_steps,
          .checks = {
              .period = j.training.verify_gradients > 0 ? std::uint64_t(1 / j.training.verify_gradients) : 0,
              .common = j.strategy == strategy::allreduce,
              .weights = j.checkpoints.checkpoint_steps}};
}

EDL_INLINE std::unique_ptr<ps::policy> policy_of(job const& j) {
  if (j.training.outer_steps > 1)
    return std::make_unique<ps::rounds>(std::uint32_t(j.training.outer_steps), j.training.outer_learning_rate,
                                        j.training.outer_momentum);
  // If one gradient is enough for a step, refusing those that others overtook would only waste work.
  bool const one_is_enough =
      j.training.grads_to_wait == 1 && (j.strategy == strategy::local || !j.training.sync_version_tolerance);
  if (j.training.use_async || one_is_enough)
    return std::make_unique<ps::asynchronous>(j.training.lr_staleness_modulation);
  return std::make_unique<ps::synchronous>(std::uint32_t(j.training.grads_to_wait),
                                           j.training.sync_version_tolerance.value_or(0));
}

EDL_INLINE std::uint64_t table_seed(std::uint64_t job_seed, std::size_t table) {
  return mix(mix(job_seed, 4), table);
}

EDL_INLINE ps::store_options store_options_of(job const& j, program const& p, ps::policy const& when,
                                              std::uint32_t part, std::uint32_t parts) {
  p.rule->check(p.layout);
  bool const watches_memory = j.command == command::train && j.training.verify_gradients > 0 &&
                              j.strategy == strategy::parameter_server;
  std::vector<sparse::table_options> tables;
  for (std::size_t t = 0; t < p.embeddings.tables.size(); ++t)
    tables.push_back({.width = p.embeddings.tables[t].width,
                      .initial = p.embeddings.initials[t],
                      .seed = table_seed(j.seed, t),
                      .policy = p.embeddings.policies[t],
                      .remembers_removed = j.command == command::train &&
                                           !j.checkpoints.checkpoint_dir.empty() &&
                                           j.checkpoints.delta_checkpoints > 0,
                      .watches_memory = watches_memory});
  auto fixed = fixed_elements(p.layout, j.training.freeze);
  auto rates = when.rule() ? part_rates{} : detail::rates_of(j, p);  // the workers' own steps have them
  return {.layout = p.layout,
          .elements = partition(p.layout.size(), parts, part, p.layout.borders),
          .slots = partition(sparse::hash_slots, parts, part),
          .tables = std::move(tables),
          .rule = when.rule() ? *when.rule() : *p.rule,
          .when = when,
          .evaluation_steps = j.command == command::train ? j.evaluation.evaluation_steps : 0,
          .checkpoint_steps = j.command == command::train ? j.checkpoints.checkpoint_steps : 0,
          .most_frozen = detail::frozen_versions(j),
          .rests_to_evaluate = j.rests_to_evaluate(),
          .moving_average = j.command == command::train ? j.training.moving_average : 0,
          .fixed = std::move(fixed),
          .rates = std::move(rates),
          .watches_memory = watches_memory};
}

EDL_INLINE std::string evaluation_line(program const& p, master::evaluation_result const& r,
                                       result_format how) {
  if (how == result_format::json)
    return fmt::format(R"({{"version":{},"records":{},"metrics":{}}})", r.evaluated.version, r.records,
                       metrics_as_json(p.metrics(r.totals)));
  return fmt::format("Evaluation metrics[v={}]: {}", r.evaluated.version, to_text(p.metrics(r.totals)));
}

EDL_INLINE std::string odd_metrics(job const& j, program const& p, master::evaluation_result const& r) {
  std::vector<std::string> odd;
  for (auto const& [name, value] : p.metrics(r.totals))
    if (!std::isfinite(value)) odd.push_back(fmt::format("{} is {}", name, value));
  if (odd.empty()) return {};
  bool const decides = j.evaluation.save_best || j.evaluation.early_stopping || j.evaluation.plateau;
  return fmt::format(
      "version {}, evaluated on {}: {}{}", r.evaluated.version, counted(r.records, "record"),
      fmt::join(odd, ", "),
      decides ? "; --save_best, --early_stopping and reduce_on_plateau count it as no progress" : "");
}

EDL_INLINE std::vector<std::string> account_lines(master::coordinator const& c) {
  std::vector<std::string> lines;
  if (!c.tasks()) return lines;
  std::uint64_t const records = c.tasks()->plan().records();
  auto const all = c.tasks()->done_by_epoch();
  auto const line = [&](std::string const& which, master::task_counters const& done) {
    lines.push_back(fmt::format(
        "{}{} records in the data set, {} counted once, {} skipped as damaged, {} left", which, records,
        done.records_done, done.records_skipped, records - done.records_done - done.records_skipped));
  };
  // Merge consecutive epochs without incidents into one line, so that earlier lines stay visible.
  auto const alike = [](auto const& a, auto const& b) {
    return a.records_done == b.records_done && a.records_skipped == b.records_skipped;
  };
  for (auto it = all.begin(); it != all.end();) {
    auto end = std::next(it);
    auto const last = std::prev(all.end());
    while (all.size() > detail::most_account_lines && end != all.end() && end != last &&
           alike(it->second, end->second))
      ++end;
    auto const newest = std::prev(end)->first;
    line(newest == it->first ? fmt::format("Epoch {}: ", newest)
                             : fmt::format("Epochs {} to {}: each ", it->first, newest),
         it->second);
    it = end;
  }
  return lines;
}

}  // namespace edl::train
