// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "edl/compute/device/cuda/library/kernels/curves.cuh"
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"

namespace edl::cuda_kernels {
namespace {

struct same {
  __device__ float operator()(float const (&v)[1]) const { return v[0]; }
};

struct sum {
  __device__ float operator()(float const (&v)[2]) const { return v[0] + v[1]; }
};

struct sum_relu {
  __device__ float operator()(float const (&v)[2]) const {
    float const z = v[0] + v[1];
    return z < 0 ? 0 : z;
  }
};

struct sum_masked {
  __device__ float operator()(float const (&v)[3]) const { return v[2] > 0 ? v[0] + v[1] : 0; }
};

struct relu {
  __device__ float operator()(float const (&v)[1]) const { return v[0] < 0 ? 0 : v[0]; }
};
struct relu_gradient {
  __device__ float operator()(float const (&v)[2]) const { return v[0] > 0 ? v[1] : 0; }
};

struct leaky_relu {
  float slope;
  __device__ float operator()(float const (&v)[1]) const { return v[0] * (v[0] > 0 ? 1 : slope); }
};
struct leaky_relu_gradient {
  float slope;
  __device__ float operator()(float const (&v)[2]) const { return v[1] * (v[0] > 0 ? 1 : slope); }
};

struct sigmoid {
  __device__ float operator()(float const (&v)[1]) const { return 0.5f * tanhf(v[0] * 0.5f) + 0.5f; }
};
struct sigmoid_gradient {
  __device__ float operator()(float const (&v)[2]) const { return v[1] * v[0] * (1 - v[0]); }
};

struct hyperbolic_tangent {
  __device__ float operator()(float const (&v)[1]) const { return tanhf(v[0]); }
};
struct hyperbolic_tangent_gradient {
  __device__ float operator()(float const (&v)[2]) const { return v[1] * (1 - v[0] * v[0]); }
};

struct gaussian {
  __device__ float operator()(float const (&v)[1]) const { return gelu_of(v[0]); }
};
struct gaussian_gradient {
  __device__ float operator()(float const (&v)[2]) const { return v[1] * gelu_slope(v[0]); }
};

struct sigmoid_linear {
  __device__ float operator()(float const (&v)[1]) const { return silu_of(v[0]); }
};
struct sigmoid_linear_gradient {
  __device__ float operator()(float const (&v)[2]) const { return v[1] * silu_slope(v[0]); }
};

struct exponential_linear {
  float alpha;
  __device__ float operator()(float const (&v)[1]) const { return v[0] > 0 ? v[0] : alpha * expm1f(v[0]); }
};
struct exponential_linear_gradient {
  float alpha;
  __device__ float operator()(float const (&v)[2]) const { return v[1] * (v[0] > 0 ? 1 : v[0] + alpha); }
};

struct smooth_relu {
  __device__ float operator()(float const (&v)[1]) const {
    return (v[0] > 0 ? v[0] : 0) + log1pf(expf(-fabsf(v[0])));
  }
};
struct smooth_relu_gradient {
  __device__ float operator()(float const (&v)[2]) const { return v[1] / (1 + expf(-v[0])); }
};

struct scaled {
  float factor;
  __device__ float operator()(float const (&v)[1]) const { return factor * v[0]; }
};

/// Activations to activations.
template <int K, class F>
void map_activations(queue const& q, char const* what, std::size_t n, void const* const (&from)[K], void* to,
                     F const& f) {
  by_type(q.half, [&]<class T>(T) {
    T const* typed[K];
    for (int k = 0; k < K; ++k) typed[k] = static_cast<T const*>(from[k]);
    map(q, what, n, typed, static_cast<T*>(to), f);
  });
}

template <class In, class Out>
void convert(queue const& q, char const* what, void const* from, void* to, std::size_t n) {
  In const* const typed[] = {static_cast<In const*>(from)};
  map(q, what, n, typed, static_cast<Out*>(to), same{});
}

struct draws {
  random_stream random;
  std::uint64_t const* step;  // null: as `random` says
  std::uint32_t least;        // that is kept, in units of 2^-24
  float scale;
};

template <class T>
struct drop {
  template <int N>
  using inputs = pack<N>;

