// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

namespace edl::cuda_kernels {
namespace {

/// One step of a rule over an arena: rule(w, g, slots) changes the numbers of one weight.
template <class Rule, int Slots>
struct update {
  template <int N>
  struct inputs {
    pack<N> w, g, slots[Slots > 0 ? Slots : 1];
  };

  float* weights;
  float const* gradients;
  float* slots[Slots > 0 ? Slots : 1];
  bfloat* rounded;
  Rule rule;

  template <int N>
  __device__ __forceinline__ inputs<N> load(std::size_t i) const {
    inputs<N> in;
    in.w = cuda_kernels::load<N>(weights + i);
    in.g = cuda_kernels::load<N>(gradients + i);
#pragma unroll
    for (int s = 0; s < Slots; ++s) in.slots[s] = cuda_kernels::load<N>(slots[s] + i);
    return in;
  }

  template <int N>
  __device__ __forceinline__ void finish(std::size_t i, inputs<N> in) const {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float of[Slots > 0 ? Slots : 1] = {};
#pragma unroll
      for (int s = 0; s < Slots; ++s) of[s] = in.slots[s].lane[k];
      in.w.lane[k] = rule(in.w.lane[k], in.g.lane[k], of);
#pragma unroll
      for (int s = 0; s < Slots; ++s) in.slots[s].lane[k] = of[s];
    }
    store<N>(weights + i, in.w);
#pragma unroll
    for (int s = 0; s < Slots; ++s) store<N>(slots[s] + i, in.slots[s]);
    if (rounded) store<N>(rounded + i, in.w);
  }
};

// Every operation is rounded, as on the processor (edl/optim), so that both give the same bits.

/// a · b + c · d, and a · b − x.
__device__ __forceinline__ float sum_of_products(float a, float b, float c, float d) {
  return __fadd_rn(__fmul_rn(a, b), __fmul_rn(c, d));
}
__device__ __forceinline__ float product_less(float a, float b, float x) {
  return __fsub_rn(__fmul_rn(a, b), x);
}

struct plain_sgd {
  float keep, rate;
  __device__ float operator()(float w, float g, float (&)[1]) const {
    return product_less(keep, w, __fmul_rn(rate, g));
  }
};

struct momentum_sgd {
  float keep, rate, mu;
  bool nesterov;
  __device__ float operator()(float w, float g, float (&v)[1]) const {
    v[0] = __fadd_rn(__fmul_rn(mu, v[0]), g);
    float const step = nesterov ? __fadd_rn(g, __fmul_rn(mu, v[0])) : v[0];
    return product_less(keep, w, __fmul_rn(rate, step));
  }
};

/// Of all v where there are two slots, of the largest where there are three.
template <int Slots>
struct adam_rule {
  float alpha, keep, b1, b2, c1, c2, epsilon;
  __device__ float operator()(float w, float g, float (&of)[Slots]) const {
    of[0] = sum_of_products(b1, of[0], c1, g);
    of[1] = sum_of_products(b2, of[1], c2, __fmul_rn(g, g));
    if constexpr (Slots == 3) of[2] = of[1] > of[2] ? of[1] : of[2];
    float const root = __fadd_rn(__fsqrt_rn(of[Slots - 1]), epsilon);
    return product_less(keep, w, __fdiv_rn(__fmul_rn(alpha, of[0]), root));
  }
};

struct adagrad_rule {
  float rate, keep, epsilon;
  __device__ float operator()(float w, float g, float (&of)[1]) const {
    of[0] = __fadd_rn(of[0], __fmul_rn(g, g));
    float const root = __fadd_rn(__fsqrt_rn(of[0]), epsilon);
    return product_less(keep, w, __fdiv_rn(__fmul_rn(rate, g), root));
  }
};

struct interpolation {
  float keep, rest;
  __device__ float operator()(float w, float, float (&slow)[1]) const {
    slow[0] = sum_of_products(keep, slow[0], rest, w);
    return slow[0];
  }
};

template <int Slots, class Rule>
void apply(queue const& q, char const* what, std::size_t n, float* weights, float const* gradients,
           float* const (&slots)[Slots > 0 ? Slots : 1], std::uint16_t* rounded, Rule const& rule) {
  update<Rule, Slots> work{weights, gradients, {}, rounded, rule};
  bool together = aligned(16, weights, gradients) && aligned(8, rounded);
  for (int s = 0; s < Slots; ++s) {
    work.slots[s] = slots[s];
    together = together && aligned(16, slots[s]);
  }
  for_each_element<4>(q, what, n, together, work);
}

struct rounding {
  __device__ float operator()(float const (&v)[1]) const { return v[0]; }
};

}  // namespace

void sgd(queue const& q, std::size_t n, float* weights, float const* gradients, float* velocity,
         std::uint16_t* rounded, float rate, float momentum, float weight_decay, bool nesterov) {
  float const keep = 1 - rate * weight_decay;
  if (momentum == 0)
    apply<0>(q, "sgd", n, weights, gradients, {nullptr}, rounded, plain_sgd{keep, rate});
  else
    apply<1>(q, "sgd", n, weights, gradients, {velocity}, rounded,
             momentum_sgd{keep, rate, momentum, nesterov});
}

void adam(queue const& q, std::size_t n, float* weights, float const* gradients, float* m, float* v,
          float* largest, std::uint16_t* rounded, float alpha, float keep, float beta_1, float beta_2,
          float epsilon) {
  float const c1 = 1 - beta_1, c2 = 1 - beta_2;
  if (largest)
    apply<3>(q, "adam", n, weights, gradients, {m, v, largest}, rounded,
             adam_rule<3>{alpha, keep, beta_1, beta_2, c1, c2, epsilon});
  else
    apply<2>(q, "adam", n, weights, gradients, {m, v}, rounded,
             adam_rule<2>{alpha, keep, beta_1, beta_2, c1, c2, epsilon});
}

void adagrad(queue const& q, std::size_t n, float* weights, float const* gradients, float* accumulator,
             std::uint16_t* rounded, float rate, float keep, float epsilon) {
  apply<1>(q, "adagrad", n, weights, gradients, {accumulator}, rounded, adagrad_rule{rate, keep, epsilon});
}

void look_back(queue const& q, std::size_t n, float* weights, float* slow, std::uint16_t* rounded,
               float keep) {
  apply<1>(q, "look_back", n, weights, weights, {slow}, rounded, interpolation{keep, 1 - keep});
}

void round(queue const& q, float const* from, std::uint16_t* to, std::size_t n) {
  map(q, "round", n, {from}, to, rounding{});
}

}  // namespace edl::cuda_kernels
