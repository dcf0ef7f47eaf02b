// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "edl/base/bucket/cache.hpp"
#include "edl/base/bucket/place.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/compute/nn/trace.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/train/prediction/predictions.hpp"
#include "edl/job/train/setup/model_copy.hpp"
#include "edl/job/train/setup/outputs.hpp"

namespace edl::train {
namespace detail {

/// Whether a name consists of `begin`, digits and `end`.
inline bool is_numbered(std::string_view name, std::string_view begin, std::string_view end) {
  if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size())
    return false;
  return name.substr(begin.size(), name.size() - begin.size() - end.size()).find_first_not_of("0123456789") ==
         name.npos;
}

inline bool is_prediction(std::string_view name) {
  for (std::string_view const format : names(prediction_format{})) {
    std::string const end = fmt::format(".{}", format);
    if (is_numbered(name, "part-", end) || name == "predictions" + end) return true;
  }
  return false;
}

inline bool is_profile(std::string_view name) {
  return is_numbered(name, "worker-", ".txt") || is_numbered(name, "worker-", ".json") ||
         name == "local.txt" || name == "local.json";
}

/// Whether a name is that of a file of --wrong, or of a part of one.
inline bool is_wrong(std::string_view name) {
  std::size_t const is = name.find("-is-");
  return name == "wrong.jsonl" || is_numbered(name, "part-", ".jsonl") ||
         (name.ends_with(".png") && name.find("-said-") != name.npos && is != name.npos &&
          is_numbered(name.substr(0, is), "", ""));
}

using wanted_name = bool (*)(std::string_view);

/// Like std::filesystem::create_directories, but syncs the new directories: otherwise files synced in them
/// later could be lost with them.
inline bool make_lasting(std::string const& path, std::error_code& failed) {
  namespace fs = std::filesystem;
  std::vector<fs::path> changed;
  std::error_code unknown;
  for (fs::path at = fs::absolute(path, unknown); !at.empty() && !fs::exists(at, unknown) && !unknown;) {
    at = at.parent_path();
    changed.push_back(at);
  }
  bool const made = fs::create_directories(path, failed);
  for (fs::path const& parent : changed) try {
      sync_directory(parent);
    } catch (error const&) {  // the file system does not support that
    }
  return made;
}

/// The symbolic links in a directory.
inline std::vector<std::filesystem::path> links_in(std::filesystem::path const& directory) {
  std::vector<std::filesystem::path> all;
  std::error_code code, unknown;
  for (std::filesystem::directory_iterator it(directory, code), end; !code && it != end; it.increment(code))
    if (it->is_symlink(unknown)) all.push_back(it->path());
  return all;
}

/// Whether a path of data may name objects that lie in the place `s3://BUCKET/PREFIX`.
inline bool lies_in_bucket(std::string place, std::string_view data) {
  if (!bucket::names_objects(place) || !bucket::names_objects(data)) return false;
  place = bucket::without_slashes(std::move(place)) + "/";
  auto const wild = data.find_first_of("*?[");
  std::string const folder(data.substr(0, data.rfind('/', wild) + 1)), whole = std::string(data) + "/";
  return place == folder || (wild == data.npos && place.starts_with(data.ends_with('/') ? folder : whole));
}

/// Refuses a directory of results in which files of the user could be removed or replaced: the data, also
/// through a link, and links, which edl never creates.
inline void check_apart(char const* flag, std::string const& directory, wanted_name removed,
                        char const* data_flag = "", std::string const& data = {}) {
  namespace fs = std::filesystem;
  for (fs::path const& link : links_in(directory))
    if (removed(link.filename().native()))
      throw usage_error(
          fmt::format("{}={}: it has a link {}, a name that is removed from there: remove the link yourself, "
                      "or choose another directory",
                      flag, directory, link.filename().native()));
  std::error_code none;  // an invalid path is nowhere
  auto const whole = [&](fs::path const& at) {
    fs::path const one = fs::canonical(at, none);
    return none ? fs::absolute(at, none) : one;
  };
  auto const may_go = [&](fs::path const& at) {
    fs::path const one = whole(at);
    std::string const name = one.filename();
    return (removed(name) || name.find_first_of("*?[") != name.npos) &&
           fs::equivalent(one.parent_path(), directory, none);
  };
  std::istringstream pieces(data);
  for (std::string piece; std::getline(pieces, piece, ',');) {
    bool const pattern = piece.find_first_of("*?[") != piece.npos;
    std::vector<fs::path> links;
    if (pattern || fs::is_directory(piece, none))
      links = links_in(fs::absolute(pattern ? fs::path(piece).parent_path() / "." : fs::path(piece), none));
    if (fs::equivalent(whole(piece), directory, none) || may_go(piece) ||
        std::ranges::any_of(links, may_go) || lies_in_bucket(directory, piece))
      throw usage_error(fmt::format(
          "{}={}: {}={} lies there, where files of earlier runs are removed: choose another directory", flag,
          directory, data_flag, data));
  }
}

/// Removes what an earlier run, perhaps with more tasks or workers, has left among this run's files.
inline void remove_earlier(std::string const& flag, std::string const& directory, wanted_name wanted,
                           bucket::cache_options const& cache, logger const& log) {
  std::vector<std::string> found;
  try {
    bucket::place const place(directory, cache);
    for (std::string& name : place.names())
      if (wanted(name)) found.push_back(std::move(name));
    for (std::string const& name : found) place.remove(name);
  } catch (error const& e) {
    throw error(fmt::format("{}={} holds files of an earlier run, which cannot be removed: {}", flag,
                            directory, e.what()));
  }
  if (!found.empty())
    log.info(fmt::format("removed {} of an earlier run from {}", counted(found.size(), "file"), directory));
}

}  // namespace detail

