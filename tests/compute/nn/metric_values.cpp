// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>

#include "edl/compute/nn/metric/values.hpp"
#include "edl/core/random.hpp"

namespace metric_values_test {

using edl::metric_values;

namespace {

std::string text(double value) {
  std::string const all = edl::to_text({{"v", value}});
  return all.substr(6, all.size() - 7);
}

}  // namespace

TEST_CASE("metrics are printed as Python prints a dict") {
  CHECK(edl::to_text({{"accuracy", 0.97}}) == "{'accuracy': 0.97}");
  CHECK(edl::to_text({{"accuracy", 0.9713333}, {"loss", 0.125}}) == "{'accuracy': 0.9713333, 'loss': 0.125}");
  CHECK(edl::to_text({}) == "{}");
  CHECK(edl::to_text({{"it's", 1}, {"a\\b", 2}}) == "{'it\\'s': 1.0, 'a\\\\b': 2.0}");
}

TEST_CASE("numbers are printed as numpy.float32 prints them") {
  CHECK(text(0) == "0.0");
  CHECK(text(-0.0) == "-0.0");
  CHECK(text(1) == "1.0");
  CHECK(text(-2.5) == "-2.5");
  CHECK(text(10) == "10.0");
  CHECK(text(0.1) == "0.1");
  CHECK(text(1.0 / 3) == "0.33333334");
  CHECK(text(0.0001) == "0.0001");
  CHECK(text(0.00012345) == "0.00012345");
  CHECK(text(0.00001) == "1e-05");
  CHECK(text(1.5e-7) == "1.5e-07");
  CHECK(text(123456) == "123456.0");
  CHECK(text(123.456) == "123.456");
  CHECK(text(16777216) == "16777216.0");
  CHECK(text(1e15) == "1000000000000000.0");
  CHECK(text(1e16) == "1e+16");
  CHECK(text(3.4028234e38) == "3.4028235e+38");
  CHECK(text(1e-45) == "1e-45");
  CHECK(text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(text(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(text(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("what is printed reads back as the same float") {
  edl::random_stream const random{1, 0};
  for (std::uint64_t i = 0; i < 20000; ++i) {
    float const value = float(random.normal(2 * i) * std::exp(20 * random.normal(2 * i + 1)));
    REQUIRE(std::strtof(text(double(value)).c_str(), nullptr) == value);
  }
}

TEST_CASE("a confusion matrix is one, with a row for each class") {
  CHECK(edl::to_text({{"accuracy", 0.5},
                      {"confusion/0/0", 50},
                      {"confusion/0/1", 2},
                      {"confusion/1/0", 1},
                      {"confusion/1/1", 47},
                      {"loss", 1}}) == "{'accuracy': 0.5, 'confusion': [[50, 2], [1, 47]], 'loss': 1.0}");
  CHECK(edl::to_text({{"a/confusion/0/0", 1}}) == "{'a/confusion': [[1]]}");
  CHECK(edl::to_text({{"confusion/0/0", 1}, {"confusion/0/1", 2}}) ==
        "{'confusion/0/0': 1.0, 'confusion/0/1': 2.0}");  // somebody's own
}

}  // namespace metric_values_test
