// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/kernels/kernel.cuh"
#include "edl/compute/device/cuda/library/kernels/row_groups.cuh"

namespace edl::cuda_kernels {
namespace {

constexpr unsigned loss_threads = 1024;

/// The sum over the block, in its first thread.
__device__ __forceinline__ double sum_of_block(double value) {
  __shared__ double shared[32];
  for (int by = 16; by > 0; by /= 2) value += __shfl_down_sync(0xffff'ffffu, value, unsigned(by));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = threadIdx.x < blockDim.x / 32 ? shared[threadIdx.x] : 0;
    for (int by = 16; by > 0; by /= 2) value += __shfl_down_sync(0xffff'ffffu, value, unsigned(by));
  }
  return value;
}

/// Of one block: the mean. Of many: their sums, for `mean_kernel`.
__device__ __forceinline__ void give(double total, double share, float* loss, float* partial) {
  total = sum_of_block(total);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    *loss = float(total * share);
  else
    partial[blockIdx.x] = float(total);
}

__global__ void __launch_bounds__(loss_threads, 1)
    mean_kernel(unsigned parts, double share, float const* __restrict__ partial, float* __restrict__ loss) {
  double total = 0;
  for (unsigned i = threadIdx.x; i < parts; i += blockDim.x) total += double(partial[i]);
  give(total, share, loss, nullptr);
}

struct smoothing {
  double own, spread;  // 1 − s, s / classes
  double share;        // 1 / rows
};

template <class T>
__global__ void __launch_bounds__(loss_threads, 1)
    softmax_cross_entropy_kernel(std::size_t rows, std::size_t classes, unsigned width, smoothing s,
                                 T const* __restrict__ outputs, std::int32_t const* __restrict__ labels,
                                 T* __restrict__ gradients, float* loss, float* partial) {
  row_group const g(width);
  double total = 0;
  for (std::size_t base = g.first_row(); base < rows; base += g.stride()) {
    std::size_t const row = base + g.index;
    bool const real = row < rows;
    T const* const x = outputs + row * classes;
    float largest = -INFINITY;
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width)
        largest = greater_or_nan(load_one(x + k), largest);
    largest = g.join(largest, [](float a, float b) { return greater_or_nan(a, b); });
    std::size_t const label = real ? std::size_t(labels[row]) : 0;
    double sum = 0, below = 0, own = 0;  // of exp(x − largest), of x − largest, of the label's
    if (real)
      for (std::size_t k = g.lane; k < classes; k += width) {
        float const z = load_one(x + k) - largest;
        sum += double(expf(z));
        below += double(z);
        if (k == label) own = double(z);
      }
    auto const add = [](double a, double b) { return a + b; };
    sum = g.join(sum, add);
    below = g.join(below, add);
    own = g.join(own, add);
    if (!real) continue;  // and so do all that come after in the warp
    if (g.lane == 0) {
      double of_row = log(sum) - s.own * own;
      if (s.spread != 0) of_row -= s.spread * below;  // 0 · −∞ must not make a loss of an unlikely class NaN
      total += of_row;
    }
    if (!gradients) continue;
    float const scale = float(s.share / sum), uniform = float(s.spread * s.share),
                hit = float(s.own * s.share);
    for (std::size_t k = g.lane; k < classes; k += width) {
      float const d = expf(load_one(x + k) - largest) * scale - uniform;
      store_one(gradients + row * classes + k, k == label ? d - hit : d);
    }
  }
  give(total, s.share, loss, partial);
}

struct sigmoid_term {
  __device__ static float value(float x, float z) {
    return (x > 0 ? x : 0) - x * z + log1pf(expf(-fabsf(x)));
  }
  __device__ static float derivative(float x, float z) {
    float const small = expf(-fabsf(x));
    return (x > 0 ? 1 : small) / (1 + small) - z;
  }
  static constexpr double scale = 1;
};

struct square_term {
  __device__ static double value(float x, float z) { return double(x - z) * double(x - z); }
  __device__ static float derivative(float x, float z) { return x - z; }
  static constexpr double scale = 2;
};

template <class Term, class T>
__global__ void __launch_bounds__(loss_threads, 1)
    element_loss_kernel(std::size_t n, double share, float keep, float shift, T const* __restrict__ outputs,
                        float const* __restrict__ labels, T* __restrict__ gradients, float* loss,
                        float* partial) {
  float const scale = float(Term::scale * share);
  double total = 0;
  std::size_t const stride = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    float const x = load_one(outputs + i), z = labels[i] * keep + shift;
    total += double(Term::value(x, z));
    if (gradients) store_one(gradients + i, Term::derivative(x, z) * scale);
  }
  give(total, share, loss, partial);
}

/// Blocks that add up a loss: one, as long as its threads have little to do.
unsigned blocks_of_loss(queue const& q, std::size_t elements) {
  constexpr std::size_t each = 16 * loss_threads;
  return unsigned(
      std::clamp<std::size_t>(ceil_of(elements, each), 1, std::size_t(std::max(q.processors, 1)) * 2));
}

void finish_loss(queue const& q, char const* what, unsigned parts, double share, float const* scratch,
                 float* loss) {
  if (parts > 1) launch(q, what, mean_kernel, dim3(1), loss_threads, parts, share, scratch, loss);
}

/// A label counts as (1 − smoothing) · label + smoothing / 2.
template <class Term>
void element_loss(queue const& q, char const* what, std::size_t n, float smoothing, void const* outputs,
                  float const* labels, void* gradients, float* loss, float* scratch) {
  unsigned const blocks = blocks_of_loss(q, n);
  double const share = n > 0 ? 1 / double(n) : 0;
  by_type(q.half, [&]<class T>(T) {
    launch(q, what, element_loss_kernel<Term, T>, dim3(blocks), loss_threads, n, share, 1 - smoothing,
           smoothing / 2, static_cast<T const*>(outputs), labels, static_cast<T*>(gradients), loss, scratch);
  });
  finish_loss(q, what, blocks, share, scratch, loss);
}

}  // namespace

