// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/optim/name_patterns.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace name_patterns_test {

static std::vector<std::string> const names{"conv2d/kernel", "conv2d/bias", "dense/kernel"};

static std::vector<bool> matching(std::string const& patterns) {
  return edl::matching_names(names, patterns, "--x", "part");
}

TEST_CASE("a pattern is one of a shell, in which a star stands for slashes, too") {
  CHECK(matching("conv2d/bias") == std::vector{false, true, false});
  CHECK(matching("*") == std::vector{true, true, true});
  CHECK(matching("*kernel") == std::vector{true, false, true});
  CHECK(matching("conv2d/[bc]?as,d*") == std::vector{false, true, true});
}

TEST_CASE("each pattern matches something, or the error says what is near") {
  auto const refused = [](std::string const& patterns, char const* why) {
    CHECK_THROWS_WITH_AS(matching(patterns), why, edl::error);
  };
  refused("dense/kernl", "--x: 'dense/kernl' matches no part; did you mean dense/kernel?");
  refused("*,zzz*", "--x: 'zzz*' matches no part; these are conv2d/kernel, conv2d/bias, dense/kernel");
  CHECK_THROWS_AS(matching("dense*,"), edl::error);
}

TEST_CASE("of many names the error tells the near ones, or the first, and how to list all") {
  std::vector<std::string> many;
  for (int i = 1; i < 30; ++i)
    for (char const* variable : {"gamma", "beta"})
      many.push_back("residual/batch_normalization_" + std::to_string(i) + "/" + variable);
  auto const refused = [&](std::string const& pattern) {
    try {
      edl::matching_names(many, pattern, "--x", "part");
    } catch (edl::error const& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK(
      refused("batch_norm/*") ==
      "--x: 'batch_norm/*' matches no part; did you mean residual/batch_normalization_1/gamma or "
      "residual/batch_normalization_1/beta or residual/batch_normalization_2/gamma? --explain_plan lists all "
      "names");
  CHECK(refused("zzz*") ==
        "--x: 'zzz*' matches no part; of 58 names, the first are residual/batch_normalization_1/gamma, "
        "residual/batch_normalization_1/beta, residual/batch_normalization_2/gamma; --explain_plan lists all "
        "names");
}

}  // namespace name_patterns_test
