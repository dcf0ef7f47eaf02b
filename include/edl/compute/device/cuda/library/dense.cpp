// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cuda/library/dense.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "edl/compute/device/cuda/library/check.hpp"
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

dense_layers::layer dense_layers::layer_of(std::size_t rows, std::size_t inputs, std::size_t outputs,
                                           activation f) {
  return {{{1, 1, int(inputs)}, {1, 1, int(outputs)}, 1, 1, 0, 1}, int(rows), f};
}

// y = x · W in row-major order is yᵀ = Wᵀ · xᵀ in column-major order, and a row-major W is a column-major Wᵀ;
// likewise for the other products.
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

std::vector<dense_layers::chosen> dense_layers::ways(product const& wanted, std::size_t& rule) {
  std::vector<chosen> found;
  for (auto const& w : matrices_.propose(wanted)) found.push_back({wanted, w});
  rule = 0;
  bool const sums = wanted.after == CUBLASLT_EPILOGUE_BGRADA;
  if (wanted.after != CUBLASLT_EPILOGUE_DEFAULT && (found.empty() || sums)) {
    rule = found.size();
    product plain = wanted;
    plain.after = CUBLASLT_EPILOGUE_DEFAULT;
    for (auto const& w : matrices_.propose(plain)) found.push_back({plain, w});
    if (rule == found.size()) rule = 0;
  }
  return found;
}

/// The kernels that compute correctly, the rule's first; if there are none, our own kernels, which always do.
std::vector<dense_layers::chosen> dense_layers::right_ways(product const& wanted, layer const& l,
                                                           tensors const& of, runner const& with) {
  trial const tried(q_, shared_.precision, l.g, l.batch, l.f, of);
  std::size_t rule = 0;
  std::vector<chosen> found, right;
  try {
    found = ways(wanted, rule);
    if (found.empty()) throw error("it has no algorithm");
  } catch (error const& e) {
    shared_.warn(fmt::format("cuBLASLt: {}: edl's own kernel computes it, which is not fast: {}",
                             wanted.describe(), e.what()));
  }
  std::rotate(found.begin(), found.begin() + std::ptrdiff_t(rule), found.end());
  for (chosen const& c : found) {
    std::string why;
    if (failed_.contains({wanted, cuda_library::describe(*c.way)})) continue;
    if (tried.accepts([&](tensors const& t) { with(c, t); }, why))
      right.push_back(c);
    else if (std::string const name = cuda_library::describe(*c.way); told_.insert(name).second)
      shared_.warn(fmt::format("{} is left out of {}: {}", name, wanted.describe(), why));
    if (!right.empty() && !shared_.measured) break;
  }
  product plain = wanted;
  plain.after = CUBLASLT_EPILOGUE_DEFAULT;
  if (right.empty()) right.push_back({plain});
  return right;
}

void dense_layers::run(product const& wanted, layer const& l, tensors const& of, runner const& with) {
  auto const choose = [&] {
    if (recording(q_)) throw met_while_recording(wanted.describe());
    std::vector<chosen> const found = right_ways(wanted, l, of, with);
    std::size_t const best =
        found.size() > 1 ? fastest(q_, found.size(), [&](std::size_t i) { with(found[i], of); }) : 0;
    return found[best];
  };
  auto at = known_.find(wanted);
  if (at == known_.end()) at = known_.emplace(wanted, choose()).first;
  for (;;) try {
      return with(at->second, of);
    } catch (error const& e) {  // it has passed its trial before
      if (!at->second.way || recording(q_)) throw;
      std::string const name = cuda_library::describe(*at->second.way);
      failed_.emplace(wanted, name);
      shared_.warn(fmt::format("{} is left out of {} from now on: {}", name, wanted.describe(), e.what()));
      at->second = choose();
    }
}

/// A variable's bfloat16 copy, if products read bfloat16.
std::uint16_t const* dense_layers::rounded(float const* variable) const {
  return q_.half ? shared_.rounded(variable) : nullptr;
}

