// SPDX-License-Identifier: Apache-2.0
// What lies before and behind a sum between GPUs.
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

namespace edl::cuda_kernels {
namespace {

struct times {
  float weight;
  __device__ float operator()(float const (&v)[1]) const { return __fmul_rn(v[0], weight); }
};

struct over {
  float divisor;
  __device__ float operator()(float const (&v)[1]) const { return __fdiv_rn(v[0], divisor); }
};

struct less {
  __device__ float operator()(float const (&v)[2]) const { return __fsub_rn(v[0], v[1]); }
};

struct and_over {
  float divisor;
  __device__ float operator()(float const (&v)[2]) const { return __fadd_rn(v[0], __fdiv_rn(v[1], divisor)); }
};

}  // namespace

void weigh(queue const& q, std::size_t n, float* values, float weight) {
  map<float, float>(q, "weighing gradients", n, {values}, values, times{weight});
}

void divide(queue const& q, std::size_t n, float* values, float divisor) {
  map<float, float>(q, "averaging gradients", n, {values}, values, over{divisor});
}

void subtract(queue const& q, std::size_t n, float const* a, float const* b, float* to) {
  map(q, "taking a change", n, {a, b}, to, less{});
}

void add_divided(queue const& q, std::size_t n, float const* x, float divisor, float* to) {
  float const* const both[]{to, x};
  map(q, "adding a change", n, both, to, and_over{divisor});
}

}  // namespace edl::cuda_kernels
