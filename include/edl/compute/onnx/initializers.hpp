// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/onnx/fields.hpp"
#include "edl/core/input_file.hpp"

namespace edl::onnx {

/// A tensor of a model's weights.
struct initializer {
  std::string name;
  std::string dtype;                ///< "F32", "F16", "BF16", "I64"; "type N" of ONNX's others
  std::vector<std::uint64_t> dims;  ///< at most 8
  bool floats() const { return dtype == "F32" || dtype == "F16" || dtype == "BF16"; }

  // The place of its bytes, already verified.
  std::string file{};  ///< beside the model; empty: the model itself
  std::uint64_t offset = 0, size = 0;
  bool varints = false;  ///< stored as varints, as int32_data stores narrow numbers

  std::vector<std::uint32_t> loose{};  ///< otherwise the bits of each number, if they are not contiguous
};

/// The weights in an ONNX file (onnx/onnx.proto3) of any producer: initializers, and the tensors of
/// `Constant` nodes. Other nodes are ignored. Tensors must lie inside the file, or inside a file beside or
/// below it, and have as many bytes as their extents require. Names must be unique. Anything else is an
/// edl::error that names the file and the tensor or offset. Thread safety: const functions: safe.
class initializers {
 public:
  explicit initializers(std::string path);

  std::string const& path() const { return file_.path(); }
  std::string const& producer() const { return producer_; }
  std::map<std::string, std::string> const& notes() const { return notes_; }  ///< the model's metadata
  std::vector<initializer> const& all() const { return all_; }                ///< by name
  initializer const* find(std::string_view name) const;

  /// The numbers of a tensor in `floats`, row-major, as stored.
  std::vector<float> read(initializer const& t) const;

 private:
  friend struct initializers_parser;
  input_file file_;
  std::map<std::string, input_file> beside_;
  std::string producer_;
  std::map<std::string, std::string> notes_;
  std::vector<initializer> all_;
};

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/initializers.ipp"
#endif
