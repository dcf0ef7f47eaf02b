// SPDX-License-Identifier: Apache-2.0
#include "edl/core/metric_registry.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "openmetrics.hpp"

namespace metric_registry_test {

using edl::metric_registry, edl::metric_type;

TEST_CASE("metrics are told as OpenMetrics has them") {
  metric_registry m;
  m.describe("edl_a_total", metric_type::counter, "Requests.");
  m.describe("edl_b", metric_type::gauge, "Jobs.");
  m.describe("edl_c_seconds", metric_type::histogram, "Time.", {0.1, 1});
  m.describe("edl_d_info", metric_type::info, "What it is.");
  m.describe("edl_e_bytes_total", metric_type::counter, "Never \"used\".");
  m.add("edl_a_total", "verb=\"get\"");
  m.add("edl_a_total", "verb=\"get\"", 2);
  m.set("edl_b", 7);
  m.observe("edl_c_seconds", 0.1);
  m.observe("edl_c_seconds", 0.5);
  m.observe("edl_c_seconds", 5);
  m.set("edl_d_info", 1, "job=\"" + edl::label_value("a\"b\\\n") + "\"");
  CHECK(m.text() ==
        "# TYPE edl_a counter\n# HELP edl_a Requests.\nedl_a_total{verb=\"get\"} 3\n"
        "# TYPE edl_b gauge\n# HELP edl_b Jobs.\nedl_b 7\n"
        "# TYPE edl_c_seconds histogram\n# UNIT edl_c_seconds seconds\n# HELP edl_c_seconds Time.\n"
        "edl_c_seconds_bucket{le=\"0.1\"} 1\nedl_c_seconds_bucket{le=\"1.0\"} 2\n"
        "edl_c_seconds_bucket{le=\"+Inf\"} 3\nedl_c_seconds_sum 5.6\nedl_c_seconds_count 3\n"
        "# TYPE edl_d info\n# HELP edl_d What it is.\nedl_d_info{job=\"a\\\"b\\\\\\n\"} 1\n"
        "# TYPE edl_e_bytes counter\n# UNIT edl_e_bytes bytes\n# HELP edl_e_bytes Never \\\"used\\\".\n# "
        "EOF\n");
  CHECK(openmetrics::parse(m.text()).samples.size() == 8);
  CHECK(edl::plain_metrics(m.text()) ==
        "# TYPE edl_a_total counter\n# HELP edl_a_total Requests.\nedl_a_total{verb=\"get\"} 3\n"
        "# TYPE edl_b gauge\n# HELP edl_b Jobs.\nedl_b 7\n"
        "# TYPE edl_c_seconds histogram\n# HELP edl_c_seconds Time.\n"
        "edl_c_seconds_bucket{le=\"0.1\"} 1\nedl_c_seconds_bucket{le=\"1.0\"} 2\n"
        "edl_c_seconds_bucket{le=\"+Inf\"} 3\nedl_c_seconds_sum 5.6\nedl_c_seconds_count 3\n"
        "# TYPE edl_d_info gauge\n# HELP edl_d_info What it is.\nedl_d_info{job=\"a\\\"b\\\\\\n\"} 1\n"
        "# TYPE edl_e_bytes_total counter\n# HELP edl_e_bytes_total Never \\\"used\\\".\n");
}

TEST_CASE("what is no number is told as the format has it") {
  metric_registry m;
  m.describe("edl_loss", metric_type::gauge, "Loss.");
  m.set("edl_loss", std::numeric_limits<double>::quiet_NaN());
  CHECK(m.text().find("edl_loss NaN\n") != std::string::npos);
  m.set("edl_loss", -std::numeric_limits<double>::infinity());
  CHECK(m.text().find("edl_loss -Inf\n") != std::string::npos);
}

TEST_CASE("the tests' reader refuses what the format forbids") {
  CHECK(openmetrics::parse("# EOF\n").samples.empty());
  for (char const* wrong : {"", "# TYPE a gauge\na 1\n", "# TYPE a counter\na 1\n# EOF\n",
                            "# TYPE a_total counter\na_total 1\n# EOF\n", "a 1\n# EOF\n",
                            "# TYPE a gauge\na 1\na 1\n# EOF\n", "# TYPE a gauge\na{b=c} 1\n# EOF\n",
                            "# TYPE a gauge\n# UNIT a bytes\na 1\n# EOF\n", "# TYPE a gauge\na inf\n# EOF\n",
                            "# EOF\n# EOF\n", "# TYPE a histogram\na_bucket{le=\"1\"} 1\n# EOF\n",
                            "# TYPE a histogram\na_bucket{le=\"1.0\"} 2\na_bucket{le=\"+Inf\"} 1\n# EOF\n"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(openmetrics::parse(wrong), std::runtime_error);
  }
}

}  // namespace metric_registry_test
