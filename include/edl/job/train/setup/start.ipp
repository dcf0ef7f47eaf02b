// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <tuple>
#include <vector>

#include "edl/base/bucket/cache.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/storage_error.hpp"
#include "edl/core/text.hpp"
#include "edl/job/train/setup/hyperparameters.hpp"
#include "edl/job/train/setup/onnx_model.hpp"
#include "edl/job/train/setup/setup.hpp"
#include "edl/job/train/setup/start.hpp"

namespace edl::train {
namespace detail {

inline constexpr char const* nothing_there =
    "holds neither a complete checkpoint (a version-N with its manifest.json) nor a model.safetensors";

inline master::restore_point point_of(job const& j, found_model const& found) {
  // A new job counts its steps from 0; only jobs that do not train report the model's version.
  if (j.checkpoints.skip_mismatch) return {found.common(), 0, {}};
  if (checkpoint::names_model_file(found.path))
    return {found.common(), j.command == command::train ? 0 : checkpoint::model_version(found.path), {}};
  checkpoint::manifest const m = checkpoint::read_manifest(found.path);
  return {found.common(), m.version, m.applied()};
}

/// Describes the first difference between the records of two data sets.
inline std::string other_shards(std::vector<checkpoint::manifest::shard> const& theirs,
                                std::vector<checkpoint::manifest::shard> const& ours) {
  if (theirs.size() != ours.size())
    return fmt::format("--training_data with {}, but this command has {}", counted(theirs.size(), "file"),
                       ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (theirs[i].name != ours[i].name || theirs[i].records != ours[i].records)
      return fmt::format("--training_data with {} in {}, but this command has {} in {}",
                         counted(theirs[i].records, "record"), theirs[i].name, ours[i].records, ours[i].name);
  return "other --training_data";
}

/// Throws error unless the data set is that of the checkpoint's ledger.
inline void check_same_job(job const& j, std::string const& checkpoint, checkpoint::manifest const& theirs,
                           checkpoint::manifest const& ours) {
  auto const same_shards = std::ranges::equal(theirs.shards, ours.shards, [](auto const& a, auto const& b) {
    return a.name == b.name && a.records == b.records;
  });
  auto const differs = [&](char const* flag, auto const& was, auto const& is) {
    return was == is ? std::string() : fmt::format("{}={}, but this command has {}", flag, was, is);
  };
  std::string what = differs("--job_name", theirs.job, ours.job);
  if (what.empty()) what = differs("--seed", theirs.seed, ours.seed);
  if (what.empty() && theirs.shuffle) what = differs("--shuffle", *theirs.shuffle, *ours.shuffle);
  if (what.empty()) what = differs("--minibatch_size", theirs.minibatch_size, ours.minibatch_size);
  if (what.empty()) what = differs("--records_per_task", theirs.records_per_task, ours.records_per_task);
  if (what.empty() && theirs.base_crc32 != ours.base_crc32)
    what = fmt::format("--base_model={} of CRC-32 {:08x}, but this command has {} of {:08x}",
                       theirs.base_model, theirs.base_crc32, ours.base_model, ours.base_crc32);
  std::string const missing = read_facts(theirs.record).missing, now = j.data.missing.value_or("auto");
  if (what.empty() && !missing.empty() && data::read_missing_words(missing) != data::read_missing_words(now))
    what = differs("--missing", missing, now);
  bool const other_records = what.empty() && !same_shards;
  if (other_records) what = other_shards(theirs.shards, ours.shards);
  if (!what.empty())
    throw error(fmt::format(
        "--checkpoint_dir={} holds checkpoints of {}; give the same to continue it, or name "
        "another directory{}",
        j.checkpoints.checkpoint_dir, what,
        other_records
            ? fmt::format(", with --checkpoint_dir_for_init={} to begin with this model", checkpoint)
            : ""));
  for (std::size_t i = 0; i < ours.shards.size(); ++i)
    if (std::uint64_t const was = theirs.shards[i].digest, is = ours.shards[i].digest; was && is && was != is)
      throw error(fmt::format(
          "shard {} of --training_data={} has as many records as when {} was written, but other "
          "ones; restore the old file to go on, or start a new job: another --checkpoint_dir, with "
          "--checkpoint_dir_for_init={} to begin with its values",
          ours.shards[i].name, j.data.training_data, checkpoint, checkpoint));
}

/// Logs that a job's epochs are all done, so that it ends at once.
inline void tell_if_done(job const& j, checkpoint::manifest const& ours, ledger const& applied,
                         logger const& log) {
  std::uint64_t all = 0, done = 0;
  for (auto const& shard : ours.shards) all += shard.records;
  for (auto const& [epoch, t] : applied.tallies()) done += t.records;
  for (auto const& [task, records] : applied.skipped()) done += records;
  if (all > 0 && j.data.num_epochs > 0 && done >= all * std::uint64_t(j.data.num_epochs))
    log.warning(
        fmt::format("nothing is left to train: all --num_epochs={} are done; give a larger number, or "
                    "another --checkpoint_dir",
                    j.data.num_epochs));
}

/// Logs hyperparameters whose values differ from the checkpoint's.
inline void tell_other_values(checkpoint::manifest const& theirs, checkpoint::manifest const& ours,
                              logger const& log) {
  settings const was = read_settings(theirs.hyperparameters);
  for (auto const& [name, value] : read_settings(ours.hyperparameters))
    if (auto const old = std::ranges::find(was, name, &settings::value_type::first);
        old != was.end() && old->second != value)
      log.warning(fmt::format("hyperparameter {} changes from {} to {}: --set {}={} keeps the old value",
                              name, value, old->second, name, old->second));
}

/// The part of a manifest that identifies the job.
inline checkpoint::manifest describe(job const& j, program const& p, records const& r) {
  checkpoint::manifest m;
  m.job = j.name;
  m.minibatch_size = std::uint64_t(j.data.minibatch_size);
  m.records_per_task = j.data.records_per_task();
  m.seed = j.seed;
  m.shuffle = j.data.shuffle;
  m.epochs = std::uint64_t(std::max(0, j.data.num_epochs));
  m.hyperparameters = j.hyperparameters;
  if (p.adapted && p.adapted->base)
    m.base_model = p.adapted->base->path, m.base_crc32 = p.adapted->base->crc32;
  if (r.training)
    for (data::shard const& s : r.training->shards())
      m.shards.push_back({s.name, s.records, r.training->digest(m.shards.size())});
  return m;
}

/// Searches --checkpoint_dir for the newest checkpoint, if the command line permits that.
inline checkpoint::checkpoint_search own_checkpoints(job const& j) try {
  return checkpoint::find_checkpoint(checkpoints_of(j), checkpoint::check::checksums,
                                     j.checkpoints.ignore_damaged_checkpoints
                                         ? checkpoint::unreadable::passed_over
                                         : checkpoint::unreadable::refused);
} catch (storage_error const& e) {
  throw storage_error(e.code(), fmt::format("{}; run the command again when it can be read, or skip it with "
                                            "--ignore_damaged_checkpoints",
                                            e.what()));
}

/// The point from which the job's own newest checkpoint continues, if there is one.
inline std::optional<master::restore_point> own_progress(job const& j, program const& p, records const& r,
                                                         logger const& log) {
  if (j.checkpoints.checkpoint_dir.empty()) return std::nullopt;
  auto const found = own_checkpoints(j);
  if (!found.unfinished.empty()) log.warning(found.unfinished);
  if (!found.newest && found.passed_over.empty()) return std::nullopt;
  if (!found.newest && !j.checkpoints.ignore_damaged_checkpoints)
    throw error(fmt::format(
        "--checkpoint_dir={} holds no checkpoint that can be used ({}: {}); name another "
        "directory, or start anew with --ignore_damaged_checkpoints",
        j.checkpoints.checkpoint_dir, found.passed_over.front().path, found.passed_over.front().why));
  if (!found.passed_over.empty()) log.warning(found.warning());
  if (!found.newest) return std::nullopt;
  checkpoint::manifest const theirs = checkpoint::read_manifest(checkpoints_of(j).at(*found.newest));
  checkpoint::manifest const ours = describe(j, p, r);
  check_same_job(j, *found.newest, theirs, ours);
  log.info(fmt::format("going on from {}", *found.newest));
  tell_other_values(theirs, ours, log);
  if (j.training.moving_average > 0 && !ps::has_average(readable_model(*found.newest, cache_of(j)).path()))
    log.warning(
        fmt::format("{} has no moving average of the weights: --moving_average={} begins one at its weights",
                    *found.newest, j.training.moving_average));
  tell_if_done(j, ours, theirs.applied(), log);
  return master::restore_point{*found.newest, theirs.version, theirs.applied(), theirs.generation};
}

/// Whether a checkpoint is the job's own, so that its ledger counts.
inline bool is_own(job const& j, std::string const& path) {
  namespace fs = std::filesystem;
  auto const plain = [](fs::path const& p) { return (p / "").lexically_normal(); };
  return j.command == command::train && !j.checkpoints.checkpoint_dir.empty() &&
         plain(fs::path(path).parent_path()) == plain(j.checkpoints.checkpoint_dir);
}

/// Checks which parts of a new job's model the given one has, and logs them.
inline void tell_what_fits(job const& j, program const& p, std::string const& path, logger const& log) {
  auto const from = open_other_model(p, path);
  auto const match = from.match(p.layout, p.weight_names);
  std::string const what = fmt::format("--checkpoint_dir_for_init={}: {}",
                                       j.checkpoints.checkpoint_dir_for_init, match.describe());
  if (match.found.empty() && !p.layout.variables.empty())
    throw error(what + "; a file of another program needs weight_names in the model");
  if (!match.whole() && !j.checkpoints.skip_mismatch)
    throw error(
        what +
        "; --skip_mismatch takes the variables that fit, and leaves the others at their initial values");
  if (!j.checkpoints.skip_mismatch && checkpoint::names_model_file(path))
    for (table_shape const& t : p.layout.tables)
      if (!from.has_rows(t))
        throw error(fmt::format(
            "--checkpoint_dir_for_init={}: {} for table '{}': give a checkpoint, or a model written by "
            "--output, or add --skip_mismatch, with which the table begins without rows",
            j.checkpoints.checkpoint_dir_for_init,
            checkpoint::is_onnx(path) ? "edl reads no rows from an ONNX file"
                                      : fmt::format("it has no rows of {} values", t.width),
            t.name));
  if (!j.checkpoints.skip_mismatch) return;
  log.info("beginning with the variables that fit from " + what);
  for (table_shape const& t : p.layout.tables)
    if (!from.has_rows(t))
      log.info(fmt::format(
          "table '{}' begins without rows: only an exported model with such a table contains any", t.name));
}

/// Evaluation and prediction need the complete model.
inline void check_whole(program const& p, std::string const& path) {
  if (auto const match = open_other_model(p, path).match(p.layout, p.weight_names); !match.whole())
    throw error(fmt::format("{} does not belong to this model: {}", path, match.describe()));
  if (checkpoint::is_onnx(path)) checkpoint::import_rows(path, p.layout, {});  // throws: it has no rows
}

/// Every process that creates the initial model reads the training data itself, so all see the same.
inline initial_variables prepared(job const& j, program const& p) {
  initial_variables all(p.layout);
  std::unique_ptr<data::source> from;
  try {
    from = open_training_data(j, p.open);
  } catch (error const& e) {
    throw error(fmt::format(
        "{}; the model prepares its variables by the training data, so servers must be able to read it, too",
        e.what()));
  }
  p.prepare(*from, j.data.skip_damaged, all);
  return all;
}

inline found_model model_in_bucket(std::string given, checkpoint::check how, std::string_view flag,
                                   bucket::cache_options const& cache);

inline found_model model_at(std::string const& given, checkpoint::check how, std::string_view flag,
                            bucket::cache_options const& cache) {
  if (bucket::names_objects(given)) return model_in_bucket(given, how, flag, cache);
  namespace fs = std::filesystem;
  std::string path = bucket::without_slashes(given);
  if (fs::path(path).filename() == "manifest.json") path = fs::path(path).parent_path().native();
  auto const refuse = [&](std::string const& why) { throw error(fmt::format("{}{}: {}", flag, given, why)); };
  std::error_code code;
  auto const status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) refuse("no such file or directory");
  if (code) refuse(code.message());
  if (!fs::is_directory(status)) {
    if (checkpoint::is_part(fs::path(path).filename().native()))
      refuse("is one server's part of a checkpoint; name the directory that it lies in");
    if (!checkpoint::names_model_file(path))
      refuse("is neither a directory nor a file that ends in .safetensors, .safetensors.index.json or .onnx");
    if (how == checkpoint::check::checksums) checkpoint::check_model(path);
    return {.path = path};
  }
  if (fs::exists(path + "/manifest.json", code)) return {.path = path};
  auto const found = checkpoint::find_checkpoint(path, how);
  std::string const model = path + "/model.safetensors";
  if (!found.newest && !found.passed_over.empty()) refuse(found.warning());
  if (found.newest && found.passed_over.empty())
    return {.path = *found.newest, .directory = path, .unfinished = found.unfinished};
  if (found.newest)
    return {.path = *found.newest,
            .directory = path,
            .warning = found.warning(),
            .damaged = found.passed_over.front().path};
  if (fs::exists(model, code)) {
    if (how == checkpoint::check::checksums) checkpoint::check_model(model);
    return {.path = model};
  }
  if (fs::exists(path + "/" + checkpoint::model_index, code))
    return {.path = path + "/" + checkpoint::model_index};
  refuse(nothing_there);
  return {};
}

/// The copy of one model, or of one checkpoint.
inline found_model model_copy(std::string const& url, checkpoint::check how, std::string_view flag,
                              bucket::cache_options const& cache) {
  auto const copy = std::make_shared<bucket::local_copy const>(bucket::copy_of(url, cache));
  found_model found = model_at(copy->path(), how, fmt::format("{}{}: its copy ", flag, url), cache);
  if (!checkpoint::names_model_file(found.path)) checkpoint::verify_checkpoint(found.path, how);
  found.url = url;
  found.copy = copy;
  return found;
}

inline found_model model_in_bucket(std::string given, checkpoint::check how, std::string_view flag,
                                   bucket::cache_options const& cache) {
  static constexpr std::string_view manifest = "/manifest.json";
  given = bucket::without_slashes(std::move(given));
  if (given.ends_with(manifest)) given.resize(given.size() - manifest.size());
  if (given.ends_with(checkpoint::index_ending))
    throw error(fmt::format(
        "{}{}: is an index; name the prefix that it and the files that it names lie below", flag, given));
  if (checkpoint::names_model_file(given)) {
    auto const [bucket, key] = bucket::parts_of(given);
    if (!bucket::store(bucket, cache.store).find(key))
      throw no_model(fmt::format("{}{}: no such object", flag, given));
    return model_copy(given, how, flag, cache);
  }
  bucket::place const at(given, cache);
  auto const names = at.names();
  if (std::ranges::find(names, manifest.substr(1)) != names.end())
    return model_copy(given + "/", how, flag, cache);
  auto const search = checkpoint::find_checkpoint(at, how);
  if (!search.newest && !search.passed_over.empty())
    throw error(fmt::format("{}{}: {}", flag, given, search.warning()));
  if (!search.newest && std::ranges::find(names, "model.safetensors") != names.end())
    return model_copy(given + "/model.safetensors", how, flag, cache);
  if (!search.newest && std::ranges::find(names, checkpoint::model_index) != names.end())
    return model_copy(given + "/", how, flag, cache);
  if (!search.newest) throw no_model(fmt::format("{}{}: {}", flag, given, nothing_there));
  found_model found =
      model_copy(*search.newest + "/", checkpoint::check::sizes, flag, cache);  // it is verified
  found.directory = given;
  found.warning = search.warning();
  found.unfinished = search.unfinished;
  if (!search.passed_over.empty()) found.damaged = search.passed_over.front().path;
  return found;
}

}  // namespace detail

EDL_INLINE found_model find_model(std::string const& given, checkpoint::check how, std::string_view flag,
                                  bucket::cache_options cache) {
  cache.log = logger(severity::critical);
  return detail::model_at(given, how, flag, cache);
}

EDL_INLINE found_model find_model(std::string const& given, logger const& log, checkpoint::check how,
                                  std::string_view flag, bucket::cache_options cache) {
  cache.log = log;
  auto const found = detail::model_at(given, how, flag, cache);
  for (std::string const& one : {found.warning, found.unfinished})
    if (!one.empty()) log.warning(one);
  if (!found.directory.empty())
    log.info(fmt::format("{} is the newest checkpoint in {}", found.common(), found.directory));
  return found;
}

EDL_INLINE std::string trained_hyperparameters(job const& j) {
  // Every process of a job calls this; one of them later reads the whole model and reports damage.
  return hyperparameters_at(
      find_model(j.checkpoints.checkpoint_dir_for_init, checkpoint::check::sizes, init_flag, cache_of(j))
          .path);
}

EDL_INLINE std::string hyperparameters_at(std::string const& path) {
  return checkpoint::names_model_file(path) ? checkpoint::model_note(path, "hyperparameters")
                                            : checkpoint::read_manifest(path).hyperparameters;
}

EDL_INLINE record_facts facts_at(std::string const& path) {
  return read_facts(checkpoint::names_model_file(path) ? checkpoint::model_note(path, "record")
                                                       : checkpoint::read_manifest(path).record);
}

EDL_INLINE table_reading trained_reading(job const& j) try {
  table_reading all;
  if (j.command == command::train || j.checkpoints.checkpoint_dir_for_init.empty()) return all;
  auto const model =
      find_model(j.checkpoints.checkpoint_dir_for_init, checkpoint::check::sizes, init_flag, cache_of(j));
  record_facts const facts = facts_at(model.path);
  for (record_feature const& f : facts.inputs) all.columns.push_back({.name = f.name, .kind = f.kind});
  all.missing = facts.missing;
  return all;
} catch (error const&) {
  return {};  // reading the model reports the error
}

EDL_INLINE record_facts facts_of(program const& p, data::source const& training) {
  record_facts facts = edl::facts_of([&](example const& r) { p.feed(r, mode::prediction); }, training);
  if (facts.classes.empty()) facts.classes = p.class_names;
  return facts;
}

EDL_INLINE std::vector<std::uint64_t> table_seeds(program const& p, std::string const& from,
                                                  std::uint64_t otherwise) {
  std::uint64_t const seed = checkpoint::names_model_file(from)
                                 ? checkpoint::model_seed(from).value_or(otherwise)
                                 : checkpoint::read_manifest(from).seed;
  std::vector<std::uint64_t> seeds;
  for (std::size_t t = 0; t < p.layout.tables.size(); ++t) seeds.push_back(table_seed(seed, t));
  return seeds;
}

EDL_INLINE checkpoint::job_files files_of(job const& j, program const& p, records const& r,
                                          checkpoint::permission allowed) {
  checkpoint::manifest described = detail::describe(j, p, r);
  if (r.training && j.command == command::train) {
    record_facts facts = facts_of(p, *r.training);
    facts.missing = j.data.missing.value_or("auto");
    described.record = to_text(facts);
  }
  return {.layout = p.layout,
          .directory = checkpoints_of(j),
          .keep = std::uint64_t(j.checkpoints.keep_checkpoint_max),
          .described = std::move(described),
          .allowed = std::move(allowed),
          .adapted = p.adapted ? &*p.adapted : nullptr};
}

namespace detail {

inline master::restore_point beginning(job const& j, found_model const& from) {
  master::restore_point point = point_of(j, from);
  point.applied = {};  // its values, not its history
  return point;
}

inline found_model initial_model(job const& j, logger const& log) {
  return find_model(j.checkpoints.checkpoint_dir_for_init, log, checkpoint::check::checksums, init_flag,
                    cache_of(j));
}

}  // namespace detail

EDL_INLINE master::restore_point beginning(job const& j, logger const& log) {
  return j.checkpoints.checkpoint_dir_for_init.empty() ? master::restore_point()
                                                       : detail::beginning(j, detail::initial_model(j, log));
}

EDL_INLINE master::restore_point start_of(job const& j, program const& p, records const& r,
                                          logger const& log) {
  checkpoint::check_weight_names(p.layout, p.weight_names);
  std::array const all{
      std::tuple("training_data", &j.data.training_data, r.training.get()),
      std::tuple(j.data.validation_data.empty() ? "training_data" : "validation_data",
                 j.data.validation_data.empty() ? &j.data.training_data : &j.data.validation_data,
                 r.evaluation.get()),
      std::tuple("prediction_data", &j.data.prediction_data, r.prediction.get())};
  auto const compare_features = [&](record_facts const& known) {
    for (auto const& [flag, path, of] : all)
      if (of)
        if (auto const missing = missing_features(known, *of, fmt::format("--{}={}", flag, *path));
            !missing.empty())
          log.warning(missing);
  };
  if (j.command == command::train && r.training && !r.training->features().empty())
    compare_features(facts_of(p, *r.training));
  if (j.command == command::train)
    if (auto const own = detail::own_progress(j, p, r, log)) return *own;
  if (j.checkpoints.checkpoint_dir_for_init.empty()) return {};
  found_model const from = detail::initial_model(j, log);
  master::restore_point point = detail::beginning(j, from);
  if (j.command == command::train)
    detail::tell_what_fits(j, p, from.path, log);
  else if (!j.checkpoints.skip_mismatch)
    detail::check_whole(p, from.path);
  record_facts const known = facts_at(from.path);
  if (j.command != command::train) compare_features(known);
  if (std::string const now = j.data.missing.value_or("auto");
      (j.command == command::train || j.data.missing) && !known.missing.empty() && known.missing != now)
    log.warning(
        fmt::format("--checkpoint_dir_for_init={} was trained with --missing={}, and this command reads "
                    "tables with --missing={}",
                    j.checkpoints.checkpoint_dir_for_init, known.missing, now));
  for (data::source const* const of : {r.training.get(), r.evaluation.get(), r.prediction.get()}) try {
      if (of) check_records(known, *of);
    } catch (data_error const& other) {
      if (j.command != command::train) throw;
      log.warning(fmt::format("--checkpoint_dir_for_init={}: {}", j.checkpoints.checkpoint_dir_for_init,
                              other.what()));
    }
  return point;
}

namespace detail {

/// Rows missing from a trained table become what the training job would have drawn, whatever this job's seed.
inline void take_seed(ps::store& s, job const& j, program const& p, std::string const& from) {
  if (j.command == command::train || s.rows().tables() == 0) return;
  s.rows().seed(table_seeds(p, from, j.seed));
}

/// Takes variables and tables that have the same name and shape in `from`; initialises the others.
inline void begin_with_what_fits(ps::store& s, program const& p, std::string const& directory,
                                 std::function<void(std::size_t, std::span<float>)> const& initialise) {
  auto const from = open_other_model(p, directory);
  s.configure([&](std::size_t first, std::span<float> values) {
    initialise(first, values);
    from.read(p.layout, p.weight_names, first, values);
  });
  for (std::size_t t = 0; t < p.layout.tables.size(); ++t) {
    if (!from.has_rows(p.layout.tables[t])) continue;
    parameter_layout one;
    one.tables.push_back(p.layout.tables[t]);
    checkpoint::import_rows(directory, one, [&](std::size_t, view<std::uint64_t> ids, view<float> weights) {
      s.rows().set(t, ids, weights);
    });
  }
}

}  // namespace detail

EDL_INLINE void configure(ps::store& s, job const& j, program const& p, std::string const& given) {
  readable_model const here(given, cache_of(j));
  std::string const& directory = here.path();
  if (!directory.empty()) detail::take_seed(s, j, p, directory);
  auto const initialise = [&](std::size_t first, std::span<float> values) {
    p.initialise(j.seed, first, values);
    if (p.prepare && j.command == command::train) detail::prepared(j, p).write(first, values);
  };
  if (directory.empty())
    s.configure(initialise);
  else if (j.checkpoints.skip_mismatch && !detail::is_own(j, given))
    detail::begin_with_what_fits(s, p, directory, initialise);
  else if (checkpoint::names_model_file(directory)) {
    auto const from = open_other_model(p, directory);
    if (auto const match = from.match(p.layout, p.weight_names); !match.whole())
      throw error(fmt::format("{} does not belong to this model: {}", directory, match.describe()));
    s.configure([&](std::size_t first,
                    std::span<float> values) { from.read(p.layout, p.weight_names, first, values); },
                detail::point_of(j, {.path = directory}).version);
    checkpoint::import_rows(directory, p.layout,
                            [&](std::size_t table, view<std::uint64_t> ids, view<float> weights) {
                              s.rows().set(table, ids, weights);
                            });
  } else
    s.restore(directory, detail::is_own(j, given) ? ps::history::kept : ps::history::forgotten);
}

EDL_INLINE std::string way_on(job const& j) {
  if (j.command != command::train) return "the same command begins anew";
  if (j.checkpoints.checkpoint_dir.empty()) return "nothing was kept, because --checkpoint_dir is not given";
  try {
    if (auto const newest = checkpoint::newest_valid(checkpoints_of(j), checkpoint::check::sizes))
      return fmt::format("the same command goes on from {}", *newest);
  } catch (error const& e) {
    return fmt::format("cannot find out whether a checkpoint exists to go on from: {}", e.what());
  }
  return fmt::format(
      "no checkpoint was complete, so that the same command begins anew{}",
      j.checkpoints.checkpoint_steps > 0 ? "" : "; --checkpoint_steps=N writes one every N versions");
}

}  // namespace edl::train
