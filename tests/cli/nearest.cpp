// SPDX-License-Identifier: Apache-2.0
#include "edl/cli/nearest.hpp"

#include <doctest/doctest.h>

namespace nearest_test {

using edl::cli::nearest;

TEST_CASE("a misspelt name is answered with the one that it is nearest to, and a strange one with none") {
  std::vector<std::string> const known{"minibatch_size", "num_workers", "seed"};
  CHECK(nearest("minibach_size", known) == "minibatch_size");
  CHECK(nearest("num_worker", known) == "num_workers");
  CHECK(nearest("sede", known) == "seed");
  CHECK(nearest("eht", {"the", "and"}) == "");
  CHECK(nearest("teh", {"and", "the"}) == "the");  // two that changed places are one mistake
  CHECK(nearest("gae", {"age"}) == "age");
  CHECK(nearest("learning_rate", known).empty());
  CHECK(nearest("x", known).empty());
  CHECK(nearest("", known).empty());
  CHECK(nearest("seed", {}).empty());
}

}  // namespace nearest_test