std::size_t loss_scratch(queue const& q, std::size_t rows, std::size_t columns) {
  return blocks_of_loss(q, rows * columns);
}

void softmax_cross_entropy(queue const& q, std::size_t rows, std::size_t classes, float label_smoothing,
                           void const* outputs, std::int32_t const* labels, void* gradients, float* loss,
                           float* scratch) {
  unsigned const blocks = blocks_of_loss(q, rows * classes);
  // As few threads for a row as occupy the blocks: more have more to tell each other.
  unsigned width = row_width(classes);
  while (width > 1 && rows * (width / 2) >= std::size_t(blocks) * loss_threads) width /= 2;
  double const smooth = double(label_smoothing);
  smoothing const s{1 - smooth, smooth / double(classes), rows > 0 ? 1 / double(rows) : 0};
  by_type(q.half, [&]<class T>(T) {
    launch(q, "softmax_cross_entropy", softmax_cross_entropy_kernel<T>, dim3(blocks), loss_threads, rows,
           classes, width, s, static_cast<T const*>(outputs), labels, static_cast<T*>(gradients), loss,
           scratch);
  });
  finish_loss(q, "softmax_cross_entropy", blocks, s.share, scratch, loss);
}

void sigmoid_cross_entropy(queue const& q, std::size_t rows, std::size_t columns, float label_smoothing,
                           void const* outputs, float const* labels, void* gradients, float* loss,
                           float* scratch) {
  element_loss<sigmoid_term>(q, "sigmoid_cross_entropy", rows * columns, label_smoothing, outputs, labels,
                             gradients, loss, scratch);
}

void mean_squared_error(queue const& q, std::size_t rows, std::size_t columns, void const* outputs,
                        float const* labels, void* gradients, float* loss, float* scratch) {
  element_loss<square_term>(q, "mean_squared_error", rows * columns, 0, outputs, labels, gradients, loss,
                            scratch);
}

}  // namespace edl::cuda_kernels
