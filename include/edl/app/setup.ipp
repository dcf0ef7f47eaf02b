// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "edl/app/setup.hpp"
#include "edl/core/cores.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/nn/metric/values.hpp"
#include "edl/nn/trace.hpp"
#include "edl/wire/checkpoint_directory.hpp"
#include "edl/wire/model_file.hpp"

namespace edl::app {
namespace detail {

inline std::vector<master::shard> shards_of(data::source const* from) {
  std::vector<master::shard> out;
  if (from)
    for (data::shard const& s : from->shards()) out.push_back({s.name, s.records});
  return out;
}

/// A model exported by --output, or by anybody with the same names and extents.
inline bool is_model_file(std::string const& path) { return path.ends_with(".safetensors"); }

/// The value of an enumeration whose names are in order; flags let no other through.
template <class E, class Names>
E named(Names const& names, std::string const& name) {
  return E(std::ranges::find(names, name) - names.begin());
}

inline kernels kernels_of(job const& j) {
  auto const told = named<kernels>(kernels_names, j.kernels);
  return j.deterministic && told == kernels::measured ? kernels::fixed : told;
}

/// The file of measurements: as told, or where a user's caches are; empty where the user has no place.
inline std::string kernel_cache_of(job const& j) {
  if (!j.kernel_cache.empty()) return j.kernel_cache == "none" ? std::string() : j.kernel_cache;
  if (char const* const cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/edl/kernels";
  if (char const* const home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/edl/kernels";
  return {};
}

inline master::restore_point point_of(std::string const& directory) {
  if (is_model_file(directory)) return {directory, 0, {}};
  wire::manifest const m = wire::read_manifest(directory);
  return {directory, m.version, m.applied()};
}

/// Where the job's own checkpoints left off, if it has any.
inline std::optional<master::restore_point> own_progress(job const& j, records const& r, logger const& log) {
  if (j.checkpoint_dir.empty()) return std::nullopt;
  auto const newest = wire::newest_valid(j.checkpoint_dir);
  if (!newest) return std::nullopt;
  wire::manifest const theirs = wire::read_manifest(*newest), ours = describe(j, r);
  auto const same_shards = std::ranges::equal(theirs.shards, ours.shards, [](auto const& a, auto const& b) {
    return a.name == b.name && a.records == b.records;
  });
  if (theirs.job != ours.job || !same_shards || theirs.seed != ours.seed ||
      theirs.minibatch_size != ours.minibatch_size || theirs.records_per_task != ours.records_per_task)
    throw error(fmt::format(
        "--checkpoint_dir={} holds checkpoints of {}; to go on with it give the same records, --job_name, "
        "--seed and sizes, otherwise name another directory",
        j.checkpoint_dir,
        theirs.job != ours.job ? fmt::format("another job ('{}')", theirs.job)
                               : "this job with other records or sizes"));
  log.info(fmt::format("going on from {}", *newest));
  return master::restore_point{*newest, theirs.version, theirs.applied()};
}

/// Whoever makes a new model reads the training data for itself: all see the same.
inline initial_variables prepared(job const& j, program const& p) {
  initial_variables all(p.layout);
  std::unique_ptr<data::source> from;
  try {
    from = data::open_source(j.training_data, {.skip_damaged = j.skip_damaged});
  } catch (error const& e) {
    throw error(
        fmt::format("{}; the model prepares its variables by the training data, so that servers must be "
                    "able to read it, too",
                    e.what()));
  }
  p.prepare(*from, j.skip_damaged, all);
  return all;
}

inline void write_whole(std::string const& path, std::string const& text) {
  std::string const temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "we");
  bool const ok =
      file && std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  bool const closed = file && std::fclose(file) == 0;
  if (!ok || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::string const why = std::strerror(errno);
    std::remove(temporary.c_str());
    throw error(fmt::format("cannot write {}: {}", path, why));
  }
}

}  // namespace detail

EDL_INLINE void make_directories(job const& j) {
  auto const make = [](char const* flag, std::string const& path) {
    std::error_code failed;
    if (!path.empty() && !std::filesystem::create_directories(path, failed) && failed)
      throw usage_error(fmt::format("{}={}: {}", flag, path, failed.message()));
    if (!path.empty() && ::access(path.c_str(), W_OK) != 0)
      throw usage_error(fmt::format("{}={}: cannot write there: {}", flag, path, std::strerror(errno)));
  };
  make("--profile", j.profile);
  if (j.what == command::train) {
    make("--checkpoint_dir", j.checkpoint_dir);
    make("--output", j.output);
  } else if (j.what == command::predict) {
    make("--prediction_outputs", j.prediction_outputs);
  }
}

EDL_INLINE records open_records(job const& j, logger const& log) {
  data::source_options const options{.skip_damaged = j.skip_damaged};
  auto const open = [&](std::string const& path) {
    auto from = path.empty() ? nullptr : data::open_source(path, options);
    if (from)
      for (std::string const& line : from->damage()) log.warning(line);
    return from;
  };
  return {open(j.training_data), open(j.validation_data), open(j.prediction_data)};
}

EDL_INLINE wire::manifest describe(job const& j, records const& r) {
  wire::manifest m;
  m.job = j.name;
  m.minibatch_size = std::uint64_t(j.minibatch_size);
  m.records_per_task = j.records_per_task();
  m.seed = j.seed;
  m.epochs = std::uint64_t(std::max(0, j.num_epochs));
  if (r.training)
    for (data::shard const& s : r.training->shards()) m.shards.push_back({s.name, s.records});
  return m;
}

EDL_INLINE master::job_options master_options(job const& j, records const& r, logger const& log) {
  using enum master::job_type;
  master::job_options o;
  o.type = j.what == command::evaluate  ? evaluation_only
           : j.what == command::predict ? prediction_only
           : r.evaluation               ? training_with_evaluation
                                        : training_only;
  o.training = detail::shards_of(r.training.get());
  o.validation = detail::shards_of(r.evaluation.get());
  o.prediction = detail::shards_of(r.prediction.get());
  o.minibatch_size = std::uint64_t(j.minibatch_size);
  o.minibatches_per_task = std::uint64_t(j.num_minibatches_per_task);
  o.num_epochs = j.num_epochs;
  o.max_step = j.max_step;
  // Zero is the end only to the user, and never to the master.
  o.evaluation_steps = j.evaluation_steps > 0 ? j.evaluation_steps : ~std::uint64_t{0};
  o.checkpoint = o.final_checkpoint = j.what == command::train && !j.checkpoint_dir.empty();
  o.seed = j.seed;
  o.shuffle = j.shuffle;
  o.max_retries = std::uint32_t(j.max_task_retries);
  o.skip_damaged = j.skip_damaged;
  o.num_workers = std::uint32_t(std::max(1, j.num_workers));
  o.num_servers = std::uint32_t(j.num_ps_pods);
  o.ranges = std::uint32_t(j.ps_ranges);
  o.server_copies = unsigned(j.ps_replicas);
  o.replicas = j.how == strategy::allreduce;
  o.lanes = o.replicas && j.fixed_global_batch ? o.num_workers : 0;
  o.worker_failures = std::uint32_t(j.relaunch_on_worker_failure);
  if (j.what == command::train)
    if (auto const own = detail::own_progress(j, r, log)) {
      o.start = *own;
      return o;
    }
  if (!j.checkpoint_dir_for_init.empty()) {
    o.start = detail::point_of(j.checkpoint_dir_for_init);
    o.start.applied = {};  // its values, not its past
  }
  return o;
}

EDL_INLINE worker::trainer_options trainer_options_of(job const& j, int workers, int id) {
  return {.max_batch = j.minibatch_size,
          .seed = j.seed,
          .on = detail::named<worker::device_kind>(worker::device_names, j.device),
          .device = {.threads = j.num_threads > 0 ? j.num_threads
                                                  : std::max(1, granted_cores() / std::max(1, workers)),
                     .kernels = detail::kernels_of(j),
                     .kernel_cache = detail::kernel_cache_of(j)},
          .cuda = {.index = workers > 1 ? id : 0,
                   .precision = detail::named<precision>(precision_names, j.precision),
                   .measured = detail::kernels_of(j) == kernels::measured},
          .keep = detail::named<nn::storage>(nn::storage_names, j.activations),
          .samples = detail::named<worker::keep_samples>(worker::keep_samples_names, j.keep_samples),
          .profile = !j.profile.empty()};
}

EDL_INLINE void write_profile(job const& j, worker::trainer const& t, std::string const& name,
                              logger const& log) {
  nn::trace const* const trace = t.profile();
  if (!trace) return;
  std::ostringstream table, events;
  trace->write_table(table);
  trace->write_events(events);
  std::string const path = j.profile + "/" + name;
  detail::write_whole(path + ".txt", table.str());
  detail::write_whole(path + ".json", events.str());
  log.info(fmt::format("time by layer written to {0}.txt, a trace for Perfetto to {0}.json", path));
}

EDL_INLINE std::unique_ptr<ps::policy> policy_of(job const& j) {
  if (j.use_async || j.how == strategy::local)
    return std::make_unique<ps::asynchronous>(j.lr_staleness_modulation);
  return std::make_unique<ps::synchronous>(std::uint32_t(j.grads_to_wait), j.sync_version_tolerance);
}

EDL_INLINE ps::store_options store_options_of(job const& j, program const& p, ps::policy const& when,
                                              element_range elements) {
  return {.layout = p.layout,
          .elements = elements,
          .rule = *p.rule,
          .when = when,
          .evaluation_steps = j.what == command::train ? j.evaluation_steps : 0,
          .checkpoint_steps = j.what == command::train ? j.checkpoint_steps : 0};
}

EDL_INLINE void configure(ps::store& s, job const& j, program const& p, std::string const& directory) {
  if (directory.empty())
    s.configure([&](std::size_t first, std::span<float> values) {
      p.initialise(j.seed, first, values);
      if (p.prepare && j.what == command::train) detail::prepared(j, p).write(first, values);
    });
  else if (detail::is_model_file(directory))
    s.configure([&](std::size_t first, std::span<float> values) {
      std::vector<float> all(p.layout.size());
      wire::import_model(directory, p.layout, all);
      std::copy_n(all.begin() + std::ptrdiff_t(first), values.size(), values.begin());
    });
  else
    s.restore(directory, directory == j.checkpoint_dir_for_init ? ps::history::forgotten : ps::history::kept);
}

EDL_INLINE worker::prediction_sink predictions_of(job const& j, program const& p, int id) {
  if (j.what != command::predict) return {};
  if (p.on_predictions)
    return [&p, id](worker::assignment const&, view<float> outputs) {
      p.on_predictions(int(outputs.size() / p.outputs), outputs, id);
    };
  return [directory = j.prediction_outputs, width = p.outputs](worker::assignment const& task,
                                                               view<float> outputs) {
    fmt::memory_buffer text;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      fmt::format_to(std::back_inserter(text), "{}{}", outputs[i], i % width + 1 == width ? '\n' : ',');
    detail::write_whole(fmt::format("{}/part-{:05}.csv", directory, task.task.index), fmt::to_string(text));
  };
}

EDL_INLINE std::string evaluation_line(program const& p, master::evaluation_result const& r) {
  return fmt::format("Evaluation metrics[v={}]: {}", r.of.version, to_text(p.metrics(r.totals)));
}

EDL_INLINE std::vector<std::string> account_lines(master::coordinator const& c) {
  std::vector<std::string> lines;
  if (!c.tasks()) return lines;
  std::uint64_t const records = c.tasks()->plan().records();
  for (auto const& [epoch, done] : c.tasks()->done_by_epoch())
    lines.push_back(
        fmt::format("Epoch {}: {} records in the data set, {} counted once, {} skipped as damaged, {} left",
                    epoch, records, done.records_done, done.records_skipped,
                    records - done.records_done - done.records_skipped));
  return lines;
}

}  // namespace edl::app
