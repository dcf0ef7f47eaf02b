// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "edl/device/cpu/activation.hpp"

namespace edl {
namespace detail {

template <class T>
auto read_array(std::span<T> s) {
  return Eigen::Map<Eigen::Array<std::remove_const_t<T>, Eigen::Dynamic, 1> const>(s.data(),
                                                                                   Eigen::Index(s.size()));
}

template <class T>
auto write_array(std::span<T> s) {
  return Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(s.data(), Eigen::Index(s.size()));
}

}  // namespace detail

template <class T>
void relu_forward(basic_cpu<T>&, reads<T> x, writes<T> y) {
  T const* const from = x.data();
  T* __restrict const to = y.data();
  for (std::size_t i = 0; i < y.size(); ++i) to[i] = from[i] < T(0) ? T(0) : from[i];
}

template <class T>
void relu_backward(basic_cpu<T>&, reads<T> y, reads<T> dy, writes<T> dx) {
  T const *const out = y.data(), *const from = dy.data();
  T* __restrict const to = dx.data();
  for (std::size_t i = 0; i < dx.size(); ++i) to[i] = out[i] > T(0) ? from[i] : T(0);
}

template <class T>
void leaky_relu_forward(basic_cpu<T>&, std::type_identity_t<T> slope, reads<T> x, writes<T> y) {
  T const* const from = x.data();
  T* __restrict const to = y.data();
  for (std::size_t i = 0; i < y.size(); ++i) to[i] = from[i] * (from[i] > T(0) ? T(1) : slope);
}

template <class T>
void leaky_relu_backward(basic_cpu<T>&, std::type_identity_t<T> slope, reads<T> y, reads<T> dy,
                         writes<T> dx) {
  T const *const out = y.data(), *const from = dy.data();
  T* __restrict const to = dx.data();
  for (std::size_t i = 0; i < dx.size(); ++i) to[i] = from[i] * (out[i] > T(0) ? T(1) : slope);
}

template <class T>
void sigmoid_forward(basic_cpu<T>&, reads<T> x, writes<T> y) {
  detail::write_array(y) = T(0.5) * (detail::read_array(x) * T(0.5)).tanh() + T(0.5);
}

template <class T>
void sigmoid_backward(basic_cpu<T>&, reads<T> y, reads<T> dy, writes<T> dx) {
  auto const out = detail::read_array(y);
  detail::write_array(dx) = detail::read_array(dy) * out * (T(1) - out);
}

template <class T>
void tanh_forward(basic_cpu<T>&, reads<T> x, writes<T> y) {
  detail::write_array(y) = detail::read_array(x).tanh();
}

template <class T>
void tanh_backward(basic_cpu<T>&, reads<T> y, reads<T> dy, writes<T> dx) {
  detail::write_array(dx) = detail::read_array(dy) * (T(1) - detail::read_array(y).square());
}

#ifndef EDL_HEADER_ONLY
template void relu_forward(basic_cpu<float>&, view<float>, std::span<float>);
template void relu_forward(basic_cpu<double>&, view<double>, std::span<double>);
template void relu_backward(basic_cpu<float>&, view<float>, view<float>, std::span<float>);
template void relu_backward(basic_cpu<double>&, view<double>, view<double>, std::span<double>);
template void leaky_relu_forward(basic_cpu<float>&, float, view<float>, std::span<float>);
template void leaky_relu_forward(basic_cpu<double>&, double, view<double>, std::span<double>);
template void leaky_relu_backward(basic_cpu<float>&, float, view<float>, view<float>, std::span<float>);
template void leaky_relu_backward(basic_cpu<double>&, double, view<double>, view<double>, std::span<double>);
template void sigmoid_forward(basic_cpu<float>&, view<float>, std::span<float>);
template void sigmoid_forward(basic_cpu<double>&, view<double>, std::span<double>);
template void sigmoid_backward(basic_cpu<float>&, view<float>, view<float>, std::span<float>);
template void sigmoid_backward(basic_cpu<double>&, view<double>, view<double>, std::span<double>);
template void tanh_forward(basic_cpu<float>&, view<float>, std::span<float>);
template void tanh_forward(basic_cpu<double>&, view<double>, std::span<double>);
template void tanh_backward(basic_cpu<float>&, view<float>, view<float>, std::span<float>);
template void tanh_backward(basic_cpu<double>&, view<double>, view<double>, std::span<double>);
#endif

}  // namespace edl
