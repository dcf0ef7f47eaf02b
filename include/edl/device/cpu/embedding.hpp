// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/basic_cpu.hpp"

namespace edl {

/// Row i of y is the row of the table that id i names. Throws edl::error where there is no such row.
template <class T>
void embedding_forward(basic_cpu<T>& cpu, embedding_geometry const& g, int batch, reads<T> ids,
                       reads<T> table, writes<T> y);

/// dtable = for each id the sum of its rows of dy, in their order, whatever the number of threads, and zeros
/// elsewhere; dx, unless it is empty, zeros. What is no id is passed over.
template <class T>
void embedding_backward(basic_cpu<T>& cpu, embedding_geometry const& g, int batch, reads<T> ids, reads<T> dy,
                        writes<T> dx, writes<T> dtable);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/embedding.ipp"
#endif
