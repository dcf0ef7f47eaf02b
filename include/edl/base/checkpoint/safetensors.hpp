// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "edl/core/durable_file.hpp"
#include "edl/core/input_file.hpp"
#include "edl/core/span.hpp"

/// The safetensors format (github.com/huggingface/safetensors, README, "Format"). The length of the header
/// comes first, as a little-endian u64. A JSON object of name → {dtype, shape, data_offsets} follows, with a
/// map of texts under `__metadata__`, padded with spaces. The tensors' bytes are last, little-endian,
/// row-major, without gaps.
namespace edl::checkpoint {

inline constexpr std::uint64_t longest_safetensors_header = 100'000'000;  ///< bytes, the format's own limit

/// A tensor of a file.
struct tensor {
  std::string name;
  std::string dtype;  ///< "F32", "I64", … as in the format
  std::vector<std::uint64_t> dims;
  std::uint64_t begin = 0, end = 0;  ///< its bytes, from the end of the header
  std::size_t part = 0;              ///< the file, of those that an index names
};

/// A tensor to be written: the caller owns `data`.
struct tensor_source {
  using sink = std::function<void(bytes)>;

  std::string name;
  std::string dtype = "F32";
  std::vector<std::uint64_t> dims;
  bytes data;
  std::function<void(sink const&)> stream = {};  ///< if set, passes the bytes instead, piece by piece
};

namespace detail {
/// A name from a file, made printable for one line of an error.
std::string shown(std::string_view name);
}  // namespace detail

/// Bytes of one element; 0 for an unknown dtype.
std::size_t element_bytes(std::string_view dtype);

/// Writes a complete file into `file`, directly from the sources, without `commit`. The data begin at a
/// multiple of 64 bytes. Throws edl::error for a duplicate name, a size that does not fit the extents, or a
/// header length above the limit.
void write_safetensors(durable_file& file, std::span<tensor_source const> tensors,
                       std::map<std::string, std::string> const& metadata = {});

/// How the name of an index ends: a JSON text whose `weight_map` names the file of each tensor. Hugging
/// Face's libraries write it beside a model in several files.
inline constexpr std::string_view index_ending = ".safetensors.index.json";
inline constexpr char const* model_index = "model.safetensors.index.json";  ///< its usual name
inline constexpr std::size_t most_parts = 512;  ///< files of an index; all are open at once

/// A file whose header, dtypes, extents and offsets have been checked against each other and the file's size.
/// Tensors are inside the file, do not overlap and leave no gaps, and names are unique. Otherwise it throws
/// edl::error, which names the file and the tensor or offset. An index counts as one file with the tensors of
/// all files that it names, which lie beside it; it has no metadata. Thread safety: const, safe.
class safetensors_file {
 public:
  explicit safetensors_file(std::string path);

  std::string const& path() const { return file_.path(); }
  /// Bytes of the whole file; of an index, without the files that it names.
  std::uint64_t size() const { return file_.size(); }
  std::vector<tensor> const& tensors() const { return tensors_; }  ///< by name
  std::map<std::string, std::string> const& metadata() const { return metadata_; }

  /// The tensor with this name, or null.
  tensor const* find(std::string_view name) const;

  /// The offset of a tensor in this file, in bytes; in the file of its part, if this is an index.
  std::uint64_t position(tensor const& t) const {
    return parts_.empty() ? data_ + t.begin : parts_[t.part].position(t);
  }

  /// Reads bytes [offset, offset + into.size()) of a tensor of this file.
  void read(tensor const& t, std::uint64_t offset, std::span<std::byte> into) const;

  /// zlib's CRC-32 of the whole file: reads all of it.
  std::uint32_t crc32() const { return file_.crc32(); }

 private:
  void read_header();
  void read_index();

  input_file file_;
  std::vector<safetensors_file> parts_;  // that an index names
  std::vector<tensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::uint64_t data_ = 0;  // offset of the data
};

}  // namespace edl::checkpoint

#ifdef EDL_HEADER_ONLY
#include "edl/base/checkpoint/safetensors.ipp"
#endif
