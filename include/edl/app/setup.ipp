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
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/storage_error.hpp"
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

/// `a` × `b`, or the greatest number.
inline std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  return a > ~std::uint64_t{0} / b ? ~std::uint64_t{0} : a * b;
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

inline master::restore_point point_of(job const& j, std::string const& path) {
  // A new job counts its steps from the start; only who does not train speaks of the version.
  if (is_model_file(path)) return {path, j.what == command::train ? 0 : wire::model_version(path), {}};
  wire::manifest const m = wire::read_manifest(path);
  return {path, m.version, m.applied()};
}

/// How the records of two data sets differ, by their first difference.
inline std::string other_shards(std::vector<wire::manifest::shard> const& theirs,
                                std::vector<wire::manifest::shard> const& ours) {
  if (theirs.size() != ours.size())
    return fmt::format("--training_data with {} files, and this command has {}", theirs.size(), ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (theirs[i].name != ours[i].name || theirs[i].records != ours[i].records)
      return fmt::format("--training_data with {} records in {}, and this command has {} in {}",
                         theirs[i].records, theirs[i].name, ours[i].records, ours[i].name);
  return "other --training_data";
}

/// Throws error when the data set is not the one that the checkpoint's ledger speaks of.
inline void check_same_job(job const& j, std::string const& checkpoint, wire::manifest const& theirs,
                           wire::manifest const& ours) {
  auto const same_shards = std::ranges::equal(theirs.shards, ours.shards, [](auto const& a, auto const& b) {
    return a.name == b.name && a.records == b.records;
  });
  auto const differs = [&](char const* flag, auto const& was, auto const& is) {
    return was == is ? std::string() : fmt::format("{}={}, and this command has {}", flag, was, is);
  };
  std::string what = differs("--job_name", theirs.job, ours.job);
  if (what.empty()) what = differs("--seed", theirs.seed, ours.seed);
  if (what.empty()) what = differs("--minibatch_size", theirs.minibatch_size, ours.minibatch_size);
  if (what.empty()) what = differs("--records_per_task", theirs.records_per_task, ours.records_per_task);
  if (what.empty() && !same_shards) what = other_shards(theirs.shards, ours.shards);
  if (!what.empty())
    throw error(
        fmt::format("--checkpoint_dir={} holds checkpoints of {}; give the same to go on, or name another "
                    "directory",
                    j.checkpoint_dir, what));
  for (std::size_t i = 0; i < ours.shards.size(); ++i)
    if (std::uint64_t const was = theirs.shards[i].digest, is = ours.shards[i].digest; was && is && was != is)
      throw error(
          fmt::format("shard {} of --training_data={} has as many records as when {} was written, but other "
                      "ones; put the "
                      "old file back to go on, or start a new job: another --checkpoint_dir, with "
                      "--checkpoint_dir_for_init={} to begin with its values",
                      ours.shards[i].name, j.training_data, checkpoint, checkpoint));
}

/// Tells of a job whose epochs are all done, which ends at once.
inline void tell_if_done(job const& j, wire::manifest const& ours, ledger const& applied, logger const& log) {
  std::uint64_t all = 0, done = 0;
  for (auto const& shard : ours.shards) all += shard.records;
  for (auto const& [epoch, t] : applied.tallies()) done += t.records;
  for (auto const& [task, records] : applied.skipped()) done += records;
  if (all > 0 && j.num_epochs > 0 && done >= all * std::uint64_t(j.num_epochs))
    log.warning(
        fmt::format("nothing is left to train: --num_epochs={} are done already; give a larger number, or "
                    "another --checkpoint_dir",
                    j.num_epochs));
}

/// The newest checkpoint in --checkpoint_dir, as far as the command line allows to look for it.
inline wire::checkpoint_search own_checkpoints(job const& j) try {
  return wire::find_checkpoint(
      j.checkpoint_dir, wire::check::checksums,
      j.ignore_damaged_checkpoints ? wire::unreadable::passed_over : wire::unreadable::refused);
} catch (storage_error const& e) {
  throw storage_error(e.code(),
                      fmt::format("{}; give the command again when it can be read, or pass it over with "
                                  "--ignore_damaged_checkpoints",
                                  e.what()));
}

/// Where the job's own checkpoints left off, if it has any.
inline std::optional<master::restore_point> own_progress(job const& j, records const& r, logger const& log) {
  if (j.checkpoint_dir.empty()) return std::nullopt;
  auto const found = own_checkpoints(j);
  if (!found.newest && found.passed_over.empty()) return std::nullopt;
  if (!found.newest && !j.ignore_damaged_checkpoints)
    throw error(
        fmt::format("--checkpoint_dir={} holds no checkpoint that can be used ({}: {}); name another "
                    "directory, or start anew with --ignore_damaged_checkpoints",
                    j.checkpoint_dir, found.passed_over.front().path, found.passed_over.front().why));
  if (!found.passed_over.empty()) log.warning(found.warning());
  if (!found.newest) return std::nullopt;
  wire::manifest const theirs = wire::read_manifest(*found.newest);
  wire::manifest const ours = describe(j, r);
  check_same_job(j, *found.newest, theirs, ours);
  log.info(fmt::format("going on from {}", *found.newest));
  tell_if_done(j, ours, theirs.applied(), log);
  return master::restore_point{*found.newest, theirs.version, theirs.applied()};
}

/// Whether a checkpoint is one of the job's own, whose ledger counts.
inline bool is_own(job const& j, std::string const& path) {
  namespace fs = std::filesystem;
  auto const plain = [](fs::path const& p) { return (p / "").lexically_normal(); };
  return j.what == command::train && !j.checkpoint_dir.empty() &&
         plain(fs::path(path).parent_path()) == plain(j.checkpoint_dir);
}

/// A name made of `begin`, digits and `end`.
inline bool is_numbered(std::string_view name, std::string_view begin, std::string_view end) {
  if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size())
    return false;
  return name.substr(begin.size(), name.size() - begin.size() - end.size()).find_first_not_of("0123456789") ==
         name.npos;
}

