// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "edl/device/cpu/activation.hpp"

namespace edl {
namespace detail {

/// to[i] = f(i) for all elements, on all threads.
template <class T, class F>
void each_element(basic_cpu<T>& cpu, std::span<T> y, F&& f) {
  cpu.share(y.size(), cpu.parts(y.size(), 16 * 1024), [=](std::size_t begin, std::size_t end, int) {
    T* const to = y.data();
#pragma GCC ivdep  // what is read may be what is written, at the same index
    for (std::size_t i = begin; i < end; ++i) to[i] = f(i);
  });
}

template <class T>
using element_array = Eigen::Array<T, Eigen::Dynamic, 1>;
template <class T>
using element_view = Eigen::Map<element_array<T> const>;

/// work(first element, count) for all elements, on all threads.
template <class T, class Work>
void each_share(basic_cpu<T>& cpu, std::span<T> y, Work&& work) {
  cpu.share(y.size(), cpu.parts(y.size(), 4 * 1024), [&](std::size_t begin, std::size_t end, int) {
    work(begin, Eigen::Index(end - begin),
         Eigen::Map<element_array<T>>(y.data() + begin, Eigen::Index(end - begin)));
  });
}

}  // namespace detail

template <class T>
void relu_forward(basic_cpu<T>& cpu, reads<T> x, writes<T> y) {
  detail::each_element<T>(cpu, y,
                          [from = x.data()](std::size_t i) { return from[i] < T(0) ? T(0) : from[i]; });
}

template <class T>
void relu_backward(basic_cpu<T>& cpu, reads<T> y, reads<T> dy, writes<T> dx) {
  detail::each_element<T>(
      cpu, dx, [out = y.data(), from = dy.data()](std::size_t i) { return out[i] > T(0) ? from[i] : T(0); });
}

template <class T>
void leaky_relu_forward(basic_cpu<T>& cpu, std::type_identity_t<T> slope, reads<T> x, writes<T> y) {
  detail::each_element<T>(
      cpu, y, [slope, from = x.data()](std::size_t i) { return from[i] * (from[i] > T(0) ? T(1) : slope); });
}

template <class T>
void leaky_relu_backward(basic_cpu<T>& cpu, std::type_identity_t<T> slope, reads<T> y, reads<T> dy,
                         writes<T> dx) {
  detail::each_element<T>(cpu, dx, [slope, out = y.data(), from = dy.data()](std::size_t i) {
    return from[i] * (out[i] > T(0) ? T(1) : slope);
  });
}

template <class T>
void sigmoid_forward(basic_cpu<T>& cpu, reads<T> x, writes<T> y) {
  detail::each_share<T>(cpu, y, [&](std::size_t at, Eigen::Index n, auto to) {
    to = T(0.5) * (detail::element_view<T>(x.data() + at, n) * T(0.5)).tanh() + T(0.5);
  });
}

template <class T>
void sigmoid_backward(basic_cpu<T>& cpu, reads<T> y, reads<T> dy, writes<T> dx) {
  detail::each_element<T>(cpu, dx, [out = y.data(), from = dy.data()](std::size_t i) {
    return from[i] * out[i] * (T(1) - out[i]);
  });
}

template <class T>
void tanh_forward(basic_cpu<T>& cpu, reads<T> x, writes<T> y) {
  detail::each_share<T>(cpu, y, [&](std::size_t at, Eigen::Index n, auto to) {
    to = detail::element_view<T>(x.data() + at, n).tanh();
  });
}

template <class T>
void tanh_backward(basic_cpu<T>& cpu, reads<T> y, reads<T> dy, writes<T> dx) {
  detail::each_element<T>(cpu, dx, [out = y.data(), from = dy.data()](std::size_t i) {
    return from[i] * (T(1) - out[i] * out[i]);
  });
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
