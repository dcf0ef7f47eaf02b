// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "edl/base/checkpoint/manifest.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/job/ps/table_rows.hpp"
#include "edl/job/train/prediction/saved_model.hpp"
#include "edl/job/train/setup/base_model.hpp"
#include "edl/job/train/setup/onnx_model.hpp"
#include "edl/job/train/setup/setup.hpp"
#include "edl/job/train/setup/start.hpp"

namespace edl::train {

EDL_INLINE program trained_program(program const& p, std::string const& path, logger const& log) {
  hyperparameters all = p.set;
  try {
    for (auto const& note : set_trained(all, read_settings(hyperparameters_at(path)), {}, path))
      if (!note.taken) log.warning(note.text);
  } catch (usage_error const&) {  // a file of another program
    log.warning(fmt::format("ignoring the hyperparameters of {}: they have another format", path));
  }
  program made = p.with(all);
  read_base_of(made, path, log);
  return made;
}

EDL_INLINE saved_model::saved_model(program const& p, std::string const& path) : variables_(p.layout.size()) {
  bool const exported = checkpoint::names_model_file(path);
  version_ = exported ? checkpoint::model_version(path) : checkpoint::read_manifest(path).version;
  if (is_base(p, path)) return;  // adapters of zeros add nothing
  auto const from = open_other_model(p, path);
  if (auto const match = from.match(p.layout, p.weight_names); !match.whole())
    throw error(fmt::format("{} does not belong to this model: {}", path, match.describe()));
  from.read(p.layout, p.weight_names, 0, variables_);
  if (p.layout.tables.empty()) return;
  if (checkpoint::is_onnx(path)) checkpoint::import_rows(path, p.layout, {});  // throws: it has no rows
  job const j{.command = command::predict};
  auto const policy = policy_of(j);
  ps::table_rows rows(store_options_of(j, p, *policy, 0, 1));
  rows.seed(table_seeds(p, path, j.seed));
  tables_ = rows.empty();
  if (!exported) {
    rows.read(path, tables_);
    return;
  }
  file_ = std::make_unique<checkpoint::model_reader>(path);
  for (table_shape const& t : p.layout.tables) {
    auto const& found = file_->find_table(t.name);
    if (found.width != std::size_t(t.width))
      throw error(
          fmt::format("{} does not belong to this model: rows of its table '{}' have {} values instead of {}",
                      path, t.name, found.width, t.width));
    mapped_.push_back(&found);
  }
}

EDL_INLINE void saved_model::pull(sparse::minibatch_rows& rows) const {
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    auto const ids = rows.ids(t);
    auto const width = std::size_t(tables_[t]->width());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto const to = rows.rows(t).subspan(i * width, width);
      if (!file_ || !file_->find(*mapped_[t], ids[i], to)) tables_[t]->read(ids[i], to);
    }
  }
}

}  // namespace edl::train
