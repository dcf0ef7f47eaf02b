// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/autoscaler/policy.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace policy_test {

using namespace edl::autoscaler;

TEST_CASE("policies by name") {
  CHECK(std::string(policies().front().name) == "fair");
  CHECK(std::string(policy_called("completion").name) == "completion");
  CHECK_THROWS_WITH_AS(policy_called("fast"),
                       "unknown policy 'fast': expected one of fair, throughput, completion",
                       edl::usage_error);
}

TEST_CASE("fair: the least share first") {
  claimant const small{.share = 0.1}, large{.share = 0.3};
  auto const worth = policy_called("fair").worth;
  CHECK(worth(small, 1) > worth(small, 2));
  CHECK(worth(small, 1) > worth(large, 0));
  CHECK(worth(large, 0) > worth(small, 3));
}

TEST_CASE("throughput: where another worker adds most") {
  claimant const scales{.share = 0.1, .gains = {1, 1}};
  claimant const hardly{.share = 0.1, .gains = {1, 0.2}};
  auto const worth = policy_called("throughput").worth;
  CHECK(worth(scales, 1) > worth(hardly, 1));
  CHECK(worth(scales, 0) == worth(hardly, 0));
}

TEST_CASE("completion: a quarter of the fair share, then who is to be measured, then least remaining time") {
  claimant const poor{.share = 0.1, .gains = {1, 1, 1, 1}, .tried = 4, .seconds_left = 1e6, .fair = 4};
  claimant const quick{.share = 0.1, .gains = {1, 1, 1, 1}, .tried = 4, .seconds_left = 10, .fair = 0};
  claimant const unknown{.share = 0.1, .gains = {1, 1, 1, 1}, .fair = 0};
  auto const worth = policy_called("completion").worth;
  CHECK(worth(poor, 0) > worth(quick, 0));
  CHECK(worth(quick, 3) > worth(poor, 2));
  CHECK(worth(unknown, 0) > worth(poor, 0));
  CHECK(worth(poor, 3) > worth(unknown, 1));
  CHECK(worth(poor, 16) < 0);  // four times what was tried
}

TEST_CASE("max-min shares of a divisible cluster") {
  claimant a{.min = 1, .most = 100, .share = 0.1}, b{.min = 1, .most = 2, .share = 0.1},
      c{.min = 0, .most = 100, .share = 0.2};
  std::vector<claimant*> const all{&a, &b, &c};
  share_fairly(all);
  CHECK(b.fair == doctest::Approx(2));
  CHECK(a.fair == doctest::Approx(4));
  CHECK(c.fair == doctest::Approx(2));
}

}  // namespace policy_test
