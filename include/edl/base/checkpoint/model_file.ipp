// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/compute/onnx/initializers.hpp"
#include "edl/compute/sparse/row_bytes.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/invariant.hpp"
#include "edl/core/text.hpp"

namespace edl::checkpoint {
namespace detail {

inline constexpr std::size_t rows_at_once = 4096;

/// The beginning of a file with a checksum, after the header's length.
inline constexpr std::string_view before_checksum = "{\"__metadata__\":{\"crc32\":\"";
inline constexpr std::string_view no_checksum = "00000000";
inline constexpr std::size_t checksum_place = sizeof(std::uint64_t) + before_checksum.size();

inline std::string ids_tensor(std::string_view table) { return fmt::format("tables/{}/ids", table); }
inline std::string embeddings_tensor(std::string_view table) {
  return fmt::format("tables/{}/embeddings", table);
}

}  // namespace detail

EDL_INLINE row_source rows_of(sparse::table_snapshot const& snapshot) {
  return {snapshot.size(), [&snapshot](row_source::sink const& to) {
            auto const width = std::size_t(snapshot.of().width());
            std::vector<std::uint64_t> ids;
            std::vector<float> weights;
            std::uint64_t written = 0;
            for (std::uint32_t s = 0; s < sparse::hash_slots; ++s) {
              sparse::for_each_by_id(snapshot, s, [&](sparse::row_header const& header, view<float> values) {
                ids.push_back(header.id);
                weights.insert(weights.end(), values.begin(), values.begin() + std::ptrdiff_t(width));
              });
              if (ids.size() < detail::rows_at_once && s + 1 < sparse::hash_slots) continue;
              invariant(weights.size() == ids.size() * width, "each id has its weights");
              written += ids.size();
              to(ids, weights);
              ids.clear(), weights.clear();
            }
            invariant(written == snapshot.size(), "all rows of a snapshot are written");
          }};
}

EDL_INLINE void export_model(std::string const& path, parameter_layout const& layout, view<float> variables,
                             std::span<row_source const> tables, std::uint64_t version,
                             model_origin const& from) {
  if (variables.size() != layout.size())
    throw error(
        fmt::format("cannot write {}: {} values for a model of {}", path, variables.size(), layout.size()));
  std::vector<tensor_source> tensors;
  for (variable const& v : layout.variables)
    tensors.push_back({.name = v.name,
                       .dims = {v.dims.sizes.begin(), v.dims.sizes.begin() + v.dims.rank},
                       .data = std::as_bytes(variables.subspan(v.offset, v.dims.size()))});
  if (tables.size() != layout.tables.size())
    throw error(fmt::format("cannot write {}: {} tables for a model of {}", path, tables.size(),
                            layout.tables.size()));
  for (std::size_t i = 0; i < tables.size(); ++i) {
    auto const& [name, width] = layout.tables[i];
    row_source const& rows = tables[i];
    tensors.push_back({.name = detail::ids_tensor(name),
                       .dtype = "U64",
                       .dims = {rows.rows},
                       .data = {},
                       .stream = [&rows](tensor_source::sink const& to) {
                         rows.each([&](view<std::uint64_t> ids, view<float>) { to(std::as_bytes(ids)); });
                       }});
    tensors.push_back({.name = detail::embeddings_tensor(name),
                       .dims = {rows.rows, std::uint64_t(width)},
                       .data = {},
                       .stream = [&rows](tensor_source::sink const& to) {
                         rows.each(
                             [&](view<std::uint64_t>, view<float> weights) { to(std::as_bytes(weights)); });
                       }});
  }
  std::map<std::string, std::string> metadata{
      {"edl", "model 1"},
      {"version", std::to_string(version)},
      {"layout_digest", fmt::format("{:016x}", layout_digest(layout))}};
  if (!tables.empty()) metadata["row_order"] = rows_by_slot;
  if (from.seed) metadata["seed"] = std::to_string(*from.seed);
  if (!from.hyperparameters.empty()) metadata["hyperparameters"] = from.hyperparameters;
  if (!from.record.empty()) metadata["record"] = from.record;
  write_model(path, tensors, std::move(metadata));
}

EDL_INLINE void write_model(std::string const& path, std::span<tensor_source const> tensors,
                            std::map<std::string, std::string> metadata) {
  metadata["crc32"] = detail::no_checksum;
  invariant(metadata.begin()->first == "crc32", "the checksum is the first entry of the metadata");
  durable_file file(path);
  write_safetensors(file, tensors, metadata);
  file.overwrite(detail::checksum_place, fmt::format("{:08x}", file.crc32()));
  file.commit();
}

EDL_INLINE void check_model(std::string const& path) {
  if (is_onnx(path)) return;
  input_file const file(path);
  constexpr std::size_t digits = detail::no_checksum.size(), first = detail::checksum_place + digits;
  if (file.size() < first) return;
  std::string chunk(first, '\0');
  file.read(0, std::as_writable_bytes(std::span(chunk)));
  if (chunk.compare(sizeof(std::uint64_t), detail::before_checksum.size(), detail::before_checksum) != 0)
    return;
  std::string const says = chunk.substr(detail::checksum_place);
  chunk.replace(detail::checksum_place, digits, detail::no_checksum);
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0;;) {
    crc = std::uint32_t(crc32_z(crc, reinterpret_cast<Bytef const*>(chunk.data()), chunk.size()));
    at += chunk.size();
    if (at == file.size()) break;
    chunk.resize(std::size_t(std::min<std::uint64_t>(file.size() - at, 1u << 20)));
    file.read(at, std::as_writable_bytes(std::span(chunk)));
  }
  if (says != fmt::format("{:08x}", crc))
    throw error(
        fmt::format("{} is damaged: its CRC-32 is {:08x}, but its metadata gives {}; export it again, or "
                    "remove 'crc32' from the metadata if it was changed on purpose",
                    path, crc, detail::shown(says)));
}

