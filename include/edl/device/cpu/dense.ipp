// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "edl/device/cpu/dense.hpp"
#include "edl/device/cpu/gemm.hpp"
#include "edl/device/cpu/rows.hpp"

namespace edl {

namespace detail {

inline kernel_key dense_key(std::string_view pass, std::size_t rows, std::size_t inputs,
                            std::size_t outputs) {
  return {pass, {std::int32_t(inputs), std::int32_t(outputs)}, std::int32_t(rows)};
}

}  // namespace detail

template <class T>
void dense_forward(basic_cpu<T>& cpu, std::size_t rows, std::size_t inputs, std::size_t outputs, activation f,
                   reads<T> x, reads<T> kernel, reads<T> bias, writes<T> y) {
  multiply<T>(cpu, detail::dense_key("dense-forward", rows, inputs, outputs), rows, outputs, inputs,
              {x.data(), inputs}, {kernel.data(), outputs}, y.data(), outputs);
  if (!bias.empty() || f != activation::none) finish_rows(cpu, rows, outputs, f, bias, y);
}

template <class T>
void dense_backward(basic_cpu<T>& cpu, std::size_t rows, std::size_t inputs, std::size_t outputs, reads<T> x,
                    reads<T> kernel, reads<T> dy, writes<T> dx, writes<T> dkernel, writes<T> dbias) {
  if (!dbias.empty()) sum_rows(cpu, rows, outputs, dy, dbias);
  multiply<T>(cpu, detail::dense_key("dense-weights", rows, inputs, outputs), inputs, outputs, rows,
              {x.data(), inputs, true}, {dy.data(), outputs}, dkernel.data(), outputs);
  if (dx.empty()) return;
  multiply<T>(cpu, detail::dense_key("dense-data", rows, inputs, outputs), rows, inputs, outputs,
              {dy.data(), outputs}, {kernel.data(), outputs, true}, dx.data(), inputs);
}

template <class T>
std::string describe_dense(basic_cpu<T>& cpu, std::size_t rows, std::size_t inputs, std::size_t outputs) {
  std::vector<T> const x(rows * inputs), kernel(inputs * outputs);
  std::vector<T> y(rows * outputs);
  return describe_product<T>(cpu, detail::dense_key("dense-forward", rows, inputs, outputs), rows, outputs,
                             inputs, {x.data(), inputs}, {kernel.data(), outputs}, y.data(), outputs);
}

#ifndef EDL_HEADER_ONLY
template std::string describe_dense(basic_cpu<float>&, std::size_t, std::size_t, std::size_t);
template std::string describe_dense(basic_cpu<double>&, std::size_t, std::size_t, std::size_t);
template void dense_forward(basic_cpu<float>&, std::size_t, std::size_t, std::size_t, activation, view<float>,
                            view<float>, view<float>, std::span<float>);
template void dense_forward(basic_cpu<double>&, std::size_t, std::size_t, std::size_t, activation,
                            view<double>, view<double>, view<double>, std::span<double>);
template void dense_backward(basic_cpu<float>&, std::size_t, std::size_t, std::size_t, view<float>,
                             view<float>, view<float>, std::span<float>, std::span<float>, std::span<float>);
template void dense_backward(basic_cpu<double>&, std::size_t, std::size_t, std::size_t, view<double>,
                             view<double>, view<double>, std::span<double>, std::span<double>,
                             std::span<double>);
#endif

}  // namespace edl
