// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/device/cpu/basic_cpu.hpp"
#include "edl/device/geometry.hpp"

namespace edl {

/// y = gamma · (x − mean) / √(variance + epsilon) + beta (no gamma is ones), each channel by the mean and
/// (biased) variance of all positions of the batch, plus `more` (may be empty; not with windows or gelu),
/// then what `c` says. Moves the running values: running ← momentum · running + (1 − momentum) · this
/// batch's. `kept` takes 2 · channels: mean and 1 / √(variance + epsilon).
template <class T>
void batch_norm_train(basic_cpu<T>& cpu, norm_chain const& c, int batch, std::type_identity_t<T> momentum,
                      std::type_identity_t<T> epsilon, reads<T> x, reads<T> gamma, reads<T> beta,
                      reads<T> more, writes<T> running_mean, writes<T> running_variance, writes<T> y,
                      writes<T> kept);

/// The same by the running values, which stay as they are.
template <class T>
void batch_norm_evaluate(basic_cpu<T>& cpu, norm_chain const& c, int batch, std::type_identity_t<T> epsilon,
                         reads<T> x, reads<T> gamma, reads<T> beta, reads<T> more, reads<T> running_mean,
                         reads<T> running_variance, writes<T> y, writes<T> kept);

/// y once more, from what either of them kept; nothing is added.
template <class T>
void batch_norm_again(basic_cpu<T>& cpu, norm_chain const& c, int batch, reads<T> x, reads<T> gamma,
                      reads<T> beta, reads<T> kept, writes<T> y);

/// Gradients after `batch_norm_train` (`through` the batch's statistics) or `batch_norm_evaluate` (where they
/// are constants). An empty `dx` is not computed.
template <class T>
void batch_norm_backward(basic_cpu<T>& cpu, norm_chain const& c, int batch, bool through, reads<T> x,
                         reads<T> gamma, reads<T> beta, reads<T> dy, reads<T> kept, writes<T> dx,
                         writes<T> dgamma, writes<T> dbeta);

}  // namespace edl

#ifdef EDL_HEADER_ONLY
#include "edl/device/cpu/batch_norm.ipp"
#endif
