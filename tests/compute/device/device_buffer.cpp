// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/device/device_buffer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "edl/compute/device/cpu/basic_cpu.hpp"

namespace device_buffer_test {

TEST_CASE("memory of a backend is zeroed, and keeps their place when moved") {
  auto const device = std::make_shared<edl::cpu>();
  CHECK(device->in_host_memory());
  edl::device_buffer<float> a(device, 100);
  CHECK(std::ranges::all_of(a.span(), [](float v) { return v == 0; }));
  float* const where = a.span().data();
  std::vector<float> const numbers(100, 2.5f);
  device->write(numbers, a.span());
  edl::device_buffer<float> b(std::move(a));
  CHECK(b.span().data() == where);
  CHECK(a.span().empty());
  std::vector<float> back(100);
  device->read(b.span(), back);
  CHECK(back == numbers);
  b = edl::device_buffer<float>(device, 0);
  CHECK(b.span().empty());
}

TEST_CASE("memory that cannot be had is refused") {
  auto const device = std::make_shared<edl::cpu>();
  CHECK_THROWS_AS(edl::device_buffer<float>(device, std::size_t(-1) / 2), std::bad_alloc);
}

}  // namespace device_buffer_test
