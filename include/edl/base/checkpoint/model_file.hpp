// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/compute/sparse/table_snapshot.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/span.hpp"

namespace edl::checkpoint {

/// A source of a table's rows: `each` passes all of them, some at a time, and in the same order at each call.
struct row_source {
  using sink = std::function<void(view<std::uint64_t> ids, view<float> weights)>;

  std::uint64_t rows = 0;
  std::function<void(sink const& to)> each;
};

/// The rows of a snapshot, which must outlive this, while no training runs.
row_source rows_of(sparse::table_snapshot const& snapshot);

/// The value of `row_order` in the metadata. `model_reader` needs it.
inline constexpr char const* rows_by_slot = "hash slot, then id";

/// The training job's facts in a model file.
struct model_origin {
  std::optional<std::uint64_t> seed{};
  std::string hyperparameters{};  ///< names and values, in the form of `--set`; empty: none
  std::string record{};           ///< `manifest::record`
};

/// Writes a model for serving atomically: one safetensors file, with parameters and state by name in their
/// own extents. `variables` is the whole arena. `tables`: of the layout, in order; each becomes
/// `tables/<name>/ids` (rows) and `tables/<name>/embeddings` (rows, width), a part of it at a time. Sources
/// give rows by hash slot, and by id within one. The metadata have the model's version as `version`, its
/// job's seed as `seed` (rows that a table lacks follow from it), `hyperparameters` and `record`. They
/// contain nothing about the job's epochs: the same training gives the same bytes. The first entry is
/// `crc32`: zlib's of the file, in 8 hexadecimal digits, computed with zeros in their place.
void export_model(std::string const& path, parameter_layout const& layout, view<float> variables,
                  std::span<row_source const> tables, std::uint64_t version, model_origin const& from = {});

/// Writes these tensors like that, with a checksum and these metadata.
void write_model(std::string const& path, std::span<tensor_source const> tensors,
                 std::map<std::string, std::string> metadata);

/// Whether a file is an ONNX file. The functions below also accept these: their metadata may have the same
/// entries, and they have no rows of tables.
inline bool is_onnx(std::string_view path) { return path.ends_with(".onnx"); }

/// Whether a path names a model of `--output` or `--export_onnx`, or one of another program: a safetensors
/// file, an index of such files, or an ONNX file.
inline bool names_model_file(std::string_view path) {
  return path.ends_with(".safetensors") || path.ends_with(index_ending) || is_onnx(path);
}

/// Reads a model's file and verifies its checksum; throws error if it is damaged. Does not read a file
/// without a checksum, of other programs or of older versions of edl.
void check_model(std::string const& path);

/// Passes the rows of a file's tables, some at a time. Errors name the table.
void import_rows(
    std::string const& path, parameter_layout const& layout,
    std::function<void(std::size_t table, view<std::uint64_t> ids, view<float> weights)> const& put);

/// The version in a file; 0 if there is none, as in other programs' files.
std::uint64_t model_version(std::string const& path);
std::uint64_t model_version(safetensors_file const& file);

/// The seed of the job that trained it, if the file has it.
std::optional<std::uint64_t> model_seed(std::string const& path);

/// The entry `hyperparameters` or `record` of its metadata; empty if it is missing.
std::string model_note(std::string const& path, std::string const& name);

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/model_file.ipp"
#endif