  T const* x;
  T* y;
  std::uint8_t* mask;
  draws d;

  template <int N>
  __device__ __forceinline__ pack<N> load(std::size_t i) const {
    return cuda_kernels::load<N>(x + i);
  }

  template <int N>
  __device__ __forceinline__ void finish(std::size_t i, pack<N> const& in) const {
    random_stream const stream{d.random.key, d.step ? *d.step : d.random.step};
    pack<N> out;
    array<std::uint8_t, N> kept;
    if constexpr (N == 1) {
      bool const keep = (stream.bits(i) >> 8) >= d.least;
      kept.lane[0] = keep;
      out.lane[0] = in.lane[0] * (keep ? d.scale : 0);
    } else {
#pragma unroll
      for (int b = 0; b < N / 4; ++b) {
        auto const drawn = stream.block(i / 4 + b);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          bool const keep = (drawn[k] >> 8) >= d.least;
          kept.lane[4 * b + k] = keep;
          out.lane[4 * b + k] = in.lane[4 * b + k] * (keep ? d.scale : 0);
        }
      }
    }
    store<N>(y + i, out);
    put<N>(mask + i, kept);
  }
};

template <class T>
struct undrop {
  template <int N>
  struct inputs {
    pack<N> dy;
    array<std::uint8_t, N> kept;
  };

  T const* dy;
  T* dx;
  std::uint8_t const* mask;
  float scale;

  template <int N>
  __device__ __forceinline__ inputs<N> load(std::size_t i) const {
    return {cuda_kernels::load<N>(dy + i), fetch<N>(mask + i)};
  }

  template <int N>
  __device__ __forceinline__ void finish(std::size_t i, inputs<N> const& in) const {
    pack<N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) out.lane[k] = in.dy.lane[k] * (scale * float(in.kept.lane[k]));
    store<N>(dx + i, out);
  }
};

/// `Index` holds every i; divisions of 32 bits take half the time of those of 64.
template <class T, class Index>
struct copy_column {
  template <int N>
  using inputs = array<T, N>;

  T const* x;
  T* y;
  Index columns;
  std::size_t x_stride, y_stride;

  template <int N>
  __device__ __forceinline__ array<T, N> load(std::size_t i) const {
    return fetch<N>(x + Index(i) / columns * x_stride + Index(i) % columns);
  }

  template <int N>
  __device__ __forceinline__ void finish(std::size_t i, array<T, N> const& in) const {
    put<N>(y + Index(i) / columns * y_stride + Index(i) % columns, in);
  }
};

}  // namespace

void store(queue const& q, float const* from, void* to, std::size_t n) {
  by_type(q.half, [&]<class T>(T) { convert<float, T>(q, "store", from, to, n); });
}

void load(queue const& q, void const* from, float* to, std::size_t n) {
  by_type(q.half, [&]<class T>(T) { convert<T, float>(q, "load", from, to, n); });
}

void copy(queue const& q, void const* x, void* y, std::size_t n) {
  by_type(q.half, [&]<class T>(T) { convert<T, T>(q, "copy", x, y, n); });
}

void store_bfloat16(queue const& q, void const* x, void* to, std::size_t n) {
  by_type(q.half, [&]<class T>(T) { convert<T, bfloat>(q, "store_bfloat16", x, to, n); });
}

void load_bfloat16(queue const& q, void const* from, void* y, std::size_t n) {
  by_type(q.half, [&]<class T>(T) { convert<bfloat, T>(q, "load_bfloat16", from, y, n); });
}

void add(queue const& q, activation f, void const* a, void const* b, void* y, std::size_t n) {
  if (f == activation::relu)
    map_activations(q, "add", n, {a, b}, y, sum_relu{});
  else
    map_activations(q, "add", n, {a, b}, y, sum{});
}

void add_masked(queue const& q, void const* a, void const* b, void const* x, void* y, std::size_t n) {
  map_activations(q, "add_masked", n, {a, b, x}, y, sum_masked{});
}

