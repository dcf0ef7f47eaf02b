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

  /// `plain`: float32. Trusts oneDNN with a layout that has no padding, or that only oneDNN knows. Does not
  /// have it try a large layout, but replaces it.
  weight_packing([[maybe_unused]] dnnl::engine const& on, [[maybe_unused]] dnnl::memory::desc const& plain,
                 [[maybe_unused]] dnnl::memory::desc const& packed) {
#if DNNL_VERSION_MAJOR >= 3
    constexpr std::size_t most = 1 << 20;
    if (packed.get_format_kind() != dnnl::memory::format_kind::blocked ||
        packed.get_padded_dims() == packed.get_dims())
      return;
    narrow_ = packed.get_data_type() == dnnl::memory::data_type::bf16;
    size_ = packed.get_size();
    find_places(plain, packed);
    if (size_ <= most && right(on, plain, packed)) axes_.clear();
#endif
  }

  /// Whether oneDNN moves the numbers.
  bool by_library() const { return axes_.empty(); }

  void pack(float const* plain, void* packed) const {
    std::memset(packed, 0, size_);
    each(0, 0, 0, [&](std::size_t from, std::size_t to) {
      if (narrow_)
        static_cast<std::uint16_t*>(packed)[to] = to_bfloat16(plain[from]);
      else
        static_cast<float*>(packed)[to] = plain[from];
    });
  }

  void unpack(float const* packed, float* plain) const {
    each(0, 0, 0, [&](std::size_t from, std::size_t to) { plain[from] = packed[to]; });
  }

 private:
  /// What an index along an axis adds to the places of a number. A block is of one axis, so axes do not
  /// depend on each other.
  struct place {
    std::size_t plain, packed;
  };

  /// visit(place in the caller's layout, place in the kernel's), for all numbers.
  template <class Visit>
  void each(std::size_t axis, std::size_t plain, std::size_t packed, Visit const& visit) const {
    bool const last = axis + 1 == axes_.size();
    for (place const& p : axes_[axis])
      if (last)
        visit(plain + p.plain, packed + p.packed);
      else
        each(axis + 1, plain + p.plain, packed + p.packed, visit);
  }

#if DNNL_VERSION_MAJOR >= 3
  /// By the documented meaning of a blocked layout.
  void find_places(dnnl::memory::desc const& plain, dnnl::memory::desc const& packed) {
    auto const dims = plain.get_dims(), strides = plain.get_strides(), outer = packed.get_strides(),
               blocks = packed.get_inner_blks(), of = packed.get_inner_idxs();
    axes_.resize(dims.size());
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      for (dnnl::memory::dim i = 0; i < dims[axis]; ++i) {
        dnnl::memory::dim rest = i, to = 0, width = 1;
        for (std::size_t b = blocks.size(); b-- > 0; width *= blocks[b]) {
          if (std::size_t(of[b]) != axis) continue;
          to += rest % blocks[b] * width;
          rest /= blocks[b];
        }
        axes_[axis].push_back({std::size_t(i * strides[axis]), std::size_t(to + rest * outer[axis])});
      }
  }

  /// Whether oneDNN moves numbers to these places, fills up with zeros, and moves them back.
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
    bool same = true;
    each(0, 0, 0, [&](std::size_t at, std::size_t) { same = same && back[at] == given[at]; });
    return same;
  }
#endif

  bool narrow_ = false;
  std::size_t size_ = 0;                  // bytes of the kernel's layout
  std::vector<std::vector<place>> axes_;  // empty: oneDNN moves them
};

}  // namespace edl::detail

#endif
