// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/dense.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "edl/compute/device/cuda/library/operand.hpp"
#include "edl/core/error.hpp"

namespace edl::cuda_library {
namespace {

cublasLtEpilogue_t after(activation f, bool bias) {
  return cublasLtEpilogue_t((f == activation::relu ? CUBLASLT_EPILOGUE_RELU : 0) |
                            (bias ? CUBLASLT_EPILOGUE_BIAS : 0) |
                            (f == activation::none && !bias ? CUBLASLT_EPILOGUE_DEFAULT : 0));
}

std::int64_t aligned(void const* p) { return std::int64_t(alignment_of(p)); }

}  // namespace

dense_layers::dense_layers(cuda_kernels::queue const& q, products::shared_state const& shared)
    : q_(q), shared_(shared), matrices_(shared.precision) {}

// y = x · W by rows is yᵀ = Wᵀ · xᵀ by columns, and W in memory by rows is Wᵀ by columns; and so on.
product dense_layers::forward_product(std::size_t rows, std::size_t inputs, std::size_t outputs) const {
  return {.m = std::int64_t(outputs),
          .n = std::int64_t(rows),
          .k = std::int64_t(inputs),
          .in = type(),
          .out = type()};
}

product dense_layers::data_product(std::size_t rows, std::size_t inputs, std::size_t outputs) const {
  return {.m = std::int64_t(inputs),
          .n = std::int64_t(rows),
          .k = std::int64_t(outputs),
          .a_turned = true,
          .in = type(),
          .out = type()};
}

product dense_layers::weights_product(std::size_t rows, std::size_t inputs, std::size_t outputs) const {
  return {.m = std::int64_t(outputs),
          .n = std::int64_t(inputs),
          .k = std::int64_t(rows),
          .b_turned = true,
          .in = type(),
          .out = CUDA_R_32F};
}

dense_layers::chosen dense_layers::choose(product const& wanted, runner const* with) {
  std::vector<chosen> ways;
  for (auto const& w : matrices_.propose(wanted)) ways.push_back({wanted, w});
  std::size_t rule = 0;
  bool const sums = wanted.after == CUBLASLT_EPILOGUE_BGRADA;
  if (wanted.after != CUBLASLT_EPILOGUE_DEFAULT && (ways.empty() || sums)) {
    rule = ways.size();
    product plain = wanted;
    plain.after = CUBLASLT_EPILOGUE_DEFAULT;
    for (auto const& w : matrices_.propose(plain)) ways.push_back({plain, w});
    if (rule == ways.size()) rule = 0;
  }
  if (ways.empty()) throw error(fmt::format("cuBLASLt: it has no algorithm for {}", wanted.describe()));
  bool const measures = with && shared_.measured && ways.size() > 1 && !recording(q_);
  return ways[measures ? fastest(q_, ways.size(), [&](std::size_t i) { (*with)(ways[i]); }) : rule];
}

void dense_layers::run(product const& wanted, runner const& with) {
  auto at = known_.find(wanted);
  if (at == known_.end()) at = known_.emplace(wanted, choose(wanted, &with)).first;
  with(at->second);
}

void dense_layers::forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f,
                           void const* x, float const* kernel, float const* bias, void* y) {
  room fixed;
  operand const w = operand::matrix(q_, shared_, kernel, inputs * outputs, outputs, fixed);
  operand const b = bias ? operand::vector(q_, shared_, bias, outputs, fixed) : operand();
  product wanted = forward_product(rows, inputs, outputs);
  wanted.after = after(f, bias != nullptr);
  wanted.a_aligned = std::int64_t(w.alignment());
  wanted.b_aligned = aligned(x);
  wanted.d_aligned = aligned(y);
  run(wanted, [&](chosen const& c) {
    room r = fixed;
    std::size_t const work = r.add(c.way.workspace);
    auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
    void const* const weights = w.place(q_, scratch);
    bool const fused = c.computed.after == wanted.after;
    void const* const more = fused && bias ? b.place(q_, scratch) : nullptr;
    matrices_.run(c.computed, c.way, weights, x, y, const_cast<void*>(more), scratch + work, q_.stream);
    if (!fused) cuda_kernels::finish_rows(q_, rows, outputs, f, bias, y);
  });
}

void dense_layers::backward(std::size_t rows, std::size_t inputs, std::size_t outputs, void const* x,
                            float const* kernel, void const* dy, void* dx, float* dkernel, float* dbias) {
  if (dx) {
    room fixed;
    operand const w = operand::matrix(q_, shared_, kernel, inputs * outputs, outputs, fixed);
    product wanted = data_product(rows, inputs, outputs);
    wanted.a_aligned = std::int64_t(w.alignment());
    wanted.b_aligned = aligned(dy);
    wanted.d_aligned = aligned(dx);
    run(wanted, [&](chosen const& c) {
      room r = fixed;
      std::size_t const work = r.add(c.way.workspace);
      auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
      void const* const weights = w.place(q_, scratch);
      matrices_.run(c.computed, c.way, weights, dy, dx, nullptr, scratch + work, q_.stream);
    });
  }
  product wanted = weights_product(rows, inputs, outputs);
  bool const within = dbias && alignment_of(dbias) >= bias_alignment;
  if (within) wanted.after = CUBLASLT_EPILOGUE_BGRADA;
  wanted.a_aligned = aligned(dy);
  wanted.b_aligned = aligned(x);
  wanted.d_aligned = aligned(dkernel);
  run(wanted, [&](chosen const& c) {
    bool const summed = c.computed.after == CUBLASLT_EPILOGUE_BGRADA;
    room r;
    std::size_t const work = r.add(c.way.workspace);
    std::size_t const sums =
        r.add(dbias && !summed ? cuda_kernels::sum_rows_scratch(q_, rows, outputs) * sizeof(float) : 0);
    auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
    matrices_.run(c.computed, c.way, dy, x, dkernel, summed ? dbias : nullptr, scratch + work, q_.stream);
    if (dbias && !summed)
      cuda_kernels::sum_rows(q_, rows, outputs, dy, dbias, reinterpret_cast<float*>(scratch + sums));
  });
}

std::string dense_layers::describe(std::size_t rows, std::size_t inputs, std::size_t outputs) {
  auto const words = [&](product const& shape) {
    auto const same = [&](auto const& entry) {
      product p = entry.first;
      p.after = shape.after, p.a_aligned = p.b_aligned = p.d_aligned = 256;
      return p == shape;
    };
    auto const at = std::ranges::find_if(known_, same);
    chosen const c = at == known_.end() ? choose(shape, nullptr) : at->second;
    return cuda_library::describe(c.way) + (c.computed.after == CUBLASLT_EPILOGUE_DEFAULT ? ""
                                            : c.computed.after == CUBLASLT_EPILOGUE_BGRADA
                                                ? " with the bias' gradient"
                                                : " with what follows");
  };
  return fmt::format("{} | {} | {}", words(forward_product(rows, inputs, outputs)),
                     words(weights_product(rows, inputs, outputs)),
                     words(data_product(rows, inputs, outputs)));
}

}  // namespace edl::cuda_library
