// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <type_traits>

#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace cpu_test {

struct no_device {
  using scalar = float;
  using buffer = edl::aligned_buffer<float>;
};

TEST_CASE("a device has every operation, and moves") {
  CHECK(edl::device<edl::cpu>);
  CHECK(edl::device<edl::basic_cpu<double>>);
  CHECK_FALSE(edl::device<no_device>);
  CHECK(std::is_nothrow_move_constructible_v<edl::cpu>);
}

}  // namespace cpu_test
