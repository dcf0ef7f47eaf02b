// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/columns.cuh"
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"
#include "edl/compute/device/cuda/library/kernels/row_groups.cuh"

namespace edl::cuda_kernels {
namespace {

constexpr unsigned row_threads = 256;

template <class T>
__global__ void __launch_bounds__(row_threads)
    softmax_kernel(std::size_t rows, std::size_t classes, unsigned width, T const* __restrict__ x,
                   T* __restrict__ y) {
  row_group const g(width);
  for (std::size_t base = g.first_row(); base < rows; base += g.stride()) {  // all threads of a warp
    std::size_t const row = base + g.index;
    bool const real = row < rows;
    T const* const in = x + row * classes;
    T* const out = y + row * classes;
    float most = -INFINITY;
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width) most = greater_or_nan(load_one(in + k), most);
    most = g.join(most, [](float a, float b) { return greater_or_nan(a, b); });
    float sum = 0;
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width) sum += expf(load_one(in + k) - most);
    sum = g.join(sum, [](float a, float b) { return a + b; });
    float const scale = 1 / sum;
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width)
        store_one(out + k, expf(load_one(in + k) - most) * scale);
  }
}

template <class T>
__global__ void __launch_bounds__(row_threads)
    softmax_gradient_kernel(std::size_t rows, std::size_t classes, unsigned width, T const* __restrict__ y,
                            T const* dy, T* dx) {
  row_group const g(width);
  for (std::size_t base = g.first_row(); base < rows; base += g.stride()) {
    std::size_t const row = base + g.index, at = row * classes;
    bool const real = row < rows;
    float along = 0;
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width)
        along += load_one(y + at + k) * load_one(dy + at + k);
    along = g.join(along, [](float a, float b) { return a + b; });
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width)
        store_one(dx + at + k, load_one(y + at + k) * (load_one(dy + at + k) - along));
  }
}

template <class T>
__global__ void __launch_bounds__(row_threads)
    log_softmax_kernel(std::size_t rows, std::size_t classes, unsigned width, T const* __restrict__ x,
                       T* __restrict__ y) {
  row_group const g(width);
  for (std::size_t base = g.first_row(); base < rows; base += g.stride()) {
    std::size_t const row = base + g.index;
    bool const real = row < rows;
    T const* const in = x + row * classes;
    T* const out = y + row * classes;
    float most = -INFINITY;
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width) most = greater_or_nan(load_one(in + k), most);
    most = g.join(most, [](float a, float b) { return greater_or_nan(a, b); });
    float sum = 0;
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width) sum += expf(load_one(in + k) - most);
    sum = g.join(sum, [](float a, float b) { return a + b; });
    float const all = logf(sum);
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width) store_one(out + k, load_one(in + k) - most - all);
  }
}

template <class T>
__global__ void __launch_bounds__(row_threads)
    log_softmax_gradient_kernel(std::size_t rows, std::size_t classes, unsigned width,
                                T const* __restrict__ y, T const* dy, T* dx) {
  row_group const g(width);
  for (std::size_t base = g.first_row(); base < rows; base += g.stride()) {
    std::size_t const row = base + g.index, at = row * classes;
    bool const real = row < rows;
    float all = 0;
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width) all += load_one(dy + at + k);
    all = g.join(all, [](float a, float b) { return a + b; });
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width)
        store_one(dx + at + k, load_one(dy + at + k) - expf(load_one(y + at + k)) * all);
  }
}

/// A group of threads has a sample, `of_sample` rows of n numbers, and a thread some of their columns.
template <class T>
__global__ void __launch_bounds__(row_threads)
    factorization_kernel(std::size_t samples, std::size_t of_sample, std::size_t n, unsigned width,
                         T const* __restrict__ x, T* __restrict__ y) {
  row_group const g(width);
  for (std::size_t base = g.first_row(); base < samples; base += g.stride()) {  // all threads of a warp
    std::size_t const sample = base + g.index;
    T const* const in = x + sample * of_sample * n;
    float all = 0;
    if (sample < samples)
      for (std::size_t k = g.lane; k < n; k += width) {
        float sum = 0, squares = 0;
#pragma unroll 4
        for (std::size_t i = 0; i < of_sample; ++i) {
          float const v = load_one(in + i * n + k);
          sum += v;
          squares = fmaf(v, v, squares);
        }
        all += fmaf(sum, sum, -squares);
      }
    all = g.join(all, [](float a, float b) { return a + b; });
    if (sample < samples && g.lane == 0) store_one(y + sample, all / 2);
  }
}

template <class T>
__global__ void __launch_bounds__(row_threads)
    factorization_gradient_kernel(std::size_t samples, std::size_t of_sample, std::size_t n, unsigned width,
                                  T const* __restrict__ x, T const* __restrict__ dy, T* __restrict__ dx) {
  row_group const g(width);
  for (std::size_t sample = g.first_row() + g.index; sample < samples; sample += g.stride()) {
    float const slope = load_one(dy + sample);
    for (std::size_t k = g.lane; k < n; k += width) {
      std::size_t const first = sample * of_sample * n + k;
      float sum = 0;
#pragma unroll 4
      for (std::size_t i = 0; i < of_sample; ++i) sum += load_one(x + first + i * n);
#pragma unroll 4
      for (std::size_t i = 0; i < of_sample; ++i)
        store_one(dx + first + i * n, slope * (sum - load_one(x + first + i * n)));
    }
  }
}