inline bool is_prediction(std::string_view name) { return is_numbered(name, "part-", ".csv"); }
inline bool is_profile(std::string_view name) {
  return is_numbered(name, "worker-", ".txt") || is_numbered(name, "worker-", ".json") ||
         name == "local.txt" || name == "local.json";
}

/// Removes what an earlier run, perhaps of more tasks or workers, has left beside this one's files.
inline void remove_earlier(std::string const& flag, std::string const& directory,
                           bool (*wanted)(std::string_view), logger const& log) {
  std::error_code code;
  std::vector<std::string> found;
  for (std::filesystem::directory_iterator it(directory, code), end; !code && it != end; it.increment(code))
    if (wanted(it->path().filename().native())) found.push_back(it->path().native());
  for (std::string const& path : found)
    if (!code) std::filesystem::remove(path, code);
  if (code)
    throw error(fmt::format("{}={} holds files of an earlier run, which cannot be removed: {}", flag,
                            directory, code.message()));
  if (!found.empty())
    log.info(fmt::format("removed {} files of an earlier run from {}", found.size(), directory));
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

EDL_INLINE std::unique_ptr<wire::directory_lock> lock_outputs(job const& j, wire::lock_options::part of,
                                                              logger const& log) {
  bool const train = j.what == command::train;
  std::string const& directory = train ? j.checkpoint_dir : j.prediction_outputs;
  if (directory.empty() || j.what == command::evaluate) return nullptr;
  return std::make_unique<wire::directory_lock>(wire::lock_options{
      .directory = directory,
      .what = fmt::format("{}={}", train ? "--checkpoint_dir" : "--prediction_outputs", directory),
      .job = j.name,
      .of = of,
      .tell = [log](std::string const& text) { log.warning(text); }});
}

EDL_INLINE void clean_outputs(job const& j, bool goes_on, logger const& log) {
  if (!j.profile.empty()) {
    remove_dead_temporaries(j.profile);
    if (!goes_on) detail::remove_earlier("--profile", j.profile, detail::is_profile, log);
  }
  if (j.what == command::train) {
    if (!j.output.empty()) remove_dead_temporaries(j.output);
    if (j.checkpoint_dir.empty()) return;
    remove_dead_temporaries(j.checkpoint_dir);
    wire::remove_litter(j.checkpoint_dir, !goes_on);
  } else if (j.what == command::predict && !j.prediction_outputs.empty()) {
    remove_dead_temporaries(j.prediction_outputs);
    if (!goes_on)
      detail::remove_earlier("--prediction_outputs", j.prediction_outputs, detail::is_prediction, log);
  }
}

EDL_INLINE std::string find_model(std::string const& given, logger const& log) {
  namespace fs = std::filesystem;
  std::string path = given;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (fs::path(path).filename() == "manifest.json") path = fs::path(path).parent_path().native();
  auto const refuse = [&](std::string const& why) {
    throw error(fmt::format("--checkpoint_dir_for_init={}: {}", given, why));
  };
  std::error_code code;
  auto const status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) refuse("there is no such file or directory");
  if (code) refuse(code.message());
  if (!fs::is_directory(status)) {
    if (wire::is_part(fs::path(path).filename().native()))
      refuse("is one server's part of a checkpoint; name the directory that it lies in");
    if (!detail::is_model_file(path)) refuse("is neither a directory nor a file that ends in .safetensors");
    return path;
  }
  if (fs::exists(path + "/manifest.json", code)) return path;
  auto const found = wire::find_checkpoint(path);
  std::string const model = path + "/model.safetensors";
  if (!found.newest && !found.passed_over.empty()) refuse(found.warning());
  if (found.newest) {
    if (!found.passed_over.empty()) log.warning(found.warning());
    log.info(fmt::format("{} is the newest checkpoint in {}", *found.newest, path));
    return *found.newest;
  }
  if (fs::exists(model, code)) return model;
  refuse("holds neither a complete checkpoint (a version-N with its manifest.json) nor a model.safetensors");
  return {};
}

