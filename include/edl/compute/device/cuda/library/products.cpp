// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/products.hpp"

#include <fmt/format.h>

#include "edl/compute/device/cuda/library/conv2d.hpp"
#include "edl/compute/device/cuda/library/dense.hpp"

namespace edl::cuda_library {

struct products::state {
  state(cuda_kernels::queue const& q, shared_state a)
      : queue(q), shared(std::move(a)), dense(q, shared), convolution(q, shared) {}

  cuda_kernels::queue const& queue;
  shared_state shared;
  dense_layers dense;
  convolutions convolution;
};

products::products(cuda_kernels::queue const& q, shared_state shared)
    : s_(std::make_unique<state>(q, std::move(shared))) {}

products::~products() = default;

std::string products::libraries() {
  std::size_t const cudnn = cudnnGetVersion(), cublas = cublasLtGetVersion();
  return fmt::format("cuDNN {}.{}.{}, cuBLASLt {}.{}.{}", cudnn / 10000, cudnn / 100 % 100, cudnn % 100,
                     cublas / 10000, cublas / 100 % 100, cublas % 100);
}

void products::conv2d_forward(conv_geometry const& g, int batch, activation f, void const* x,
                              float const* kernel, float const* bias, void* y) {
  if (g.pointwise())
    dense_forward(std::size_t(batch) * g.positions(), std::size_t(g.in.channels), std::size_t(g.out.channels),
                  f, x, kernel, bias, y);
  else
    s_->convolution.forward(g, batch, f, x, kernel, bias, y);
}

cuda_kernels::moments_in_parts products::conv2d_moments(conv_geometry const& g, int batch, void const* x,
                                                        float const* kernel, float const* bias, void* y) {
  cuda_kernels::moments_in_parts found;
  if (g.pointwise())
    conv2d_forward(g, batch, activation::none, x, kernel, bias, y);
  else
    s_->convolution.forward(g, batch, activation::none, x, kernel, bias, y, &found);
  return found;
}

void products::add(cuda_kernels::queue const& q, addition const& what, void* to, std::size_t n) {
  if (what.above)
    cuda_kernels::add_masked(q, to, what.more, what.above, to, n);
  else
    cuda_kernels::add(q, activation::none, to, what.more, to, n);
}

bool products::conv2d_backward(conv_geometry const& g, int batch, void const* x, float const* kernel,
                               void const* dy, void* dx, float* dkernel, float* dbias, addition const& onto) {
  if (!g.pointwise() || !dkernel)
    return s_->convolution.backward(g, batch, x, kernel, dy, dx, dkernel, dbias, onto);
  dense_backward(std::size_t(batch) * g.positions(), std::size_t(g.in.channels), std::size_t(g.out.channels),
                 x, kernel, dy, dx, dkernel, dbias);
  if (!dx || !onto.more) return true;
  add(s_->queue, onto, dx, std::size_t(batch) * g.in.size());
  return false;
}

void products::dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f,
                             void const* x, float const* kernel, float const* bias, void* y) {
  s_->dense.forward(rows, inputs, outputs, f, x, kernel, bias, y);
}

void products::dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, void const* x,
                              float const* kernel, void const* dy, void* dx, float* dkernel, float* dbias) {
  s_->dense.backward(rows, inputs, outputs, x, kernel, dy, dx, dkernel, dbias);
}

void products::forward_each(std::size_t count, std::size_t rows, std::size_t inputs, std::size_t outputs,
                            void const* x, float const* kernel, std::uint16_t const* rounded, void* y) {
  s_->dense.forward_each(count, rows, inputs, outputs, x, kernel, rounded, y);
}

void products::weights_each(std::size_t count, std::size_t rows, std::size_t inputs, std::size_t outputs,
                            void const* x, void const* dy, float* dkernel) {
  s_->dense.weights_each(count, rows, inputs, outputs, x, dy, dkernel);
}

std::string products::describe_conv2d(conv_geometry const& g, int batch) {
  return g.pointwise() ? describe_dense(std::size_t(batch) * g.positions(), std::size_t(g.in.channels),
                                        std::size_t(g.out.channels))
                       : s_->convolution.describe(g, batch);
}

std::string products::describe_dense(std::size_t rows, std::size_t inputs, std::size_t outputs) {
  return s_->dense.describe(rows, inputs, outputs);
}

}  // namespace edl::cuda_library
