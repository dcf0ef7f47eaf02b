// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cmath>

#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace edl {

template <class T>
void basic_cpu<T>::softmax_forward(std::size_t rows, std::size_t classes, view<T> x, std::span<T> y) {
  using row = Eigen::Array<T, Eigen::Dynamic, 1>;
  for (std::size_t i = 0; i < rows; ++i) {
    Eigen::Map<row const> const in(x.data() + i * classes, Eigen::Index(classes));
    Eigen::Map<row> out(y.data() + i * classes, Eigen::Index(classes));
    out = (in - in.template maxCoeff<Eigen::PropagateNaN>()).exp();
    out *= T(1) / out.sum();
  }
}

template <class T>
void basic_cpu<T>::softmax_backward(std::size_t rows, std::size_t classes, view<T> y, view<T> dy,
                                    std::span<T> dx) {
  using row = Eigen::Array<T, Eigen::Dynamic, 1>;
  for (std::size_t i = 0; i < rows; ++i) {
    Eigen::Map<row const> const out(y.data() + i * classes, Eigen::Index(classes));
    Eigen::Map<row const> const g(dy.data() + i * classes, Eigen::Index(classes));
    T const along = (out * g).sum();
    Eigen::Map<row>(dx.data() + i * classes, Eigen::Index(classes)) = out * (g - along);
  }
}

template <class T>
void basic_cpu<T>::log_softmax_forward(std::size_t rows, std::size_t classes, view<T> x, std::span<T> y) {
  using row = Eigen::Array<T, Eigen::Dynamic, 1>;
  this->share(rows, this->parts(rows * classes, 4 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      Eigen::Map<row const> const in(x.data() + i * classes, Eigen::Index(classes));
      Eigen::Map<row> out(y.data() + i * classes, Eigen::Index(classes));
      out = in - in.template maxCoeff<Eigen::PropagateNaN>();
      out -= std::log(out.exp().sum());
    }
  });
}

template <class T>
void basic_cpu<T>::log_softmax_backward(std::size_t rows, std::size_t classes, view<T> y, view<T> dy,
                                        std::span<T> dx) {
  using row = Eigen::Array<T, Eigen::Dynamic, 1>;
  this->share(rows, this->parts(rows * classes, 4 * 1024), [&](std::size_t begin, std::size_t end, int) {
    for (std::size_t i = begin; i < end; ++i) {
      Eigen::Map<row const> const out(y.data() + i * classes, Eigen::Index(classes));
      Eigen::Map<row const> const g(dy.data() + i * classes, Eigen::Index(classes));
      T const all = g.sum();
      Eigen::Map<row>(dx.data() + i * classes, Eigen::Index(classes)) = g - out.exp() * all;
    }
  });
}

#ifndef EDL_HEADER_ONLY
template void basic_cpu<float>::softmax_forward(std::size_t, std::size_t, view<float>, std::span<float>);
template void basic_cpu<double>::softmax_forward(std::size_t, std::size_t, view<double>, std::span<double>);
template void basic_cpu<float>::softmax_backward(std::size_t, std::size_t, view<float>, view<float>,
                                                 std::span<float>);
template void basic_cpu<double>::softmax_backward(std::size_t, std::size_t, view<double>, view<double>,
                                                  std::span<double>);
template void basic_cpu<float>::log_softmax_forward(std::size_t, std::size_t, view<float>, std::span<float>);
template void basic_cpu<double>::log_softmax_forward(std::size_t, std::size_t, view<double>,
                                                     std::span<double>);
template void basic_cpu<float>::log_softmax_backward(std::size_t, std::size_t, view<float>, view<float>,
                                                     std::span<float>);
template void basic_cpu<double>::log_softmax_backward(std::size_t, std::size_t, view<double>, view<double>,
                                                      std::span<double>);
#endif

}  // namespace edl
