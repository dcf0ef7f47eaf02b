// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "edl/compute/data/file.hpp"
#include "edl/compute/data/reader.hpp"
#include "edl/core/inline.hpp"

namespace edl::data {

/// Unsigned bytes with extents, the format of MNIST's files (yann.lecun.com/exdb/mnist: magic {0, 0, type 8,
/// rank}, then a big-endian uint32 per dimension, then the values).
struct idx_values {
  std::vector<std::uint32_t> dims;
  std::string values;  // as many bytes as the product of dims
};

/// Reads an IDX file, optionally compressed by gzip. Throws data_error if it is not one, or larger than 1
/// GiB.
idx_values read_idx(std::string const& path);

/// Images and labels of a pair of IDX files, in memory. Features: `image` (floats 0 to 255, rows·columns of
/// them), `label` (one integer).
class idx_source : public source {
 public:
  idx_source(std::string const& images, std::string const& labels);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;

 private:
  idx_values images_, labels_;
  std::vector<shard> shards_;
};

/// CIFAR-10 in its binary layout (cs.toronto.edu/~kriz/cifar.html): a record is a label byte, then 1,024
/// bytes each of red, green and blue. Features: `image` (3,072 floats 0 to 255, in the order height, width,
/// channel), `label` (one integer). A file is a shard.
class cifar10_source : public source {
 public:
  explicit cifar10_source(std::vector<std::string> const& paths);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;

 private:
  std::vector<detail::input_file> files_;
  std::vector<shard> shards_;
};

namespace detail {
class numpy_reader;

/// The header of an .npy file.
struct npy_header {
  char kind = 'f';  ///< of a number: f, i, u or b
  std::size_t width = 4;
  std::vector<std::uint64_t> extents;
  std::size_t begin = 0;  ///< of the numbers, in the file

  std::uint64_t values() const;  ///< of one record, an element of the first axis
};

/// Reads the header from a file's first bytes, up to 64 KiB, and checks it against the file's size. Throws
/// data_error, without the name, which says how to save the file with NumPy.
npy_header read_npy_header(std::string_view first, std::uint64_t file_size);

inline constexpr std::size_t most_npy_header = 64u << 10;

}  // namespace detail

/// NumPy arrays (numpy.lib.format): an `.npy` file, a directory of such files, or an `.npz` file. The first
/// axis of an array counts the records, and has the same length in all of them. An array is a feature with
/// the name of its file or member. float32 and float64 give floats; int8 to int64, uint8 to uint64 and bool
/// give integers, in C's order of the other axes. All records are one shard.
///
/// An `.npy` file is read in place. An `.npz` file, compressed or not, is read into memory, up to 1 GiB.
class numpy_source : public source {
 public:
  /// `.npy` files, or one `.npz` file. Throws data_error, which names the file or the member, for an array
  /// with an unsupported type, byte order or axis order, a wrong size, or another number of records.
  explicit numpy_source(std::vector<std::string> const& paths);

  std::vector<shard> const& shards() const override { return shards_; }
  std::unique_ptr<reader> open() const override;
  std::uint64_t digest(std::size_t shard) const override;

 private:
  friend class detail::numpy_reader;
  struct array {
    std::string name, path;
    detail::npy_header header;
    detail::input_file file;  // or
    std::string bytes;        // all of a member
  };
  void add(std::string const& first, array a);
  void open_npz(std::string const& path);

  std::vector<array> arrays_;
  std::vector<shard> shards_;
  std::unique_ptr<detail::input_file> packed_;  // the .npz file
};

}  // namespace edl::data

#ifdef EDL_HEADER_ONLY
#include "edl/compute/data/format/array_file.ipp"
#endif
