// SPDX-License-Identifier: Apache-2.0
#include "edl/core/quantity.hpp"

#include <doctest/doctest.h>

#include <string>

#include "edl/core/error.hpp"

namespace quantity_test {

TEST_CASE("amounts are counted in bytes and in thousandths, rounded up") {
  struct {
    char const* amount;
    std::uint64_t bytes, thousandths;
  } const all[] = {{"0", 0, 0},
                   {"1", 1, 1000},
                   {"0.2", 1, 200},
                   {".5", 1, 500},
                   {"2.", 2, 2000},
                   {"250m", 1, 250},
                   {"1500m", 2, 1500},
                   {"1u", 1, 1},
                   {"1n", 1, 1},
                   {"0n", 0, 0},
                   {"1k", 1000, 1'000'000},
                   {"1Ki", 1024, 1'024'000},
                   {"32Mi", 33554432, 33554432000},
                   {"32M", 32000000, 32000000000},
                   {"1.5Gi", 1610612736, 1610612736000},
                   {"1e3", 1000, 1'000'000},
                   {"1E+3", 1000, 1'000'000},
                   {"12e-1", 2, 1200},
                   {"1E", 1'000'000'000'000'000'000, 18446744073709551615u},
                   {"0.000001Ti", 1099512, 1099511628},
                   {"9223372036854775807", 9223372036854775807, 18446744073709551615u}};
  for (auto const& [amount, bytes, thousandths] : all) {
    CAPTURE(amount);
    CHECK(edl::bytes_of(amount) == bytes);
    CHECK(edl::thousandths_of(amount) == thousandths);
  }
}

TEST_CASE("what is no amount is quoted") {
  for (char const* bad : {"",     ".",     "x",   "1x",  "1Kib", "1 Mi",  "Mi",   "-1",      "+1",
                          "1..5", "1.2.3", "1e",  "1e-", "1e+",  "1e100", "1ei",  "mi",      "1mi",
                          "1K",   "0x10",  "1,5", "inf", "nan",  "1e3Mi", "1Mi ", "\xd9\xa3"}) {
    CAPTURE(bad);
    try {
      edl::bytes_of(bad);
      FAIL_CHECK("is taken");
    } catch (edl::error const& e) {
      CHECK(std::string(e.what()).find("'" + std::string(bad) + "' is not an amount") == 0);
    }
  }
  for (char const* huge : {"8Ei", "10E", "9223372036854775808", "1e90",
                           "99999999999999999999999999999999999999999", "9999999999999999999999Ei"}) {
    CAPTURE(huge);
    CHECK_THROWS_WITH_AS(edl::bytes_of(huge), doctest::Contains("is more than any machine has"), edl::error);
  }
  CHECK_THROWS_AS(edl::bytes_of("0." + std::string(40, '0') + "1"), edl::error);
}

TEST_CASE("less than a mebibyte of memory is a slip") {
  for (char const* good : {"1Mi", "1.5Gi", "4096k", "1e9", "5000000", "0"}) {
    CAPTURE(good);
    CHECK_NOTHROW(edl::check_amount("memory", good));
  }
  for (char const* bad : {"512m", "4096", "100Ki", "1"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(edl::check_amount("memory", bad), doctest::Contains("too little for a pod"),
                         edl::error);
    CHECK_NOTHROW(edl::check_amount("cpu", bad));
  }
  CHECK_THROWS_WITH_AS(edl::check_amount("ephemeral-storage", "512m"),
                       "'512m' is 1 byte, too little for a pod: units are Mi and Gi, or M and G, and m is a "
                       "thousandth",
                       edl::error);
  CHECK_THROWS_AS(edl::check_amount("cpu", "x"), edl::error);
}

TEST_CASE("bytes are spelt in the largest unit that is exact") {
  CHECK(edl::to_quantity(0) == "0");
  CHECK(edl::to_quantity(1023) == "1023");
  CHECK(edl::to_quantity(1024) == "1Ki");
  CHECK(edl::to_quantity(1536u << 20) == "1536Mi");
  CHECK(edl::to_quantity(std::uint64_t{7} << 60) == "7Ei");
}

TEST_CASE("an amount grows up to a bound, and never shrinks") {
  std::uint64_t const bound = std::uint64_t{8} << 30;
  CHECK(edl::grown_quantity("1024Mi", 2) == "2Gi");
  CHECK(edl::grown_quantity("1.5Gi", 2, bound) == "3Gi");
  CHECK(edl::grown_quantity("3G", 2) == "5859375Ki");
  CHECK(edl::grown_quantity("5Gi", 2, bound) == "8Gi");
  CHECK(edl::grown_quantity("8Gi", 2, bound) == "8Gi");
  CHECK(edl::grown_quantity("9000Mi", 2, bound) == "9000Mi");
  CHECK(edl::grown_quantity("1024Mi", 1) == "1024Mi");
  CHECK(edl::grown_quantity("0", 4) == "0");
  CHECK(edl::bytes_of(edl::grown_quantity("7Ei", 4'000'000'000u)) == 9223372036854775807);
  CHECK_THROWS_AS(edl::grown_quantity("much", 2), edl::error);
}

TEST_CASE("an error quotes no control characters") {
  for (std::string const amount : {"1\x1b[31m", "2\n3", "\x9b"}) {
    CAPTURE(amount);
    std::string said;
    try {
      edl::bytes_of(amount);
    } catch (edl::error const& e) {
      said = e.what();
    }
    CHECK(said.find("is not an amount") != said.npos);
    CHECK(said.find_first_of("\x1b\n\x9b") == said.npos);
  }
}

}  // namespace quantity_test
