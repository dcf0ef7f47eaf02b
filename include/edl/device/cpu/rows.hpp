// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// Every one of `rows` rows of y becomes `row`; zeros where it is empty.
template <class T>
void fill_rows(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, reads<T> row, writes<T> y);

/// sums = Σ over the rows of x. In parts, so that the error grows with the root of their number.
template <class T>
void sum_rows(basic_cpu<T>& cpu, std::size_t rows, std::size_t columns, reads<T> x, writes<T> sums);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/rows.ipp"
#endif
