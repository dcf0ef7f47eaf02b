// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <vector>

#include "edl/app/audit.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/manifest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/master/task_plan.hpp"
#include "edl/job/train/setup/model_copy.hpp"

namespace edl::app {
namespace detail {

/// A job with more epochs than this shows equal ones in one line.
inline constexpr std::size_t most_rows = 20;

/// The account of one history: that of one range of variables.
EDL_INLINE std::map<std::uint32_t, epoch_account> account_of(ledger const& l, master::task_plan const& plan,
                                                             std::uint64_t minibatch_size) {
  std::map<std::uint32_t, epoch_account> out;
  std::map<std::uint32_t, std::uint64_t> marked;  // records that are done according to the marks
  for (auto const& [epoch, tasks] : l.closed())
    for (auto const& [begin, end] : tasks.runs()) {
      if (end > plan.tasks())
        throw error(fmt::format("epoch {} has task {} of {}: the manifest belongs to other data", epoch,
                                end - 1, plan.tasks()));
      marked[epoch] += plan.records(begin, end);
    }
  for (auto const& [task, applied] : l.open()) {
    if (task.index >= plan.tasks() || applied >= plan.minibatches(task.index))
      throw error(fmt::format("epoch {} has {} minibatches of task {}: the manifest belongs to other data",
                              task.epoch, applied, task.index));
    marked[task.epoch] += std::min(plan.range(task.index).records(), applied * minibatch_size);
  }
  if (l.tallies().empty() && !marked.empty())
    throw error("it was written by an older version of edl, which did not count the records it applied");
  for (auto const& [task, records] : l.skipped()) out[task.epoch].skipped += records;
  for (auto const& [epoch, t] : l.tallies()) out[epoch].applied = t.records;
  for (auto const& [epoch, records] : marked) out[epoch];
  for (auto& [epoch, a] : out) {
    a.records = plan.records();
    std::uint64_t const expected = marked[epoch] - std::min(marked[epoch], a.skipped);
    a.left = a.records - std::min(a.records, marked[epoch]);
    a.lost = expected - std::min(expected, a.applied);
    a.repeated = a.applied - std::min(expected, a.applied);
  }
  return out;
}

}  // namespace detail

EDL_INLINE bool audit::exact() const {
  return std::all_of(epochs.begin(), epochs.end(),
                     [](auto const& e) { return e.second.lost == 0 && e.second.repeated == 0; });
}

EDL_INLINE audit audit_checkpoint(std::string const& path) {
  namespace fs = std::filesystem;
  audit a{.path = bucket::without_slashes(path), .job = {}, .epochs = {}};
  if (fs::path(a.path).filename() == "manifest.json") a.path = fs::path(a.path).parent_path().native();
  if (std::error_code unknown; !checkpoint::has_manifest(a.path)) {
    bool const file = fs::is_regular_file(a.path, unknown);
    auto const found = file ? checkpoint::checkpoint_search()
                            : checkpoint::find_checkpoint(a.path, checkpoint::check::checksums);
    if (!found.newest && !found.passed_over.empty()) throw error(found.warning());
    bool const model = file ? a.path.ends_with(".safetensors")
                            : std::ranges::count(bucket::place(a.path).names(), "model.safetensors") > 0;
    if (!found.newest && model)
      throw error(
          fmt::format("{} holds a model but no account of records; name its job's --checkpoint_dir", path));
    if (!found.newest)
      throw error(
          fmt::format("no valid checkpoint in {}: name a --checkpoint_dir or a version-N in it", path));
    a.path = *found.newest;
    a.passed_over = found.passed_over.empty() ? found.unfinished : found.warning();
  }
  checkpoint::verify_checkpoint(a.path);
  train::readable_model const here(a.path, {.log = logger(severity::warning)});
  checkpoint::manifest const m = checkpoint::read_manifest(here.path());
  a.job = m.job;
  a.version = m.version;
  std::vector<master::shard> shards;
  for (auto const& s : m.shards) shards.push_back({s.name, s.records});
  master::task_plan const plan(shards,
                               {.records_per_task = m.records_per_task, .minibatch_size = m.minibatch_size});
  std::vector<std::map<std::uint32_t, epoch_account>> histories;
  for (checkpoint::segment const& s : checkpoint::read_histories(here.path()))
    if (s.elements.size() > 0) histories.push_back(detail::account_of(s.ledger, plan, m.minibatch_size));
  epoch_account const untouched{.records = plan.records(), .left = plan.records()};
  for (std::uint32_t e = 0; e < m.epochs; ++e) a.epochs[e];
  for (auto const& h : histories)
    for (auto const& [epoch, one] : h) a.epochs[epoch];
  for (auto& [epoch, worst] : a.epochs) {
    worst = {.records = plan.records(), .applied = plan.records()};
    for (auto const& h : histories) {
      auto const it = h.find(epoch);
      epoch_account const& one = it == h.end() ? untouched : it->second;
      bool const twice = worst.repeated > 0 || one.repeated > 0;
      worst.applied = twice ? std::max(worst.applied, one.applied) : std::min(worst.applied, one.applied);
      worst.skipped = std::max(worst.skipped, one.skipped);
      worst.left = std::max(worst.left, one.left);
      worst.lost = std::max(worst.lost, one.lost);
      worst.repeated = std::max(worst.repeated, one.repeated);
    }
  }
  return a;
}

EDL_INLINE void write(std::ostream& to, audit const& a) {
  if (!a.passed_over.empty()) to << a.passed_over << "\n\n";
  to << fmt::format("{}: job '{}', version {}\n\n{:>6} {:>12} {:>12} {:>10} {:>12} {:>8} {:>10}\n", a.path,
                    a.job, a.version, "epoch", "records", "applied", "skipped", "left", "lost", "repeated");
  for (auto at = a.epochs.begin(); at != a.epochs.end();) {
    auto const& [epoch, e] = *at;
    auto last = at++;
    // If there are many epochs, those without anything of their own to report share a line.
    while (a.epochs.size() > detail::most_rows && at != a.epochs.end() && at->second == e) last = at++;
    std::string const which =
        last->first == epoch ? std::to_string(epoch) : fmt::format("{}-{}", epoch, last->first);
    to << fmt::format("{:>6} {:>12} {:>12} {:>10} {:>12} {:>8} {:>10}\n", which, e.records, e.applied,
                      e.skipped, e.left, e.lost, e.repeated);
  }
  to << (a.exact() ? "\nexact: every record that was applied counts once\n"
                   : "\nNOT EXACT: records were lost or repeated\n");
}

}  // namespace edl::app