void dense_layers::forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f,
                           void const* x, float const* kernel, float const* bias, void* y) {
  room first;
  product wanted = forward_product(rows, inputs, outputs);
  wanted.after = after(f, bias != nullptr);
  wanted.a_aligned = std::int64_t(
      operand::matrix(q_, kernel, rounded(kernel), inputs * outputs, outputs, first).alignment());
  wanted.b_aligned = aligned(x);
  wanted.d_aligned = aligned(y);
  layer const l = layer_of(rows, inputs, outputs, f);
  run(wanted, l, {.x = x, .kernel = kernel, .bias = bias, .rounded = rounded(kernel), .y = y},
      [&](chosen const& c, tensors const& t) {
        if (!c.way) return cuda_kernels::conv2d_forward(q_, l.g, l.batch, f, t.x, t.kernel, t.bias, t.y);
        room r;
        operand const w = operand::matrix(q_, t.kernel, t.rounded, inputs * outputs, outputs, r);
        operand const b = bias ? operand::vector(q_, t.bias, rounded(t.bias), outputs, r) : operand();
        std::size_t const work = r.add(c.workspace());
        auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
        void const* const weights = w.place(q_, scratch);
        bool const fused = c.computed.after == wanted.after;
        void const* const more = fused && bias ? b.place(q_, scratch) : nullptr;
        matrices_.run(c.computed, *c.way, weights, t.x, t.y, const_cast<void*>(more), scratch + work,
                      q_.stream);
        if (!fused) cuda_kernels::finish_rows(q_, rows, outputs, f, t.bias, t.y);
      });
}

void dense_layers::backward(std::size_t rows, std::size_t inputs, std::size_t outputs, void const* x,
                            float const* kernel, void const* dy, void* dx, float* dkernel, float* dbias) {
  layer const l = layer_of(rows, inputs, outputs);
  if (dx) {
    room first;
    product wanted = data_product(rows, inputs, outputs);
    wanted.a_aligned = std::int64_t(
        operand::matrix(q_, kernel, rounded(kernel), inputs * outputs, outputs, first).alignment());
    wanted.b_aligned = aligned(dy);
    wanted.d_aligned = aligned(dx);
    run(wanted, l, {.kernel = kernel, .rounded = rounded(kernel), .dy = dy, .dx = dx},
        [&](chosen const& c, tensors const& t) {
          if (!c.way) return cuda_kernels::conv2d_data(q_, l.g, l.batch, t.kernel, t.dy, t.dx);
          room r;
          operand const w = operand::matrix(q_, t.kernel, t.rounded, inputs * outputs, outputs, r);
          std::size_t const work = r.add(c.workspace());
          auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
          void const* const weights = w.place(q_, scratch);
          matrices_.run(c.computed, *c.way, weights, t.dy, t.dx, nullptr, scratch + work, q_.stream);
        });
  }
  if (!dkernel) return;
  product wanted = weights_product(rows, inputs, outputs);
  bool const within = dbias && alignment_of(dbias) >= bias_alignment;
  if (within) wanted.after = CUBLASLT_EPILOGUE_BGRADA;
  wanted.a_aligned = aligned(dy);
  wanted.b_aligned = aligned(x);
  wanted.d_aligned = aligned(dkernel);
  tensors const of{.x = x, .dy = dy, .dkernel = dkernel, .dbias = dbias};
  run(wanted, l, of, [&](chosen const& c, tensors const& t) {
    bool const summed = c.computed.after == CUBLASLT_EPILOGUE_BGRADA;
    room r;
    std::size_t const work = r.add(c.workspace());
    std::size_t const sums =
        r.add(dbias && !summed ? cuda_kernels::sum_rows_scratch(q_, rows, outputs) * sizeof(float) : 0);
    auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
    if (c.way)
      matrices_.run(c.computed, *c.way, t.dy, t.x, t.dkernel, summed ? t.dbias : nullptr, scratch + work,
                    q_.stream);
    else
      cuda_kernels::conv2d_weights(q_, l.g, l.batch, t.x, t.dy, t.dkernel);
    if (dbias && !summed)
      cuda_kernels::sum_rows(q_, rows, outputs, t.dy, t.dbias, reinterpret_cast<float*>(scratch + sums));
  });
}

// A trial treats them as one layer with all their rows: it gives each layer the same kernel, and adds their
// gradients. In a second trial the first kernel is zeros, which exposes an algorithm that uses the first
// kernel for all.

