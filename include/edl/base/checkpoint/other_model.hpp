// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/base/checkpoint/weight_name.hpp"
#include "edl/compute/onnx/initializers.hpp"
#include "edl/compute/onnx/origins.hpp"
#include "edl/core/layout.hpp"

namespace edl::checkpoint {

/// What a model finds of its variables in another one's file.
struct variable_match {
  std::vector<std::string> found;        ///< names of the model's variables
  std::vector<std::string> missing;      ///< likewise, with the other name that they may have there
  std::vector<std::string> other_shape;  ///< likewise, with both shapes
  std::string why{};                     ///< what is missing is, if that is known

  bool whole() const { return missing.empty() && other_shape.empty(); }

  /// One line: what was found, what was not, and what has another shape.
  std::string describe() const;
};

/// Throws error where one of `names` is of no variable of the layout, or two are of one.
void check_weight_names(parameter_layout const& layout, std::span<weight_name const> names);

/// A model that this one may have all or some variables of: a file of safetensors or ONNX, whoever wrote it,
/// or a checkpoint's directory. Variables are found by name, and by the names that `names` give them. They
/// fit when they are F32, F16 or BF16 and have the same extents; all become float32. Errors are edl::error
/// and name the file. Thread safety: const, safe.
class other_model {
 public:
  /// Where the variables of a layout stand in a file of ONNX that edl has exported, whose tensors are turned.
  using export_places = std::function<std::vector<onnx::tensor_origin>()>;

  /// `path`: a file, or a checkpoint's directory. `places`: of the layout of all calls; asked for such a
  /// file.
  explicit other_model(std::string path, export_places const& places = {});

  std::string const& path() const { return path_; }

  /// Throws error as `check_weight_names` does.
  variable_match match(parameter_layout const& layout, std::span<weight_name const> names) const;

  /// Fills elements [first, first + into.size()) of the arena as far as they are found, and leaves the
  /// others.
  void read(parameter_layout const& layout, std::span<weight_name const> names, std::size_t first,
            std::span<float> into) const;

  /// Whether it is a file that has rows for such a table.
  bool has_rows(table_shape const& table) const;

 private:
  struct place {
    std::string name;
    std::string dtype;
    std::vector<std::uint64_t> dims;
    weight_order order = weight_order::same;
  };

  void restore(std::vector<onnx::tensor_origin> const& places);
  bool is_restored(variable const& v) const;
  std::optional<place> find(std::string_view name) const;
  std::optional<place> find(variable const& v, std::span<weight_name const> names) const;

  std::string path_;
  std::optional<safetensors_file> file_;
  std::optional<onnx::initializers> onnx_;
  bool exported_ = false;        // the file of ONNX is edl's
  std::set<std::string> whole_;  // its tensors that are variables as they lie
  std::vector<float> values_;    // of its variables, as they were before
  std::vector<bool> restored_;   // which of them have been found
  parameter_layout layout_;      // of a checkpoint
};

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/other_model.ipp"
#endif
