// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <variant>
#include <vector>

#include "edl/compute/onnx/graph.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/checkpoint/model_file.hpp"
#include "edl/job/ps/store.hpp"
#include "edl/job/train/onnx_model.hpp"
#include "edl/job/train/setup.hpp"
#include "edl/job/train/start.hpp"

namespace edl::train {
namespace detail {

/// What an id without a row has: its drawn values are of its own, and their mean stands for them.
inline std::vector<onnx::table_rows> tables_of(program const& p) {
  std::vector<onnx::table_rows> all;
  for (std::size_t t = 0; t < p.embeddings.tables.size(); ++t) {
    auto const* const same = std::get_if<nn::constant>(&p.embeddings.initials[t]);
    all.push_back({.name = p.embeddings.tables[t].name,
                   .width = p.embeddings.tables[t].width,
                   .absent = same ? float(same->value) : 0,
                   .ids = {},
                   .each = {}});
  }
  return all;
}

}  // namespace detail

EDL_INLINE void check_onnx(program const& p, std::string const& file) {
  auto const tables = detail::tables_of(p);
  onnx::graph g(p.layout, {}, tables);
  p.to_onnx(g);
  auto const parent = std::filesystem::path(file).parent_path();
  std::error_code code;
  if (!parent.empty() && !std::filesystem::is_directory(parent, code))
    throw error(
        fmt::format("--export_onnx={}: there is no directory {}; make it first", file, parent.native()));
}

EDL_INLINE std::string export_onnx(program const& p, job const& j, std::string const& from,
                                   std::string const& file, logger const& log) {
  job reads;  // as an evaluation does, whatever the job was
  reads.command = edl::command::evaluate;
  reads.seed = j.seed;
  auto const policy = policy_of(reads);
  ps::store store(store_options_of(reads, p, *policy, 0, 1));
  configure(store, reads, p, from);
  ps::snapshot const what = store.averaged();
  ps::full_snapshot const snapshot = store.full_snapshot();
  auto tables = detail::tables_of(p);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto const rows = checkpoint::rows_of(*snapshot.tables[t]);
    rows.each([&](view<std::uint64_t> ids, view<float>) {
      tables[t].ids.insert(tables[t].ids.end(), ids.begin(), ids.end());
    });
    tables[t].each = [rows](onnx::table_rows::sink const& to) {
      rows.each([&](view<std::uint64_t>, view<float> weights) { to(weights); });
    };
    std::string const announced =
        fmt::format("table '{}': {} in the file", tables[t].name, counted(tables[t].ids.size(), "row"));
    if (std::holds_alternative<nn::constant>(p.embeddings.initials[t]))
      log.info(announced);
    else
      log.warning(announced +
                  "; an id without a row has zeros there, and in edl values that are drawn by the id");
  }
  onnx::graph g(p.layout, what.variables(), tables);
  g.note("edl_version_of_model", std::to_string(what.version()));
  if (!j.hyperparameters.empty()) g.note("hyperparameters", j.hyperparameters);
  p.to_onnx(g);
  for (auto const& [key, text] : g.notes())
    if (key == "left_out") log.warning(fmt::format("{} lacks {}", file, text));
  return fmt::format("ONNX model written to {} ({} bytes)", printable(file), g.write(file));
}

EDL_INLINE checkpoint::other_model open_other_model(program const& p, std::string const& path) {
  return checkpoint::other_model(path, [&]() -> std::vector<onnx::tensor_origin> {
    if (!p.to_onnx) return {};
    return onnx::origins(p.layout, detail::tables_of(p), p.to_onnx);
  });
}

}  // namespace edl::train