EDL_INLINE void make_directories(job const& j) {
  auto const make = [&](char const* flag, std::string const& path) {
    if (bucket::names_objects(path)) try {
        return bucket::place(path, cache_of(j)).check();
      } catch (error const& e) {
        throw usage_error(fmt::format("{}={}: {}", flag, path, e.what()));
      }
    std::error_code failed;
    if (!path.empty() && !detail::make_lasting(path, failed) && failed)
      throw usage_error(fmt::format("{}={}: {}", flag, path, failed.message()));
    if (!path.empty() && ::access(path.c_str(), W_OK) != 0)
      throw usage_error(fmt::format("{}={}: cannot write there: {}", flag, path, std::strerror(errno)));
  };
  make("--profile", j.compute.profile);
  make("--wrong", j.evaluation.wrong);
  if (!j.compute.profile.empty()) detail::check_apart("--profile", j.compute.profile, detail::is_profile);
  if (!j.evaluation.wrong.empty())
    detail::check_apart("--wrong", j.evaluation.wrong, detail::is_wrong, "--validation_data",
                        j.data.validation_data);
  if (j.command == command::train) {
    make("--checkpoint_dir", j.checkpoints.checkpoint_dir);
    make("--output", j.outputs.output);
    make("--tensorboard_log_dir", j.observe.tensorboard_log_dir);
  } else if (j.command == command::predict) {
    make("--prediction_outputs", j.outputs.prediction_outputs);
    if (!j.outputs.prediction_outputs.empty())
      detail::check_apart("--prediction_outputs", j.outputs.prediction_outputs, detail::is_prediction,
                          "--prediction_data", j.data.prediction_data);
  }
}

EDL_INLINE std::unique_ptr<checkpoint::directory_lock> lock_outputs(job const& j,
                                                                    checkpoint::lock_options::part of,
                                                                    logger const& log,
                                                                    std::string const& of_command) {
  auto const [flag, directory] =
      j.command == command::train     ? std::pair{"--checkpoint_dir", j.checkpoints.checkpoint_dir}
      : j.command == command::predict ? std::pair{"--prediction_outputs", j.outputs.prediction_outputs}
                                      : std::pair{"--wrong", j.evaluation.wrong};
  if (directory.empty() || (bucket::names_objects(directory) && j.command != command::train)) return nullptr;
  auto cache = cache_of(j);
  // So that a beat whose request hangs is repeated before the holder counts as dead
  // (`lock_options::timeout`).
  cache.store.timeout = std::chrono::seconds(3);
  cache.store.retry_timeout = std::chrono::seconds(10);
  return std::make_unique<checkpoint::directory_lock>(
      checkpoint::lock_options{.directory = bucket::place(directory, cache),
                               .description = fmt::format("{}={}", flag, directory),
                               .job = j.name,
                               .holder = of,
                               .command = of_command,
                               .tell = [log](std::string const& text) { log.warning(text); }});
}

EDL_INLINE std::uint64_t begin_epoch(job const& j, checkpoint::directory_lock* held, logger const& log) {
  if (!held || j.command != command::train) return 0;
  std::uint64_t const epoch = held->claim();
  try {
    auto const allowed = [&] { held->check(); };
    if (std::string const aside = checkpoint::set_aside_strays(checkpoints_of(j), allowed); !aside.empty())
      log.warning(aside);
  } catch (error const& e) {  // they are not the newest, and can be set aside later
    log.warning(fmt::format("--checkpoint_dir={}: {}", j.checkpoints.checkpoint_dir, e.what()));
  }
  return epoch;
}

