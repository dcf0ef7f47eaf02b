// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"
#include "edl/compute/device/cpu/gemm.hpp"
#include "edl/compute/device/cpu/int8.hpp"
#include "edl/compute/device/cpu/onednn/onednn.hpp"
#include "edl/compute/device/cpu/rows.hpp"

namespace edl {

namespace detail {

inline kernel_key dense_key(std::string_view pass, std::size_t rows, std::size_t inputs,
                            std::size_t outputs) {
  return {pass, {std::int32_t(inputs), std::int32_t(outputs)}, std::int32_t(rows)};
}

}  // namespace detail

template <class T>
void basic_cpu<T>::dense_forward(std::size_t rows, std::size_t inputs, std::size_t outputs, activation f,
                                 view<T> x, view<T> kernel, view<T> bias, std::span<T> y, bool narrow) {
  if constexpr (std::same_as<T, float>)
    if (quantises() && inputs <= detail::most_int8_terms)
      return detail::int8_forward(*this, detail::dense_geometry(inputs, outputs), int(rows), f, x, kernel,
                                  bias, y);
  multiply<T>(*this, detail::dense_key("dense-forward", rows, inputs, outputs), rows, outputs, inputs,
              {x.data(), inputs, false, narrow}, {kernel.data(), outputs}, f, bias, y.data());
}

template <class T>
void basic_cpu<T>::dense_backward(std::size_t rows, std::size_t inputs, std::size_t outputs, view<T> x,
                                  view<T> kernel, view<T> dy, std::span<T> dx, std::span<T> dkernel,
                                  std::span<T> dbias, bool narrow) {
  if (!dbias.empty()) sum_rows(*this, rows, outputs, dy, dbias);
  if (!dkernel.empty())
    multiply<T>(*this, detail::dense_key("dense-weights", rows, inputs, outputs), inputs, outputs, rows,
                {x.data(), inputs, true, narrow}, {dy.data(), outputs}, dkernel.data(), outputs);
  if (dx.empty()) return;
  multiply<T>(*this, detail::dense_key("dense-data", rows, inputs, outputs), rows, inputs, outputs,
              {dy.data(), outputs}, {kernel.data(), outputs, true}, dx.data(), inputs, narrow);
}

template <class T>
std::string basic_cpu<T>::describe_dense(std::size_t rows, std::size_t inputs, std::size_t outputs) {
  if (quantises() && inputs <= detail::most_int8_terms) return detail::describe_int8();
  std::vector<T> const x(rows * inputs), kernel(inputs * outputs);
  std::vector<T> y(rows * outputs);
  return describe_product<T>(*this, detail::dense_key("dense-forward", rows, inputs, outputs), rows, outputs,
                             inputs, {x.data(), inputs}, {kernel.data(), outputs}, y.data(), outputs);
}

#ifndef EDL_HEADER_ONLY
template std::string basic_cpu<float>::describe_dense(std::size_t, std::size_t, std::size_t);
template std::string basic_cpu<double>::describe_dense(std::size_t, std::size_t, std::size_t);
template void basic_cpu<float>::dense_forward(std::size_t, std::size_t, std::size_t, activation, view<float>,
                                              view<float>, view<float>, std::span<float>, bool);
template void basic_cpu<double>::dense_forward(std::size_t, std::size_t, std::size_t, activation,
                                               view<double>, view<double>, view<double>, std::span<double>,
                                               bool);
template void basic_cpu<float>::dense_backward(std::size_t, std::size_t, std::size_t, view<float>,
                                               view<float>, view<float>, std::span<float>, std::span<float>,
                                               std::span<float>, bool);
template void basic_cpu<double>::dense_backward(std::size_t, std::size_t, std::size_t, view<double>,
                                                view<double>, view<double>, std::span<double>,
                                                std::span<double>, std::span<double>, bool);
#endif

}  // namespace edl
