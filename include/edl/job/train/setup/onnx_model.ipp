// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "edl/base/checkpoint/model_file.hpp"
#include "edl/compute/onnx/batch_norm_folding.hpp"
#include "edl/compute/onnx/graph.hpp"
#include "edl/core/counted.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/printable.hpp"
#include "edl/job/ps/store.hpp"
#include "edl/job/train/setup/feed_arithmetic.hpp"
#include "edl/job/train/setup/onnx_model.hpp"
#include "edl/job/train/setup/records.hpp"
#include "edl/job/train/setup/setup.hpp"
#include "edl/job/train/setup/start.hpp"

namespace edl::train {
namespace detail {

/// The tables, with a row for unknown ids: training would draw such a row, and the mean of the draws
/// represents it.
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

/// Adds the network, as the flags request.
inline std::map<std::string, onnx::preprocessing> add_model(onnx::graph& g, program const& p, job const& j,
                                                            record_facts const& known) {
  std::map<std::string, onnx::preprocessing> made;
  if (j.outputs.export_preprocess) made = arithmetic_of_feed(p, known);
  for (auto const& [input, of] : made) g.prepare(input, of);
  if (j.outputs.export_rows_as_inputs) g.leave_tables_out();
  p.to_onnx(g);
  return made;
}

/// What the model reads from a record: found in the training data, or recorded in the trained model.
inline record_facts known_facts(program const& p, job const& j) {
  if (!j.outputs.export_preprocess) return {};
  if (j.command == command::train && !j.data.training_data.empty())
    return facts_of(p, *open_training_data(j, p.open));
  if (j.checkpoints.checkpoint_dir_for_init.empty()) return {};
  return facts_at(
      find_model(j.checkpoints.checkpoint_dir_for_init, checkpoint::check::sizes, init_flag, cache_of(j))
          .path);
}

/// Whether a file begins like those of ONNX writers: with the format's version, at least 3, then another
/// field. Other formats based on Protocol Buffers count versions from 1. An empty file may be replaced.
inline bool may_be_replaced(std::string const& file) {
  constexpr unsigned char first_version = 3;  // that was released
  constexpr unsigned char fields[] = {0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42, 0x72};
  std::ifstream in(file, std::ios::binary);
  unsigned char head[3] = {};
  in.read(reinterpret_cast<char*>(head), sizeof head);
  std::error_code unknown;
  return std::filesystem::file_size(file, unknown) == 0 ||
         (head[0] == 0x08 && head[1] >= first_version && head[1] < 64 &&
          std::ranges::count(fields, head[2]) > 0);
}

/// Names the first batch normalisations that are not folded.
inline std::string staying(std::vector<std::string> const& layers) {
  std::size_t const n = std::min<std::size_t>(layers.size(), 3);
  return fmt::format("{} {}{}", fmt::join(layers.begin(), layers.begin() + std::ptrdiff_t(n), ", "),
                     layers.size() > n ? fmt::format("and {} more ", layers.size() - n) : "",
                     layers.size() == 1 ? "stays" : "stay");
}

}  // namespace detail

EDL_INLINE std::vector<std::string> check_onnx(program const& p, job const& j) {
  if (p.adapted)
    throw error(
        "--export_onnx: this network has adapters; export the model.safetensors of --output, in which they "
        "are "
        "merged, with the program of the network that was adapted");
  std::string const& file = j.outputs.export_onnx;
  std::error_code code;
  if (file.ends_with('/') || std::filesystem::is_directory(file, code))
    throw error(fmt::format("--export_onnx={}: that is a directory; name a file in it", file));
  // Renaming a file to a link's name replaces the link.
  if (std::filesystem::is_symlink(file, code))
    throw error(fmt::format("--export_onnx={}: that is a link; name its target, {}", file,
                            std::filesystem::weakly_canonical(file, code).native()));
  if (std::filesystem::is_regular_file(file, code) && !detail::may_be_replaced(file))
    throw error(fmt::format(
        "--export_onnx={}: would overwrite a file that is not an ONNX model; name another file, or remove it",
        file));
  auto const parent = std::filesystem::path(file).parent_path();
  auto const whole = [](std::filesystem::path const& path) {
    return (std::filesystem::current_path() / path / "").lexically_normal();
  };
  for (auto const& [flag, directory] :
       {std::pair("output", j.outputs.output), std::pair("checkpoint_dir", j.checkpoints.checkpoint_dir)})
    if (!directory.empty() && whole(directory) == whole(file))
      throw error(
          fmt::format("--export_onnx={}: that is the directory of --{}; name a file in it", file, flag));
  constexpr std::size_t longest = 220;  // leaves room for the suffixes of temporary and companion files
  if (std::filesystem::path(file).filename().native().size() > longest)
    throw error(fmt::format("--export_onnx={}: a file's name may have {} bytes", file, longest));
  bool const made_here = !j.outputs.output.empty() && whole(parent) == whole(j.outputs.output);
  if (!parent.empty() && !made_here && !std::filesystem::is_directory(parent, code))
    throw error(fmt::format("--export_onnx={}: no directory {}; create it first", file, parent.native()));
  if (parent.empty() || std::filesystem::is_directory(parent, code)) try {
      durable_file const tried(file);  // never committed
    } catch (error const& e) {
      throw error(fmt::format("--export_onnx={}: {}", file, e.what()));
    }
  auto const tables = detail::tables_of(p);
  std::vector<float> const any(j.outputs.export_fold_batch_norm ? p.layout.size() : 0);  // folded weights
  onnx::graph g(p.layout, any, tables);
  detail::add_model(g, p, j, detail::known_facts(p, j));
  std::vector<std::string> notes;
  if (j.outputs.export_rows_as_inputs && tables.empty())
    notes.emplace_back("--export_rows_as_inputs does nothing here: the model has no embedding tables");
  if (!j.outputs.export_fold_batch_norm) return notes;
  if (auto const [gone, stay] = onnx::fold_batch_norms(g); gone.empty())
    notes.push_back("--export_fold_batch_norm does nothing here: " +
                    (stay.empty() ? "the model has no batch normalisation" : detail::staying(stay)));
  return notes;
}

EDL_INLINE std::string export_onnx(program const& p, job const& j, std::string const& given,
                                   logger const& log) {
  readable_model const here(given, cache_of(j));
  std::string const& from = here.path();
  std::string const& file = j.outputs.export_onnx;
  job reads;  // as an evaluation does, whatever the job's command
  reads.command = edl::command::evaluate;
  reads.seed = j.seed;
  auto const policy = policy_of(reads);
  ps::store store(store_options_of(reads, p, *policy, 0, 1));
  configure(store, reads, p, from);
  ps::snapshot const what = store.averaged();
  ps::full_snapshot const snapshot = store.full_snapshot();
  auto tables = detail::tables_of(p);
  for (std::size_t t = 0; t < tables.size() && !j.outputs.export_rows_as_inputs; ++t) {
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
  record_facts const known = facts_at(from);
  if (std::string const text = to_text(known); !text.empty() && text.size() <= onnx::longest_note)
    g.note("record", text);
  for (auto const& [input, made] : detail::add_model(g, p, j, known))
    for (onnx::record_values const& r : made.from)
      log.info(fmt::format("input '{}' is made of the record's '{}'{}, which the exported model takes", input,
                           printable(r.name, 64),
                           r.extents.empty() ? "" : fmt::format(" ({})", fmt::join(r.extents, " × "))));
  if (j.outputs.export_rows_as_inputs)
    for (auto const& t : tables)
      log.info(fmt::format("table '{}': its rows are inputs of the exported model, {} numbers each", t.name,
                           t.width));
  if (j.outputs.export_fold_batch_norm)
    if (auto const [gone, stay] = onnx::fold_batch_norms(g); !gone.empty()) {
      g.note("folded_batch_norms", std::to_string(gone.size()));
      log.info(fmt::format("{} folded into the layers before{}",
                           counted(gone.size(), "batch normalisation is", "batch normalisations are"),
                           stay.empty() ? "" : "; " + detail::staying(stay)));
    }
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
