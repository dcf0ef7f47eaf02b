// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/gelu.hpp"

namespace edl {

template <class T>
void gelu_forward(basic_cpu<T>& cpu, reads<T> x, writes<T> y) {
  cpu.share(y.size(), cpu.parts(y.size(), 4 * 1024), [&](std::size_t begin, std::size_t end, int) {
    T const* const from = x.data() + begin;
    T* const to = y.data() + begin;
    detail::by_lanes<T>(end - begin, [&]<class V>(std::size_t i) {
      detail::store<V>(to + i, detail::gelu(V(detail::load<V>(from + i))));
    });
  });
}

template <class T>
void gelu_backward(basic_cpu<T>& cpu, reads<T> x, reads<T> dy, writes<T> dx) {
  cpu.share(dx.size(), cpu.parts(dx.size(), 4 * 1024), [&](std::size_t begin, std::size_t end, int) {
    T const *const in = x.data() + begin, *const out = dy.data() + begin;
    T* const to = dx.data() + begin;
    detail::by_lanes<T>(end - begin, [&]<class V>(std::size_t i) {
      detail::store<V>(to + i, detail::load<V>(out + i) * detail::gelu_slope(V(detail::load<V>(in + i))));
    });
  });
}

#ifndef EDL_HEADER_ONLY
template void gelu_forward(basic_cpu<float>&, view<float>, std::span<float>);
template void gelu_forward(basic_cpu<double>&, view<double>, std::span<double>);
template void gelu_backward(basic_cpu<float>&, view<float>, view<float>, std::span<float>);
template void gelu_backward(basic_cpu<double>&, view<double>, view<double>, std::span<double>);
#endif

}  // namespace edl
