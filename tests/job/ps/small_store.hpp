// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/wire/scratch.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/job/ps/store.hpp"
#include "job/ps/rules.hpp"

namespace small_store {

using namespace edl::ps;
using edl::contribution;
using edl::minibatch_key;

adding_rule const adding;
momentum_rule const momentum;
asynchronous const at_once;

inline edl::parameter_layout small_layout() { return {{{"w", {4}, 0}, {"mean", {2}, 4}}, 4, 2}; }

inline edl::parameter_layout with_table() {
  auto layout = small_layout();
  layout.tables = {{"words", 1}};
  return layout;
}

inline std::vector<float> const ones(4, 1), twos(2, 2);

inline minibatch_key batch(std::uint32_t task, std::uint32_t index = 0, std::uint32_t count = 1) {
  return {{0, task}, index, count};
}

inline std::vector<float> values(edl::view<float> of) { return {of.begin(), of.end()}; }

/// A checkpoint of stores that lie side by side; its path.
inline std::string save(scratch const& dir, edl::parameter_layout const& layout, std::uint64_t version,
                        std::vector<edl::ps::full_snapshot> const& snapshots) {
  auto const path = edl::checkpoint::checkpoint_path(dir.path(), version);
  edl::checkpoint::begin_checkpoint(path);
  edl::checkpoint::manifest all{
      .job = "j", .version = version, .layout = edl::checkpoint::layout_digest(layout)};
  for (std::uint32_t i = 0; i < snapshots.size(); ++i)
    for (auto& file : write_snapshot(snapshots[i], path, layout,
                                     {.server = i, .servers = std::uint32_t(snapshots.size())}))
      all.files.push_back(std::move(file));
  edl::checkpoint::commit_checkpoint(path, all);
  return path;
}

}  // namespace small_store
