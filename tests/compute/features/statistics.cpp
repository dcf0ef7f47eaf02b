// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/features/statistics.hpp"

#include <doctest/doctest.h>

#include <map>

#include "edl/core/error.hpp"

namespace statistics_test {

using edl::features::statistics;

struct given {
  std::map<std::string, std::string> all;
  char const* operator()(char const* name) const {
    auto const it = all.find(name);
    return it == all.end() ? nullptr : it->second.c_str();
  }
};

TEST_CASE("without an environment, a column has the statistics that the model names") {
  statistics const age("age", given{});
  CHECK(age.min(10) == 10);
  CHECK(age.deviation(2) == 2);
  CHECK(age.boundaries({10, 78}) == std::vector<float>{10, 78});
  CHECK(age.distinct(19) == 19);
  CHECK(age.vocabulary("cities") == "cities");
}

TEST_CASE("the environment's statistics win") {
  given const there{{{"_age_min", "11"},
                     {"_age_max", "100"},
                     {"_age_avg", "50.9"},
                     {"_age_stddev", "90.87"},
                     {"_age_boundaries", "67,15,89,15"},
                     {"_age_distinct_count", "50"},
                     {"_age_vocab", "/data/ages"}}};
  statistics const age("age", there);
  CHECK(age.min(10) == 11);
  CHECK(age.max(10) == 100);
  CHECK(age.mean(10) == 50.9f);
  CHECK(age.deviation(10) == 90.87f);
  CHECK(age.boundaries({}) == std::vector<float>{15, 67, 89});
  CHECK(age.distinct(19) == 50);
  CHECK(age.vocabulary("") == "/data/ages");
  CHECK(statistics("wage", there).min(10) == 10);
}

TEST_CASE("a name that no shell takes is found with lines below, too") {
  given const there{{{"_education_num_min", "1"}, {"_hours-per-week_max", "99"}}};
  CHECK(statistics("education-num", there).min(0) == 1);
  CHECK(statistics("hours-per-week", there).max(0) == 99);
}

TEST_CASE("a statistic that is none is refused by its variable's name") {
  statistics const age("age", given{{{"_age_min", "young"}, {"_age_avg", ""}, {"_age_max", "inf"}}});
  CHECK_THROWS_WITH_AS(age.min(0), "the environment's _age_min is 'young': expected a finite number",
                       edl::usage_error);
  CHECK_THROWS_AS(age.mean(0), edl::usage_error);
  CHECK_THROWS_AS(age.max(0), edl::usage_error);
}

}  // namespace statistics_test
