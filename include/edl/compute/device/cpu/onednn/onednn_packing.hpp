// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef EDL_ONEDNN

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <dnnl.hpp>
#include <vector>

#include "edl/compute/device/cpu/onednn/onednn_types.hpp"
#include "edl/core/bfloat16.hpp"

namespace edl::detail {

/// How the numbers of a matrix, or of a convolution's kernel, come from the caller's layout into the one that
/// a kernel of oneDNN wants, and back. On some processors oneDNN 3.7.2's own reorder leaves numbers out where
/// it has to fill up blocks. The constructor has it move known numbers. Where the result is wrong, `pack` and
/// `unpack` replace it. Thread safety: concurrent calls of const functions: safe.
class weight_packing {
 public:
  weight_packing() = default;

  /// `plain`: float32. Trusts oneDNN with a layout that has no padding, or that only oneDNN knows.
  weight_packing([[maybe_unused]] dnnl::engine const& on, [[maybe_unused]] dnnl::memory::desc const& plain,
                 [[maybe_unused]] dnnl::memory::desc const& packed) {
#if DNNL_VERSION_MAJOR >= 3
    if (packed.get_format_kind() != dnnl::memory::format_kind::blocked ||
        packed.get_padded_dims() == packed.get_dims())
      return;
    narrow_ = packed.get_data_type() == dnnl::memory::data_type::bf16;
    size_ = packed.get_size();
    places_ = places(plain, packed);
    if (right(on, plain, packed)) places_.clear();
#endif
  }

  /// Whether oneDNN moves the numbers.
  bool by_library() const { return places_.empty(); }

  void pack(float const* plain, void* packed) const {
    std::memset(packed, 0, size_);
    for (place const& p : places_)
      if (narrow_)
        static_cast<std::uint16_t*>(packed)[p.packed] = to_bfloat16(plain[p.plain]);
      else
        static_cast<float*>(packed)[p.packed] = plain[p.plain];
  }

  void unpack(float const* packed, float* plain) const {
    for (place const& p : places_) plain[p.plain] = packed[p.packed];
  }

 private:
  struct place {
    std::size_t plain, packed;
  };

#if DNNL_VERSION_MAJOR >= 3
  /// Of each number, by the documented meaning of a blocked layout.
  static std::vector<place> places(dnnl::memory::desc const& plain, dnnl::memory::desc const& packed) {
    auto const dims = plain.get_dims(), strides = plain.get_strides(), outer = packed.get_strides(),
               blocks = packed.get_inner_blks(), of = packed.get_inner_idxs();
    std::vector<place> all;
    dnnl::memory::dims at(dims.size());
    for (bool more = true; more;) {
      dnnl::memory::dims rest = at;
      dnnl::memory::dim from = 0, to = 0, width = 1;
      for (std::size_t b = blocks.size(); b-- > 0; width *= blocks[b]) {
        auto& i = rest[std::size_t(of[b])];
        to += i % blocks[b] * width;
        i /= blocks[b];
      }
      for (std::size_t d = 0; d < dims.size(); ++d) from += at[d] * strides[d], to += rest[d] * outer[d];
      all.push_back({std::size_t(from), std::size_t(to)});
      more = false;
      for (std::size_t d = dims.size(); d-- > 0 && !more;) more = ++at[d] < dims[d] || (at[d] = 0, false);
    }
    return all;
  }

  /// Whether oneDNN moves numbers to where `places_` says, fills up with zeros, and moves them back.
  bool right(dnnl::engine const& on, dnnl::memory::desc const& plain,
             dnnl::memory::desc const& packed) const {
    std::vector<float> given(plain.get_size() / sizeof(float)), back(given.size());
    std::vector<std::byte> moved(size_, std::byte{0xff}), expected(size_);  // not a number
    // bfloat16 has all whole numbers to 256.
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = float(1 + i * 7919 % 251);
    pack(given.data(), expected.data());
    dnnl::stream stream(on);
    dnnl::memory ours(plain, on, given.data()), its(packed, on, moved.data()), again(plain, on, back.data());
    dnnl::reorder(ours, its).execute(stream, ours, its);
    if (moved != expected) return false;
    if (narrow_) return true;  // gradients, which are moved back, are of float32
    dnnl::reorder(its, again).execute(stream, its, again);
    for (place const& p : places_)
      if (back[p.plain] != given[p.plain]) return false;
    return true;
  }
#endif

  bool narrow_ = false;
  std::size_t size_ = 0;       // bytes of the kernel's layout
  std::vector<place> places_;  // empty: oneDNN moves them
};

}  // namespace edl::detail

#endif
