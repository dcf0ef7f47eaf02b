// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/products.hpp"

#include <fmt/format.h>

#include "edl/compute/device/cuda/library/conv2d.hpp"
#include "edl/compute/device/cuda/library/dense.hpp"

namespace edl::cuda_library {

struct products::state {
  state(cuda_kernels::queue const& q, shared_state a)
      : shared(std::move(a)), dense(q, shared), convolution(q, shared) {}

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

void products::conv2d_backward(conv_geometry const& g, int batch, void const* x, float const* kernel,
                               void const* dy, void* dx, float* dkernel, float* dbias) {
  if (g.pointwise() && dkernel)
    dense_backward(std::size_t(batch) * g.positions(), std::size_t(g.in.channels),
                   std::size_t(g.out.channels), x, kernel, dy, dx, dkernel, dbias);
  else
    s_->convolution.backward(g, batch, x, kernel, dy, dx, dkernel, dbias);
}

void products::dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f,
                             void const* x, float const* kernel, float const* bias, void* y) {
  s_->dense.forward(rows, inputs, outputs, f, x, kernel, bias, y);
}

void products::dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, void const* x,
                              float const* kernel, void const* dy, void* dx, float* dkernel, float* dbias) {
  s_->dense.backward(rows, inputs, outputs, x, kernel, dy, dx, dkernel, dbias);
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