void copy_columns(queue const& q, std::size_t rows, std::size_t columns, void const* x, std::size_t x_first,
                  std::size_t x_stride, void* y, std::size_t y_first, std::size_t y_stride) {
  by_type(q.half, [&]<class T>(T) {
    auto const* const from = static_cast<T const*>(x) + x_first;
    auto* const to = static_cast<T*>(y) + y_first;
    bool const together =
        columns % wide<T> == 0 && x_stride % wide<T> == 0 && y_stride % wide<T> == 0 && aligned(16, from, to);
    auto const copy = [&]<class Index>(Index narrow) {
      for_each_element<wide<T>>(q, "copy_columns", rows * columns, together,
                                copy_column<T, Index>{from, to, narrow, x_stride, y_stride});
    };
    if (rows * columns <= 0xffff'ffff)
      copy(unsigned(columns));
    else
      copy(columns);
  });
}

void forward(queue const& q, elementwise f, float slope, void const* x, void* y, std::size_t n) {
  using enum elementwise;
  switch (f) {
    case relu:
      return map_activations(q, "relu", n, {x}, y, cuda_kernels::relu{});
    case leaky_relu:
      return map_activations(q, "leaky_relu", n, {x}, y, cuda_kernels::leaky_relu{slope});
    case sigmoid:
      return map_activations(q, "sigmoid", n, {x}, y, cuda_kernels::sigmoid{});
    case tanh:
      return map_activations(q, "tanh", n, {x}, y, hyperbolic_tangent{});
    case gelu:
      return map_activations(q, "gelu", n, {x}, y, gaussian{});
    case scale:
      return map_activations(q, "scale", n, {x}, y, scaled{slope});
    case silu:
      return map_activations(q, "silu", n, {x}, y, sigmoid_linear{});
    case elu:
      return map_activations(q, "elu", n, {x}, y, exponential_linear{slope});
    case softplus:
      return map_activations(q, "softplus", n, {x}, y, smooth_relu{});
  }
}

void backward(queue const& q, elementwise f, float slope, void const* y, void const* dy, void* dx,
              std::size_t n) {
  using enum elementwise;
  switch (f) {
    case relu:
      return map_activations(q, "relu", n, {y, dy}, dx, relu_gradient{});
    case leaky_relu:
      return map_activations(q, "leaky_relu", n, {y, dy}, dx, leaky_relu_gradient{slope});
    case sigmoid:
      return map_activations(q, "sigmoid", n, {y, dy}, dx, sigmoid_gradient{});
    case tanh:
      return map_activations(q, "tanh", n, {y, dy}, dx, hyperbolic_tangent_gradient{});
    case gelu:
      return map_activations(q, "gelu", n, {y, dy}, dx, gaussian_gradient{});
    case scale:
      return map_activations(q, "scale", n, {dy}, dx, scaled{slope});
    case silu:
      return map_activations(q, "silu", n, {y, dy}, dx, sigmoid_linear_gradient{});
    case elu:
      return map_activations(q, "elu", n, {y, dy}, dx, exponential_linear_gradient{slope});
    case softplus:
      return map_activations(q, "softplus", n, {y, dy}, dx, smooth_relu_gradient{});
  }
}

void dropout_forward(queue const& q, float rate, random_stream const& random, void const* x, void* y,
                     std::byte* mask, std::size_t n) {
  draws const d{random, q.step, std::uint32_t(std::ceil(double(rate) * 0x1p24)), 1 / (1 - rate)};
  by_type(q.half, [&]<class T>(T) {
    drop<T> const work{static_cast<T const*>(x), static_cast<T*>(y), reinterpret_cast<std::uint8_t*>(mask),
                       d};
    for_each_element<wide<T>>(q, "dropout", n, aligned(16, x, y) && aligned(wide<T>, mask), work);
  });
}

void dropout_backward(queue const& q, float rate, std::byte const* mask, void const* dy, void* dx,
                      std::size_t n) {
  by_type(q.half, [&]<class T>(T) {
    undrop<T> const work{static_cast<T const*>(dy), static_cast<T*>(dx),
                         reinterpret_cast<std::uint8_t const*>(mask), 1 / (1 - rate)};
    for_each_element<wide<T>>(q, "dropout", n, aligned(16, dy, dx) && aligned(wide<T>, mask), work);
  });
}

}  // namespace edl::cuda_kernels
