// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/error.hpp"
#include "edl/core/json.hpp"
#include "edl/core/partition.hpp"

/// The common parts of a checkpoint's files: their names, and their metadata.
namespace edl::checkpoint::detail {

inline constexpr char const *part_format = "checkpoint 1", *rows_format = "rows 1";

/// JSON in a file's metadata; throws edl::error for invalid values.
class part_facts {
 public:
  explicit part_facts(safetensors_file const& file) : file_(file) {}

  std::string const& text(char const* name) const {
    auto const it = file_.metadata().find(name);
    if (it == file_.metadata().end()) fail(name);
    return it->second;
  }

  nlohmann::json json(char const* name) const {
    auto value = parse_json(text(name));
    if (value.is_discarded()) fail(name);
    return value;
  }

  std::uint64_t number(char const* name) const { return number(json(name), name); }

  std::uint64_t number(nlohmann::json const& value, char const* name) const {
    if (!value.is_number_unsigned()) fail(name);
    return value.get<std::uint64_t>();
  }

  [[noreturn]] void fail(char const* name) const {
    throw error(
        fmt::format("{} is not a part of a checkpoint: its metadata has no valid '{}'", file_.path(), name));
  }

 private:
  safetensors_file const& file_;
};

/// One server's file.
struct opened_part {
  safetensors_file file;
  manifest::file listed;
  element_range elements;
};

void check_listed(safetensors_file const& file, manifest::file const& listed);
void check_content(safetensors_file const& file, manifest::file const& listed);

/// Opens a file of this format, and checks its size against the manifest.
opened_part open_part(std::string const& path, manifest::file const& listed, std::string_view format);

/// The name of the file that this one contains changes to; empty: it is complete.
std::string followed_by(opened_part const& part);

/// The histories of a file's elements, or of its hash slots, covering them in order.
std::vector<segment> segments_of(opened_part const& part);

/// The same as JSON. Throws edl::error, which begins with `where`, unless they cover `all` in order.
std::string to_json(std::span<segment const> segments, element_range all, std::string_view where);

/// A new, unique file name: `<kind>-<server>-of-<servers>-<16 hex digits>.safetensors`.
std::string new_part_name(std::string_view kind, std::uint32_t server, std::uint32_t servers);

/// Writes a file of a checkpoint, and its size and checksum into `as`.
void write_file(bucket::place const& to, manifest::file& as, std::span<tensor_source const> tensors,
                std::map<std::string, std::string> const& metadata);

/// The minibatches that all segments have applied.
edl::ledger common_ledger(std::span<segment const> segments);

}  // namespace edl::checkpoint::detail

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/part.ipp"
#endif
