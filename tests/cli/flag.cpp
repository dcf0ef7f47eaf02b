// SPDX-License-Identifier: Apache-2.0
#include "edl/cli/flag.hpp"

#include <doctest/doctest.h>

#include "text.hpp"

namespace flag_test {

using namespace edl::cli;
using enum flag::value_type;

namespace {

std::string why(flag const& f, std::string const& value) {
  return refusal([&] { accept(f, value); });
}

}  // namespace

TEST_CASE("a whole number is within its bounds, to the last digit") {
  flag const seed{.name = "seed", .type = whole, .least = 0};
  for (char const* good : {"0", "1", "18446744073709551615"}) CHECK(accept(seed, good) == good);
  for (char const* bad : {"-1", "18446744073709551616", "1e3", "0x10", "3.5", "", " 1", "1 ", "+1"})
    CHECK(why(seed, bad) == "--seed=" + std::string(bad) + ": expected a whole number of at least 0");
  flag const epochs{.name = "epochs", .type = whole, .least = -5, .most = 5};
  for (char const* good : {"-5", "0", "5"}) CHECK(accept(epochs, good) == good);
  for (char const* bad : {"-6", "6", "-9223372036854775809"})
    CHECK(why(epochs, bad) == "--epochs=" + std::string(bad) + ": expected a whole number from -5 to 5");
  CHECK(parse_number<std::uint64_t>("18446744073709551615") == ~std::uint64_t{0});
}

TEST_CASE("a choice is found in any case, also beside a number") {
  flag const level{.name = "log_level", .choices = {"INFO", "ERROR"}};
  CHECK(accept(level, "error") == "ERROR");
  CHECK(why(level, "loud") == "--log_level=loud: expected INFO, ERROR");
  flag const workers{.name = "n", .choices = {"auto"}, .type = whole, .least = 1, .most = 9};
  CHECK(accept(workers, "auto") == "auto");
  CHECK(accept(workers, "3") == "3");
  CHECK(why(workers, "some") == "--n=some: expected a whole number from 1 to 9, or auto");
}

TEST_CASE("numbers, shares and truths") {
  flag const load{.name = "load", .type = number, .lowest = 0.01, .highest = 1};
  CHECK(accept(load, "0.5") == "0.5");
  for (char const* bad : {"0", "1.01", "nan", "x", "0.5x"})
    CHECK(why(load, bad) == "--load=" + std::string(bad) + ": expected a number from 0.01 to 1");
  CHECK(why({.name = "n", .type = number, .lowest = 0}, "nan") ==
        "--n=nan: expected a number from 0 to 1.8e+308");
  flag const fraction{.name = "fraction", .type = share};
  CHECK(accept(fraction, "1") == "1");
  for (char const* bad : {"0", "-1", "1.5", "nan", "all"})
    CHECK(why(fraction, bad) ==
          "--fraction=" + std::string(bad) + ": expected a number of more than 0, and at most 1");
  for (char const* yes : {"true", "Yes", "t", "Y", "1", "on"}) CHECK(parse_truth("f", yes));
  for (char const* no : {"false", "No", "f", "N", "0", "off"}) CHECK_FALSE(parse_truth("f", no));
  CHECK(refusal([] { parse_truth("f", "maybe"); }) == "--f=maybe: expected true or false");
}

TEST_CASE("help lists flags by group, with choices and what holds without them") {
  std::string const text =
      describe({{.name = "seed", .fallback = "1", .help = "of what is drawn", .group = "Model"},
                {.name = "hidden"},
                {.name = "job", .help = "its name", .aliases = {"j", "job_name"}, .group = "Job"},
                {.name = "how", .help = "mode", .choices = {"a", "b"}, .group = "Model"}});
  CHECK(text ==
        "Model:\n"
        "  --seed                          of what is drawn [1]\n"
        "  --how                           mode: a, b\n"
        "\nJob:\n"
        "  -j, --job, --job_name           its name\n");
  for (std::string const& line :
       split(describe({{.name = "long", .help = std::string(50, 'x') + std::string(200, ' ')}}), '\n'))
    CHECK(line.size() <= 110);
}

TEST_CASE("a list is split without blanks and without empty parts") {
  CHECK(split(" a, b ,,c,", ',') == words{"a", "b", "c"});
  CHECK(split("", ',').empty());
  CHECK(edl::cli::list_of("f", " a, b") == words{"a", "b"});
  CHECK(edl::cli::list_of("f", "").empty());
  for (std::string const list : {"a,,b", "a,", ",a", ",", " "})
    CHECK(refusal([&] { edl::cli::list_of("f", list); }) == "--f=" + list + ": a part of the list is empty");
  CHECK(refusal([] { edl::cli::list_of("f", "a,b,a"); }) == "--f=a,b,a: 'a' occurs twice");
}

}  // namespace flag_test
