// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/options.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"

namespace options_test {

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
  CHECK(edl::multiplies(float32));
  for (auto const k : {edl::kernels::own, edl::kernels::fixed, edl::kernels::measured}) {
    CHECK(refusal({.kernels = k}).empty());
    CHECK(refusal({.kernels = k, .precision = tf32}).starts_with("--precision=tf32"));
  }
  for (auto const p : {bfloat16, int8}) {
    CHECK(refusal({.kernels = edl::kernels::own, .precision = p}).empty());
    std::string const why = refusal({.kernels = edl::kernels::fixed, .precision = p});
    CHECK(why.empty() == edl::multiplies(p));
    if (!why.empty()) CHECK(why.find("--kernels=own") != std::string::npos);
  }
}

}  // namespace options_test