template <class T, int N>
__global__ void __launch_bounds__(column_threads, 2)
    sum_rows_kernel(column_tiling const t, T const* __restrict__ x, float* __restrict__ to) {
  __shared__ float shared[N * column_threads];
  column_place const at(t, N);
  float sum[N] = {};
  if (at.active) {
    unsigned const end = t.begin(blockIdx.x + 1);
#pragma unroll 4
    for (unsigned r = t.begin(blockIdx.x) + at.row; r < end; r += t.down) {
      pack<N> const v = load<N>(x + t.element(r, at.column));
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += v.lane[k];
    }
  }
  sum_down<N>(t.lanes, t.down, sum, shared);
  if (at.active && at.row == 0)
#pragma unroll
    for (int k = 0; k < N; ++k) to[std::size_t(blockIdx.x) * t.columns + at.column + unsigned(k)] = sum[k];
}

template <int N>
__global__ void __launch_bounds__(column_threads, 2)
    add_parts_kernel(column_tiling const t, float const* __restrict__ partial, float* __restrict__ sums) {
  __shared__ float shared[column_threads];
  float sum[1];
  add_parts<N, 1>(t, partial, sum, shared);
  if (threadIdx.x < t.count(N)) sums[t.first(N) + threadIdx.x] = sum[0];
}

template <class T, int N>
void sum_rows_by(queue const& q, std::size_t rows, std::size_t columns, T const* x, float* sums,
                 float* scratch) {
  column_tiling const t = tile_of_columns(q, rows, columns, N, 32);
  launch(q, "sum_rows", sum_rows_kernel<T, N>, dim3(t.parts, t.tiles), column_threads, t, x,
         t.parts == 1 ? sums : scratch);
  if (t.parts > 1)
    launch(q, "sum_rows", add_parts_kernel<N>, dim3(1, t.tiles), column_threads, t, scratch, sums);
}

unsigned blocks_of_rows(queue const& q, std::size_t rows, unsigned width) {
  return unsigned(std::min(ceil_of(rows, row_threads / width), std::size_t(q.processors) * 8));
}

}  // namespace

void softmax_forward(queue const& q, std::size_t rows, std::size_t classes, void const* x, void* y) {
  if (rows * classes == 0) return;
  unsigned const width = row_width(classes);
  by_type(q.half, [&]<class T>(T) {
    launch(q, "softmax", softmax_kernel<T>, dim3(blocks_of_rows(q, rows, width)), row_threads, rows, classes,
           width, static_cast<T const*>(x), static_cast<T*>(y));
  });
}

void softmax_backward(queue const& q, std::size_t rows, std::size_t classes, void const* y, void const* dy,
                      void* dx) {
  if (rows * classes == 0) return;
  unsigned const width = row_width(classes);
  by_type(q.half, [&]<class T>(T) {
    launch(q, "softmax", softmax_gradient_kernel<T>, dim3(blocks_of_rows(q, rows, width)), row_threads, rows,
           classes, width, static_cast<T const*>(y), static_cast<T const*>(dy), static_cast<T*>(dx));
  });
}

void log_softmax_forward(queue const& q, std::size_t rows, std::size_t classes, void const* x, void* y) {
  if (rows * classes == 0) return;
  unsigned const width = row_width(classes);
  by_type(q.half, [&]<class T>(T) {
    launch(q, "log_softmax", log_softmax_kernel<T>, dim3(blocks_of_rows(q, rows, width)), row_threads, rows,
           classes, width, static_cast<T const*>(x), static_cast<T*>(y));
  });
}

void log_softmax_backward(queue const& q, std::size_t rows, std::size_t classes, void const* y,
                          void const* dy, void* dx) {
  if (rows * classes == 0) return;
  unsigned const width = row_width(classes);
  by_type(q.half, [&]<class T>(T) {
    launch(q, "log_softmax", log_softmax_gradient_kernel<T>, dim3(blocks_of_rows(q, rows, width)),
           row_threads, rows, classes, width, static_cast<T const*>(y), static_cast<T const*>(dy),
           static_cast<T*>(dx));
  });
}

void factorization_forward(queue const& q, std::size_t samples, std::size_t rows, std::size_t columns,
                           void const* x, void* y) {
  if (samples == 0) return;
  unsigned const width = row_width(columns);
  by_type(q.half, [&]<class T>(T) {
    launch(q, "factorization", factorization_kernel<T>, dim3(blocks_of_rows(q, samples, width)), row_threads,
           samples, rows, columns, width, static_cast<T const*>(x), static_cast<T*>(y));
  });
}

void factorization_backward(queue const& q, std::size_t samples, std::size_t rows, std::size_t columns,
                            void const* x, void const* dy, void* dx) {
  if (samples == 0) return;
  unsigned const width = row_width(columns);
  by_type(q.half, [&]<class T>(T) {
    launch(q, "factorization", factorization_gradient_kernel<T>, dim3(blocks_of_rows(q, samples, width)),
           row_threads, samples, rows, columns, width, static_cast<T const*>(x), static_cast<T const*>(dy),
           static_cast<T*>(dx));
  });
}

std::size_t sum_rows_scratch(queue const& q, std::size_t, std::size_t columns) {
  return most_parts(q) * columns;
}

void sum_rows(queue const& q, std::size_t rows, std::size_t columns, void const* x, float* sums,
              float* scratch) {
  if (columns == 0) return;
  auto const work = [&]<class T, int N>() {
    sum_rows_by<T, N>(q, rows, columns, static_cast<T const*>(x), sums, scratch);
  };
  by_channels(q, columns, work, x);
}

}  // namespace edl::cuda_kernels