EDL_INLINE std::string outcome(job const& j, program const& p) {
  if (j.what != command::predict || p.on_predictions) return {};
  return fmt::format("the predictions are in {}", j.prediction_outputs);
}

EDL_INLINE std::string way_on(job const& j) {
  if (j.what != command::train) return "the same command begins anew";
  if (j.checkpoint_dir.empty()) return "nothing was kept, because there is no --checkpoint_dir";
  try {
    if (auto const newest = wire::newest_valid(j.checkpoint_dir, wire::check::sizes))
      return fmt::format("the same command goes on from {}", *newest);
  } catch (error const& e) {
    return fmt::format("whether there is a checkpoint to go on from is not known: {}", e.what());
  }
  return fmt::format("no checkpoint was complete, so that the same command begins anew{}",
                     j.checkpoint_steps > 0 ? "" : "; --checkpoint_steps=N writes one every N versions");
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
    for (data::shard const& s : r.training->shards())
      m.shards.push_back({s.name, s.records, r.training->digest(m.shards.size())});
  return m;
}

EDL_INLINE master::restore_point beginning(job const& j, logger const& log) {
  if (j.checkpoint_dir_for_init.empty()) return {};
  master::restore_point point = detail::point_of(j, find_model(j.checkpoint_dir_for_init, log));
  point.applied = {};  // its values, not its past
  return point;
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
  // A step of servers that wait is so many minibatches.
  bool const averages = j.how == strategy::parameter_server && !j.use_async;
  o.max_step = detail::times(j.max_step, averages ? std::uint64_t(j.grads_to_wait) : 1);
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
  o.start = beginning(j, log);
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
  replace_file(path + ".txt", table.str());
  replace_file(path + ".json", events.str());
  log.info(fmt::format("time by layer written to {0}.txt, a trace for Perfetto to {0}.json", path));
}

EDL_INLINE std::unique_ptr<ps::policy> policy_of(job const& j) {
  // One gradient is enough for a step: to refuse those that others overtook would only throw work away.
  bool const one_is_enough = j.grads_to_wait == 1 && !j.sync_version_tolerance;
  if (j.use_async || j.how == strategy::local || one_is_enough)
    return std::make_unique<ps::asynchronous>(j.lr_staleness_modulation);
  return std::make_unique<ps::synchronous>(std::uint32_t(j.grads_to_wait),
                                           j.sync_version_tolerance.value_or(0));
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
    s.configure(
        [&](std::size_t first, std::span<float> values) {
          std::vector<float> all(p.layout.size());
          wire::import_model(directory, p.layout, all);
          std::copy_n(all.begin() + std::ptrdiff_t(first), values.size(), values.begin());
        },
        detail::point_of(j, directory).version);
  else
    s.restore(directory, detail::is_own(j, directory) ? ps::history::kept : ps::history::forgotten);
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
    replace_file(fmt::format("{}/part-{:05}.csv", directory, task.task.index), fmt::to_string(text));
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
