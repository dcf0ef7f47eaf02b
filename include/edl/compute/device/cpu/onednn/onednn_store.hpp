// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef EDL_ONEDNN

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "edl/compute/device/buffer.hpp"
#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/onednn/onednn_kernel.hpp"
#include "edl/compute/device/cpu/onednn/onednn_matmul.hpp"

namespace edl::detail {

/// oneDNN's kernels that a device has made. Kernels are made and found on the calling thread alone.
struct onednn_store final : kernel_store {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::deque<conv_kernel> convolutions;
  std::deque<matmul_kernel> products;
  std::vector<matmul_kernel*> of_parts;        // of the product at hand
  std::array<aligned_buffer<float>, 2> rooms;  // for a kernel in its convolution's layout, during a call
  std::vector<conv_key> missing;               // oneDNN has them for other processors or shapes
  std::vector<matmul_key> missing_products;

  /// Null where oneDNN has none.
  conv_kernel* find(conv_key const& key, int threads) { return find(key, threads, convolutions, missing); }
  matmul_kernel* find(matmul_key const& key, int threads) {
    return find(key, threads, products, missing_products);
  }

  /// The kernel in a convolution's layout, as it was when the device was last told that kernels were written.
  /// Null where that would be more than is kept.
  float* kept(basic_cpu<float>& cpu, conv_kernel& k, float const* kernel) {
    auto at = std::ranges::find_if(layouts,
                                   [&](auto const& l) { return l.kernel == kernel && l.packed == k.packed; });
    if (at == layouts.end()) {
      if (k.packed == k.plain || !cpu.keeps_more(k.packed_size)) return nullptr;
      at = layouts.insert(at, {kernel, k.packed, aligned_buffer<float>(k.packed_size), 0});
    }
    float* const room = at->room.span().data();
    if (std::exchange(at->written, cpu.written()) != cpu.written()) k.laid_out(0, kernel, room);
    return room;
  }

 private:
  struct layout {
    float const* kernel;
    dnnl::memory::desc packed;
    aligned_buffer<float> room;
    std::uint64_t written;
  };
  std::vector<layout> layouts;

  template <class Key, class Kernel>
  Kernel* find(Key const& key, int threads, std::deque<Kernel>& known, std::vector<Key>& absent) {
    for (Kernel& k : known)
      if (k.key == key) return &k;
    if (std::ranges::find(absent, key) != absent.end()) return nullptr;
    onednn_alone const here;
    try {
      return &known.emplace_back(key, engine, threads);
    } catch (dnnl::error const&) {
      absent.push_back(key);
      return nullptr;
    }
  }
};

inline onednn_store& store_of(basic_cpu<float>& cpu) {
  if (!cpu.store()) cpu.store() = std::make_unique<onednn_store>();
  return static_cast<onednn_store&>(*cpu.store());
}

}  // namespace edl::detail

#endif
