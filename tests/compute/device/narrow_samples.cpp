// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/cpu/narrow_samples.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "compute/device/narrow.hpp"

namespace narrow_samples_test {

using samples = edl::detail::narrow_samples<float>;

TEST_CASE("samples in float32 are read and written where they are") {
  edl::cpu cpu;
  std::vector<float> x{1, 2, 3, 4};
  samples const s(cpu, 0, 2, x.data(), false);
  CHECK(s.read(1, 2) == x.data() + 1);
  CHECK(s.place(2, 2) == x.data() + 2);
  s.write(2, 2);
  CHECK(x == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("narrow samples are widened, and rounded on the way back") {
  edl::cpu cpu;
  std::vector<float> const x{1, 2, 3, 4, 5, 6};
  auto narrow = as_narrow(x);
  samples const s(cpu, 0, 2, narrow.data(), true);
  float const* const two = s.read(3, 2);
  CHECK(two[0] == 4);
  CHECK(two[1] == 5);
  float* const to = s.place(1, 3);
  std::ranges::copy(std::vector<float>{7, 1 + 0x1p-9f, 9}, to);
  s.write(1, 3);
  CHECK(as_wide(narrow, 6) == std::vector<float>{1, 7, 1, 9, 5, 6});
}

TEST_CASE("no samples are null") {
  edl::cpu cpu;
  CHECK(samples(cpu, 0, 2, nullptr, true).read(5, 3) == nullptr);
  CHECK(samples(cpu, 0, 2, nullptr, false).read(5, 3) == nullptr);
}

}  // namespace narrow_samples_test