void dense_layers::forward_each(std::size_t count, std::size_t rows, std::size_t inputs, std::size_t outputs,
                                void const* x, float const* kernel, std::uint16_t const* rounded, void* y) {
  std::size_t const one = inputs * outputs;
  product wanted = forward_product(rows, inputs, outputs);
  wanted.batch = std::int64_t(count);
  wanted.a_aligned = q_.half ? aligned(rounded) : aligned(kernel);
  wanted.b_aligned = aligned(x);
  wanted.d_aligned = aligned(y);
  layer const l = layer_of(count * rows, inputs, outputs), each = layer_of(rows, inputs, outputs);
  tensors const of{.x = x, .kernel = kernel, .rounded = rounded, .y = y};
  run(wanted, l, of, [&](chosen const& c, tensors const& t) {
    bool const tried = t.x != x;
    if (!c.way) {
      for (std::size_t i = 0; i < count; ++i)
        cuda_kernels::conv2d_forward(q_, each.g, each.batch, activation::none,
                                     static_cast<std::byte const*>(t.x) + i * rows * inputs * element(),
                                     t.kernel + (tried ? 0 : i * one), nullptr,
                                     static_cast<std::byte*>(t.y) + i * rows * outputs * element());
      return;
    }
    room r;
    std::size_t const weight_bytes = one * element(), first_bytes = rows * outputs * element(),
                      work = r.add(c.workspace()), copies = r.add(tried ? count * weight_bytes : 0),
                      first = r.add(tried ? first_bytes : 0);
    auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
    void const* weights = q_.half ? static_cast<void const*>(t.rounded) : t.kernel;
    auto const compute = [&] {
      matrices_.run(c.computed, *c.way, weights, t.x, t.y, nullptr, scratch + work, q_.stream);
    };
    if (!tried) return compute();
    auto const copy = [&](void* to, void const* from, std::size_t bytes) {
      check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, q_.stream), "preparing a trial");
    };
    for (std::size_t i = 0; i < count; ++i) copy(scratch + copies + i * weight_bytes, weights, weight_bytes);
    weights = scratch + copies;
    compute();
    copy(scratch + first, t.y, first_bytes);
    check(cudaMemsetAsync(scratch + copies, 0, weight_bytes, q_.stream), "preparing a trial");
    compute();
    copy(t.y, scratch + first, first_bytes);
  });
}

void dense_layers::weights_each(std::size_t count, std::size_t rows, std::size_t inputs, std::size_t outputs,
                                void const* x, void const* dy, float* dkernel) {
  std::size_t const one = inputs * outputs;
  product wanted = weights_product(rows, inputs, outputs);
  wanted.batch = std::int64_t(count);
  wanted.a_aligned = aligned(dy);
  wanted.b_aligned = aligned(x);
  wanted.d_aligned = aligned(dkernel);
  layer const l = layer_of(count * rows, inputs, outputs), each = layer_of(rows, inputs, outputs);
  tensors const of{.x = x, .dy = dy, .dkernel = dkernel};
  run(wanted, l, of, [&](chosen const& c, tensors const& t) {
    bool const tried = t.x != x;
    room r;
    std::size_t const work = r.add(c.workspace()), own = r.add(tried ? count * one * sizeof(float) : 0);
    auto* const scratch = reinterpret_cast<std::byte*>(shared_.scratch(r.floats()));
    float* const to = tried ? reinterpret_cast<float*>(scratch + own) : t.dkernel;
    if (c.way)
      matrices_.run(c.computed, *c.way, t.dy, t.x, to, nullptr, scratch + work, q_.stream);
    else
      for (std::size_t i = 0; i < count; ++i)
        cuda_kernels::conv2d_weights(
            q_, each.g, each.batch, static_cast<std::byte const*>(t.x) + i * rows * inputs * element(),
            static_cast<std::byte const*>(t.dy) + i * rows * outputs * element(), to + i * one);
    if (!tried) return;
    check(cudaMemsetAsync(t.dkernel, 0, one * sizeof(float), q_.stream), "preparing a trial");
    for (std::size_t i = 0; i < count; ++i) cuda_kernels::add_divided(q_, one, to + i * one, 1, t.dkernel);
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
    std::size_t rule = 0;
    std::vector<chosen> const fresh = at == known_.end() ? ways(shape, rule) : std::vector{at->second};
    if (fresh.empty() || !fresh[rule].way)
      return std::string("edl's own, since no algorithm of cuBLASLt is right");
    chosen const& c = fresh[rule];
    return cuda_library::describe(*c.way) + (c.computed.after == CUBLASLT_EPILOGUE_DEFAULT ? ""
                                             : c.computed.after == CUBLASLT_EPILOGUE_BGRADA
                                                 ? " with the bias' gradient"
                                                 : " with its epilogue");
  };
  return fmt::format("{} | {} | {}", words(forward_product(rows, inputs, outputs)),
                     words(weights_product(rows, inputs, outputs)),
                     words(data_product(rows, inputs, outputs)));
}

}  // namespace edl::cuda_library
