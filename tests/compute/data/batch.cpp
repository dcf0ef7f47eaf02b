// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/batch.hpp"

#include <doctest/doctest.h>

namespace batch_test {

TEST_CASE("a batch has room for its rows and gives them out") {
  auto b = edl::data::make_batch(3, 4, 2, 1);
  CHECK(b.capacity == 3);
  CHECK(b.rows == 0);
  CHECK(b.features.size() == 12);
  CHECK(b.targets.size() == 6);
  CHECK(b.classes.size() == 3);
  CHECK(b.records.capacity() >= 3);
  CHECK(b.feature_row(2).size() == 4);
  b.feature_row(2)[3] = 5;
  b.target_row(1)[0] = 6;
  b.class_row(2)[0] = 7;
  CHECK(b.features[11] == 5);
  CHECK(b.targets[2] == 6);
  CHECK(b.classes[2] == 7);
}

}  // namespace batch_test
