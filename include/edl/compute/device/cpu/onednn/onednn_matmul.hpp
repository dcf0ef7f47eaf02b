// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef EDL_ONEDNN

#include <array>
#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/device/cpu/onednn/onednn.hpp"
#include "edl/compute/device/cpu/onednn/onednn_packing.hpp"
#include "edl/compute/device/cpu/onednn/onednn_types.hpp"

namespace edl::detail {

struct matmul_key {
  std::size_t m, n, k, a_stride, b_stride, c_stride;
  bool a_transposed, b_transposed;
  factors type;
  bool packed;          ///< b, of float32, is laid out before the product
  bool narrow = false;  ///< c is of bfloat16

  friend bool operator==(matmul_key const&, matmul_key const&) = default;
};

/// c (m × n) = a · b, with sums in float32.
class matmul_kernel {
 public:
  matmul_kernel(matmul_key const& of, dnnl::engine const& on, int threads) : key(of) {
    using dnnl::memory;
    auto const dim = [](std::size_t n) { return memory::dim(n); };
    auto const matrix = [&](std::size_t rows, std::size_t columns, std::size_t stride, bool transposed,
                            memory::data_type type) {
      return memory::desc({dim(rows), dim(columns)}, type,
                          transposed ? memory::dims{1, dim(stride)} : memory::dims{dim(stride), 1});
    };
    auto const factor = data_type_of(of.type);
    auto const b =
        matrix(of.k, of.n, of.b_stride, of.b_transposed, of.packed ? memory::data_type::f32 : factor);
    std::array<memory::desc, 3> of_ours{
        matrix(of.m, of.k, of.a_stride, of.a_transposed, factor), b,
        memory::desc({dim(of.m), dim(of.n)}, of.narrow ? factor : memory::data_type::f32,
                     memory::dims{dim(of.c_stride), 1})};
    if (of.packed) of_ours[1] = memory::desc({dim(of.k), dim(of.n)}, factor, memory::format_tag::any);
    auto const d = described<dnnl::matmul>(on, attributes_of(false), of_ours[0], of_ours[1], of_ours[2]);
    primitive_ = dnnl::primitive(d);
    packed = of_ours[1] = d.weights_desc();
    packed_size = (packed.get_size() + sizeof(float) - 1) / sizeof(float);
    if (of.packed) order_ = reorder_of(on, b, packed), packing_ = weight_packing(on, b, packed);
    scratch_size = (d.scratchpad_desc().get_size() + sizeof(float) - 1) / sizeof(float);
    threads_.resize(std::size_t(threads));
    for (own& o : threads_) {
      o.stream = dnnl::stream(on);
      for (std::size_t i = 0; i < 4; ++i) {
        o.memories[i] = memory(i < 3 ? of_ours[i] : d.scratchpad_desc(), on, nullptr);
        constexpr int names[4] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
        o.arguments.emplace(names[i], o.memories[i]);
      }
      if (of.packed) o.plain = memory(b, on, nullptr), o.packed = memory(packed, on, nullptr);
    }
  }

  void run(int thread, void const* a, void const* b, void* c, float* scratch) {
    own& o = threads_[std::size_t(thread)];
    o.memories[0].set_data_handle(const_cast<void*>(a));
    o.memories[1].set_data_handle(const_cast<void*>(b));
    o.memories[2].set_data_handle(c);
    o.memories[3].set_data_handle(scratch);
    onednn_alone const here;
    primitive_.execute(o.stream, o.arguments);
  }

  /// b as the kernel likes it, in `to`, of packed_size floats.
  void lay_out(int thread, float const* b, float* to) {
    if (!packing_.by_library()) return packing_.pack(b, to);
    own& o = threads_[std::size_t(thread)];
    o.plain.set_data_handle(const_cast<float*>(b));
    o.packed.set_data_handle(to);
    onednn_alone const here;
    order_.execute(o.stream, o.plain, o.packed);
  }

  matmul_key const key;
  dnnl::memory::desc packed;
  std::size_t packed_size = 0, scratch_size = 0;  // floats

 private:
  struct own {
    dnnl::stream stream;
    std::array<dnnl::memory, 4> memories;
    dnnl::memory plain, packed;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  dnnl::primitive primitive_;
  dnnl::reorder order_;
  weight_packing packing_;
  std::vector<own> threads_;
};

}  // namespace edl::detail

#endif