EDL_INLINE void import_rows(
    std::string const& path, parameter_layout const& layout,
    std::function<void(std::size_t table, view<std::uint64_t> ids, view<float> weights)> const& put) {
  if (layout.tables.empty()) return;
  if (is_onnx(path))
    throw error(fmt::format(
        "{} has no readable rows for table '{}': give a checkpoint, or a model written by --output", path,
        layout.tables[0].name));
  safetensors_file const file(path);
  std::vector<std::uint64_t> ids;
  std::vector<float> weights;
  for (std::size_t i = 0; i < layout.tables.size(); ++i) {
    auto const& [name, width] = layout.tables[i];
    tensor const* const keys = file.find(detail::ids_tensor(name));
    tensor const* const rows = file.find(detail::embeddings_tensor(name));
    if (!keys || !rows) throw error(fmt::format("{} lacks table '{}' of the model", path, name));
    if (keys->dtype != "U64" || keys->dims.size() != 1 || rows->dtype != "F32" ||
        rows->dims != std::vector<std::uint64_t>{keys->dims[0], std::uint64_t(width)})
      throw error(fmt::format(
          "table '{}' of {} is {} [{}] of ids and {} [{}], but the model has rows of {} values", name, path,
          keys->dtype, fmt::join(keys->dims, ", "), rows->dtype, fmt::join(rows->dims, ", "), width));
    for (std::uint64_t first = 0, all = keys->dims[0]; first < all; first += detail::rows_at_once) {
      auto const n = std::size_t(std::min<std::uint64_t>(detail::rows_at_once, all - first)),
                 w = std::size_t(width);
      ids.resize(n);
      weights.resize(n * w);
      file.read(*keys, first * sizeof(std::uint64_t), std::as_writable_bytes(std::span(ids)));
      file.read(*rows, first * w * sizeof(float), std::as_writable_bytes(std::span(weights)));
      put(i, ids, weights);
    }
  }
}

namespace detail {

EDL_INLINE std::optional<std::uint64_t> number_in(safetensors_file const& file, std::string const& name) {
  auto const it = file.metadata().find(name);
  return it == file.metadata().end() ? std::nullopt : number_from<std::uint64_t>(it->second);
}

/// An entry of an ONNX file's metadata; empty if there is none.
inline std::string note_in(std::string const& path, std::string const& name) {
  onnx::initializers const file(path);
  auto const it = file.notes().find(name);
  return it == file.notes().end() ? std::string() : it->second;
}

}  // namespace detail

EDL_INLINE std::uint64_t model_version(std::string const& path) {
  if (is_onnx(path))
    return number_from<std::uint64_t>(detail::note_in(path, "edl_version_of_model")).value_or(0);
  return model_version(safetensors_file(path));
}

EDL_INLINE std::uint64_t model_version(safetensors_file const& file) {
  return detail::number_in(file, "version").value_or(0);
}

EDL_INLINE std::optional<std::uint64_t> model_seed(std::string const& path) {
  if (is_onnx(path)) return std::nullopt;
  return detail::number_in(safetensors_file(path), "seed");
}

EDL_INLINE std::string model_note(std::string const& path, std::string const& name) {
  if (is_onnx(path)) return detail::note_in(path, name);
  safetensors_file const file(path);
  auto const it = file.metadata().find(name);
  return it == file.metadata().end() ? std::string() : it->second;
}

}  // namespace edl::checkpoint
