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

/// An exported model, as a program that serves it reads it: variables by name, and rows of tables by id. The
/// file is mapped: what is asked for is read, and no more. So it may be larger than memory, and many
/// processes share what the system keeps of it. Nobody may write to the file meanwhile; `export_model`
/// replaces it whole.
///
/// Errors are edl::error and name the file. Thread safety: const, safe.
class model_reader {
 public:
  explicit model_reader(std::string path);
  ~model_reader();
  model_reader(model_reader const&) = delete;
  model_reader& operator=(model_reader const&) = delete;

  std::uint64_t version() const { return version_; }  ///< of the model; 0 in others' files

  /// A variable's values, row-major, and its extents. In others' files they may be F16 or BF16 as well.
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

  /// The table of that name, which outlives the reader no longer.
  table const& find_table(std::string_view name) const;

  /// Copies the weights of an id's row into `to` (width). False, and nothing is copied, where the id has
  /// none. It takes about 30 looks at the ids of a table of a billion rows.
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
