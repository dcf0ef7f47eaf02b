// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// y = 0 where the stream's uniform number of the element is below `rate`, x / (1 − rate) elsewhere. `mask`
/// takes one byte per element, for `dropout_backward`.
template <class T>
void dropout_forward(basic_cpu<T>& cpu, std::type_identity_t<T> rate, random_stream const& random, reads<T> x,
                     writes<T> y, std::span<std::byte> mask);

template <class T>
void dropout_backward(basic_cpu<T>& cpu, std::type_identity_t<T> rate, std::span<std::byte const> mask,
                      reads<T> dy, writes<T> dx);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/dropout.ipp"
#endif
