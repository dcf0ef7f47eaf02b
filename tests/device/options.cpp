// SPDX-License-Identifier: Apache-2.0
// Covers also edl/device/precision.hpp.
#include "edl/device/cpu/options.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"

namespace {

std::string refusal(edl::cpu_options const& o) {
  try {
    edl::supported(o);
    return {};
  } catch (edl::error const& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("a precision that a processor does not have is refused with the reason and the way out") {
  using enum edl::precision;
  for (auto const k : {edl::kernels::own, edl::kernels::fixed, edl::kernels::measured}) {
    CHECK(refusal({.kernels = k}).empty());
    CHECK(refusal({.kernels = k, .precision = tf32}).find("--precision=tf32") == 0);
  }
  CHECK(refusal({.kernels = edl::kernels::own, .precision = bfloat16}).empty());
  std::string const why = refusal({.kernels = edl::kernels::fixed, .precision = bfloat16});
  CHECK(why.empty() == edl::multiplies_bfloat16());
  if (!why.empty()) CHECK(why.find("--kernels=own") != std::string::npos);
}
