// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/quantity.hpp"

#include <doctest/doctest.h>

#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

TEST_CASE("quantities are numbers with the units of Kubernetes") {
  for (auto const& [text, amount] : {std::pair{"2", 2.0},
                                     {"100m", 0.1},
                                     {"1.5", 1.5},
                                     {"32Mi", 33554432.0},
                                     {"1e3", 1000.0},
                                     {"2E", 2e18},
                                     {"1Ki", 1024.0},
                                     {"+3k", 3000.0}}) {
    CAPTURE(text);
    CHECK(quantity(std::string(text)).value_or(-1) == doctest::Approx(amount));
  }
  for (char const* text : {"", "x", "2x", "1.5.2", "inf", "2 Mi", "1mi"}) {
    CAPTURE(text);
    CHECK(!quantity(std::string(text)));
  }
  CHECK(to_text(1.5) == "1500m");
  CHECK(to_text(2) == "2");
}

TEST_CASE("selectors of labels and fields") {
  json const o{{"metadata", {{"name", "w0"}, {"labels", {{"job", "a"}, {"role", "worker"}}}}},
               {"status", {{"phase", "Running"}}}};
  for (char const* s : {"", "job=a", "job==a,role=worker", "job in (a, b)", "job!=b", "other!=a", "job",
                        "!other", "role notin (ps,master)"})
    CHECK_MESSAGE(label_filter(s)(o), s);
  for (char const* s : {"job=b", "job=a,role=ps", "job in (b)", "job!=a", "other", "!job",
                        "role notin (worker)", "other in (a)"})
    CHECK_MESSAGE(!label_filter(s)(o), s);
  CHECK(field_filter("metadata.name=w0,status.phase!=Failed")(o));
  CHECK(!field_filter("status.phase=Failed")(o));
  CHECK_THROWS_AS(label_filter("job in a"), refusal);
}

}  // namespace edl::testing::kubernetes
