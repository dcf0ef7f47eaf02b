// SPDX-License-Identifier: Apache-2.0
#include "edl/job/ps/buffer.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>

namespace buffer_test {

using edl::ps::buffer;

TEST_CASE("an array lives as long as its last handle") {
  buffer none;
  CHECK(none.values().empty());
  CHECK_FALSE(none.sole());
  buffer a(100);
  CHECK(a.sole());
  CHECK(reinterpret_cast<std::uintptr_t>(a.values().data()) % 64 == 0);
  CHECK(a.values().size() == 100);
  CHECK(a.values()[99] == 0);
  {
    buffer b = a;
    CHECK_FALSE(a.sole());
    CHECK(b.values().data() == a.values().data());
    buffer c = std::move(b);
    CHECK(b.values().empty());
    CHECK_FALSE(a.sole());
  }
  CHECK(a.sole());
  a.writable()[3] = 7;
  buffer d = a;
  a = buffer(0);
  CHECK(d.sole());
  CHECK(d.values()[3] == 7);
  d = *&d;
  CHECK(d.values()[3] == 7);
}

}  // namespace buffer_test
