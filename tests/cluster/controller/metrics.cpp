// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/controller/metrics.hpp"

#include <doctest/doctest.h>

namespace metrics_test {

using namespace edl::controller;

TEST_CASE("metrics are told as Prometheus reads them") {
  metrics m;
  m.describe("edl_a_total", metrics::metric_type::counter, "Requests.");
  m.describe("edl_b", metrics::metric_type::gauge, "Jobs.");
  m.describe("edl_c_seconds", metrics::metric_type::histogram, "Time.", {0.1, 1});
  m.add("edl_a_total", "verb=\"get\"");
  m.add("edl_a_total", "verb=\"get\"", 2);
  m.set("edl_b", 7);
  m.observe("edl_c_seconds", 0.1);
  m.observe("edl_c_seconds", 0.5);
  m.observe("edl_c_seconds", 5);
  CHECK(m.text() ==
        "# HELP edl_a_total Requests.\n# TYPE edl_a_total counter\nedl_a_total{verb=\"get\"} 3\n"
        "# HELP edl_b Jobs.\n# TYPE edl_b gauge\nedl_b 7\n"
        "# HELP edl_c_seconds Time.\n# TYPE edl_c_seconds histogram\n"
        "edl_c_seconds_bucket{le=\"0.1\"} 1\nedl_c_seconds_bucket{le=\"1\"} "
        "2\nedl_c_seconds_bucket{le=\"+Inf\"} 3\n"
        "edl_c_seconds_sum 5.6\nedl_c_seconds_count 3\n");
}

}  // namespace metrics_test