EDL_INLINE void clean_outputs(job const& j, bool goes_on, logger const& log) {
  if (!j.compute.profile.empty()) {
    remove_dead_temporaries(j.compute.profile);
    if (!goes_on)
      detail::remove_earlier("--profile", j.compute.profile, detail::is_profile, cache_of(j), log);
  }
  if (!j.evaluation.wrong.empty()) {
    remove_dead_temporaries(j.evaluation.wrong);
    if (!goes_on) detail::remove_earlier("--wrong", j.evaluation.wrong, detail::is_wrong, cache_of(j), log);
  }
  if (j.command == command::train) {
    if (!j.outputs.output.empty()) remove_dead_temporaries(j.outputs.output);
    if (j.checkpoints.checkpoint_dir.empty()) return;
    remove_dead_temporaries(j.checkpoints.checkpoint_dir);
    checkpoint::remove_litter(checkpoints_of(j), !goes_on);
  } else if (j.command == command::predict && !j.outputs.prediction_outputs.empty()) {
    remove_dead_temporaries(j.outputs.prediction_outputs);
    if (!goes_on)
      detail::remove_earlier("--prediction_outputs", j.outputs.prediction_outputs, detail::is_prediction,
                             cache_of(j), log);
  }
}

EDL_INLINE std::string table_of(worker::time_account const& spent, strategy how, std::uint64_t minibatches) {
  using part = worker::time_account;
  using std::chrono::nanoseconds;
  std::string_view const step = how == strategy::local              ? "optimiser"
                                : how == strategy::parameter_server ? "pushing gradients to the servers"
                                                                    : "summing with other workers, optimiser";
  std::vector<std::pair<std::string_view, nanoseconds>> rows{
      {"waiting for records", spent.of(part::records)},
      {"training: layers", spent.layers},
      {"training: loss", spent.loss},
      {"training: all else", spent.of(part::training) - spent.layers - spent.loss},
      {step, spent.of(part::step)},
      {how == strategy::allreduce ? "joining the other workers, rows of tables"
                                  : "pulling weights, rows of tables",
       spent.of(part::parameters)},
      {"evaluation", spent.of(part::evaluation)},
      {"prediction", spent.of(part::prediction)},
      {how == strategy::local ? "tasks, reports, checkpoints" : "waiting for the master",
       spent.of(part::tasks)},
      {"all else", spent.of(part::other)}};
  nanoseconds all{0};
  for (auto const& [what, time] : rows) all += time;
  std::ranges::stable_sort(rows, std::ranges::greater(), [](auto const& row) { return row.second; });
  auto const line = [&](std::string_view what, nanoseconds time) {
    double const seconds = std::chrono::duration<double>(time).count();
    return fmt::format("{:<44} {:>10.3f} {:>12} {:>6.1f}%\n", what, seconds,
                       minibatches > 0 ? fmt::format("{:.4f}", 1e3 * seconds / double(minibatches)) : "",
                       all.count() > 0 ? 100 * double(time.count()) / double(all.count()) : 0.0);
  };
  std::string out = fmt::format("{:<44} {:>10} {:>12} {:>7}\n", "part", "seconds", "ms/minibatch", "share");
  for (auto const& [what, time] : rows)
    if (time.count() != 0) out += line(what, time);
  out += line("all", all);
  auto const seconds = [](std::int64_t n) { return double(n) / 1e9; };
  return out + fmt::format("Records were read in {:.3f} s and fed in {:.3f} s, all threads together.\n",
                           seconds(spent.loading.reading), seconds(spent.loading.feeding));
}

EDL_INLINE void write_profile(job const& j, worker::trainer const& t, worker::session& of,
                              std::string const& name, logger const& log) {
  nn::trace const* const trace = t.profile();
  if (!trace) return;
  std::ostringstream table, events;
  table << table_of(of.account(), j.strategy, of.seen().trained().minibatches) << '\n';
  trace->write_table(table);
  trace->write_events(events);
  std::string const path = j.compute.profile + "/" + name;
  replace_file(path + ".txt", table.str(), forced::nothing);
  replace_file(path + ".json", events.str(), forced::nothing);
  log.info(fmt::format("the profile is written to {0}.txt, and a trace for Perfetto to {0}.json", path));
}

EDL_INLINE worker::prediction_sink predictions_of(job const& j, program const& p, data::source const* from,
                                                  int id) {
  if (j.command != command::predict || !from) return {};
  if (p.on_predictions)
    return [&p, from, id](worker::assignment const& task, view<float> outputs, view<std::uint64_t> records) {
      std::vector<std::uint64_t> const numbers = numbers_among_all(*from, task.shard, records);
      p.on_predictions(int(records.size()), outputs, id, numbers);
    };
  auto const parts = std::make_shared<prediction_parts>(j, p, *from);
  return [parts](worker::assignment const& task, view<float> outputs, view<std::uint64_t> records) {
    parts->write(task.task.index, task.shard, records, outputs);
  };
}

EDL_INLINE void call_on_step(worker::session& of, job const& j, program const& p, int id, logger const& log) {
  if (j.command != command::train || !p.on_step) return;
  of.after_step([&p, id, log, failed = false](std::uint64_t version, double loss, int records) mutable {
    if (failed) return;
    std::string const why = call_hook("on_step", version, [&] { p.on_step({version, loss, records, id}); });
    failed = !why.empty();
    if (failed) log.error(why);
  });
}

}  // namespace edl::train
