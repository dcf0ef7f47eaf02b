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
#include "edl/core/span.hpp"

namespace edl::checkpoint {

/// The matches of a model's variables in another model's file.
struct variable_match {
  std::vector<std::string> found;        ///< names of the model's variables
  std::vector<std::string> missing;      ///< likewise, with the other name that they could have there
  std::vector<std::string> other_shape;  ///< likewise, with both shapes
  std::string why{};                     ///< the reason for missing ones, if known

  bool whole() const { return missing.empty() && other_shape.empty(); }

  /// One line: the found variables, the missing ones, and those with another shape.
  std::string describe() const;
};

/// Throws error if one of `names` is for no variable of the layout, or two are for one.
void check_weight_names(parameter_layout const& layout, std::span<weight_name const> names);

/// The names of the tensors that `names` give to a variable; empty: none.
std::vector<std::string> tensors_of(std::span<weight_name const> names, std::string_view variable);

/// Another model, which may have all or some variables of this one: a safetensors or ONNX file of any
/// program, or a checkpoint's directory. It finds variables by name, and by the names in `names`. They match
/// if they are F32, F16 or BF16 and have the same extents; all become float32. Errors are edl::error and name
/// the file. Thread safety: const, safe.
class other_model {
 public:
  /// The places of a layout's variables in an ONNX file that edl has exported, with transposed tensors.
  using export_places = std::function<std::vector<onnx::tensor_origin>()>;

  /// `path`: a file, or a checkpoint's directory. `places`: of the layout of all calls; called for an ONNX
  /// file of edl.
  explicit other_model(std::string path, export_places const& places = {});

  std::string const& path() const { return path_; }

  /// Throws as `check_weight_names` does.
  variable_match match(parameter_layout const& layout, std::span<weight_name const> names) const;

  /// Fills the matching elements among [first, first + into.size()) of the arena, and does not change the
  /// others.
  void read(parameter_layout const& layout, std::span<weight_name const> names, std::size_t first,
            std::span<float> into) const;

  /// A variable's values as the tensors that it is here, in their names, extents and order, as F32. The
  /// values must outlive them. Throws error if it is not here.
  std::vector<tensor_source> as_theirs(variable const& v, std::span<weight_name const> names,
                                       view<float> values) const;

  /// Whether it is a file with rows for this table.
  bool has_rows(table_shape const& table) const;

 private:
  struct place {
    std::string name;
    std::string dtype;
    std::vector<std::uint64_t> dims;
    std::vector<std::string> more{};  ///< tensors that follow it
    weight_order order = weight_order::same;
  };

  void restore(std::vector<onnx::tensor_origin> const& places);
  bool is_restored(variable const& v) const;
  std::optional<place> find(std::string_view name) const;
  std::optional<place> find(variable const& v, std::span<weight_name const> names) const;

  std::string path_;
  std::optional<safetensors_file> file_;
  std::optional<onnx::initializers> onnx_;
  bool exported_ = false;        // the ONNX file is edl's
  std::set<std::string> whole_;  // its tensors that equal variables in place
  std::vector<float> values_;    // of its variables, as they were before
  std::vector<bool> restored_;   // which of them have been found
  parameter_layout layout_;      // of a checkpoint
};

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/other_model.ipp"
#endif
