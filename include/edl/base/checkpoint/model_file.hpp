// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "edl/compute/sparse/table_snapshot.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/span.hpp"

namespace edl::checkpoint {

class safetensors_file;

/// Rows of a table, wherever they are: `each` gives all of them, some at a time, and in the same order
/// whenever it is called.
struct row_source {
  using sink = std::function<void(view<std::uint64_t> ids, view<float> weights)>;

  std::uint64_t rows = 0;
  std::function<void(sink const& to)> each;
};

/// The rows of a snapshot, which outlives this, while nobody trains.
row_source rows_of(sparse::table_snapshot const& snapshot);

/// What the metadata say of the rows' order as `row_order`. `model_reader` needs it.
inline constexpr char const* rows_by_slot = "hash slot, then id";

/// What a model file says of the job that trained it.
struct model_origin {
  std::optional<std::uint64_t> seed{};
  std::string hyperparameters{};  ///< names and values, as `--set` takes them; empty: none
  std::string record{};           ///< `manifest::record`
};

/// Writes a model for serving: one safetensors file, parameters and state by name in their own extents, which
/// exists whole or not at all. `variables` is the whole arena. `tables`: of the layout, in order; each
/// becomes `tables/<name>/ids` (rows) and `tables/<name>/embeddings` (rows, width), a part of it at a time.
/// Sources give rows by hash slot, and by id within one. The metadata have the model's version as
/// `version`, its job's seed as `seed` (rows that a table lacks follow from it), `hyperparameters` and
/// `record`. They have nothing of the job's epochs: the same training gives the same bytes. First stands
/// `crc32`: zlib's of the file, in 8 hexadecimal digits, as if these were zeros.
void export_model(std::string const& path, parameter_layout const& layout, view<float> variables,
                  std::span<row_source const> tables, std::uint64_t version, model_origin const& from = {});

/// Whether a file is one of ONNX. What follows takes such files, too: their metadata may say as much, and
/// they have no rows of tables.
inline bool is_onnx(std::string_view path) { return path.ends_with(".onnx"); }

/// Reads all of a model's file and compares it with its checksum; an error if it is damaged. A file without
/// one, of others or of older versions of edl, is not read.
void check_model(std::string const& path);

/// Gives the rows of the tables of such a file, some at a time. Errors name the table.
void import_rows(
    std::string const& path, parameter_layout const& layout,
    std::function<void(std::size_t table, view<std::uint64_t> ids, view<float> weights)> const& put);

/// The version that stands in such a file; 0 where none does, as in others' files.
std::uint64_t model_version(std::string const& path);
std::uint64_t model_version(safetensors_file const& file);

/// The seed of the job that trained it, if it stands there.
std::optional<std::uint64_t> model_seed(std::string const& path);

/// Of its metadata `hyperparameters`, or `record`; empty where that does not stand there.
std::string model_note(std::string const& path, std::string const& name);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/model_file.ipp"
#endif
