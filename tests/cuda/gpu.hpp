// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "edl/compute/device/cuda.hpp"

/// The GPU of these tests, opened anew for each: a real one, or the double, as EDL_CUDA_LIBRARY says. Null
/// where none is to be had; the test says so, and ends. It fails if EDL_TEST_GPU says that one must be there.
/// Kernels that a trial leaves out are not logged: the double has many, and what fails would drown in them.
inline std::shared_ptr<edl::accelerator> gpu_or_skip(edl::cuda_options o = {}) try {
  if (!o.warn) o.warn = [](std::string const&) {};
  return edl::open_cuda(o);
} catch (edl::cuda_unavailable const& none) {
  bool const must = std::getenv("EDL_TEST_GPU") != nullptr;
  if (must) FAIL(std::string(none.what()));
  MESSAGE("skipped: " << std::string(none.what()));
  return {};
}

/// ‖a − b‖ / ‖b‖; what is no number is infinitely far from everything.
inline double distance(edl::view<float> a, edl::view<float> b) {
  double off = 0, all = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    double const d = double(a[i]) - double(b[i]);
    if (!std::isfinite(d)) return INFINITY;
    off += d * d;
    all += double(b[i]) * double(b[i]);
  }
  return all > 0 ? std::sqrt(off / all) : std::sqrt(off);
}

/// What `precision` may cost one operation.
inline double bound(edl::precision p) {
  return p == edl::precision::float32 ? 1e-5 : p == edl::precision::tf32 ? 2e-3 : 1e-2;
}
