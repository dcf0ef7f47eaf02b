// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/checkpoint/safetensors.hpp"

namespace edl::checkpoint {

/// Reads an exported model for serving: variables by name, and rows of tables by id. It maps the file and
/// reads only what is requested. So the file may be larger than memory, and processes share the system's
/// cache of it. The file must not be modified meanwhile; `export_model` replaces it as a whole.
///
/// Errors are edl::error and name the file. Thread safety: const, safe.
class model_reader {
 public:
  explicit model_reader(std::string path);
  ~model_reader();
  model_reader(model_reader const&) = delete;
  model_reader& operator=(model_reader const&) = delete;

  std::uint64_t version() const { return version_; }  ///< of the model; 0 in other programs' files

  /// A variable's values, row-major, and its extents. In other programs' files they may also be F16 or BF16.
  struct variable {
    std::vector<std::uint64_t> dims;
    std::vector<float> values;
  };
  variable read(std::string_view name) const;

  struct table {
    std::string name;
    std::uint64_t rows = 0;
    std::size_t width = 0;

   private:
    friend class model_reader;
    std::byte const *ids = nullptr, *weights = nullptr;
  };
  std::vector<table> const& tables() const { return tables_; }

  /// The table with this name; it must not outlive the reader.
  table const& find_table(std::string_view name) const;

  /// Copies the weights of an id's row into `to` (width). Returns false, and copies nothing, if the id has no
  /// row. Takes about 30 probes in a table of a billion rows.
  bool find(table const& in, std::uint64_t id, std::span<float> to) const;

 private:
  safetensors_file file_;
  std::byte const* mapped_ = nullptr;
  std::vector<table> tables_;
  std::uint64_t version_ = 0;
};

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/model_reader.ipp"
#endif
