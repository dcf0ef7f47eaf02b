// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/input_file.hpp"

namespace edl::onnx {

/// Bytes of a name or a note that are read; longer ones are passed over.
inline constexpr std::size_t longest_note = 1u << 16;

/// A tensor among the weights of a model.
struct initializer {
  std::string name;
  std::string dtype;                ///< "F32", "F16", "BF16", "I64"; "type N" of ONNX's others
  std::vector<std::uint64_t> dims;  ///< at most 8
  bool floats() const { return dtype == "F32" || dtype == "F16" || dtype == "BF16"; }

  // Where its bytes are, by what has been checked.
  std::string file{};  ///< beside the model; empty: in it
  std::uint64_t offset = 0, size = 0;
  bool varints = false;  ///< as int32_data has narrow numbers

  std::vector<std::uint32_t> loose{};  ///< or else the bits of each number, which lie apart from each other
};

/// The weights of a file of ONNX (onnx/onnx.proto3), whoever wrote it: those among the initializers, and
/// those of nodes `Constant`. Other nodes are passed over. Tensors of numbers lie inside the file, or inside
/// one beside or below it, and have as many bytes as their extents say. No name stands twice. Anything else
/// is an edl::error that names the file and the tensor or offset. Thread safety: const, safe.
class initializers {
 public:
  explicit initializers(std::string path);

  std::string const& path() const { return file_.path(); }
  std::string const& producer() const { return producer_; }
  std::map<std::string, std::string> const& notes() const { return notes_; }  ///< the model's metadata
  std::vector<initializer> const& all() const { return all_; }                ///< by name
  initializer const* find(std::string_view name) const;

  /// The numbers of one of `floats`, row-major, as they stand there.
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
