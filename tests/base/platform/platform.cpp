// SPDX-License-Identifier: Apache-2.0
#include "edl/base/platform/platform.hpp"

#include <doctest/doctest.h>

namespace platform_test {

using edl::platform::last_words;

TEST_CASE("the last line of a process is its error, without what a log puts before it") {
  CHECK(last_words("").empty());
  CHECK(last_words("\n \n").empty());
  CHECK(last_words("one\nmnist: data/train: there is no such file\n\n") ==
        "mnist: data/train: there is no such file");
  CHECK(last_words("[2026-11-20 13:00:00,123] [ERROR] [a.ipp:12:f] [ps-1] no [more] room") ==
        "no [more] room");
  CHECK(last_words("[2026-11-20 13:00:00,123] [CRITICAL] no room").size() == 7);
  for (char const* const fine : {"DEBUG", "INFO", "WARNING"})
    CHECK(last_words("[2026-11-20 13:00:00,123] [" + std::string(fine) + "] step 1 of 2").empty());
  for (char const* const odd : {"[", "[a", "[a] [", "[a] [b", "[a] [b] c", "] [INFO] a"})
    CHECK(last_words(odd) == odd);
  CHECK(last_words("red \x1b[31m \xff") == "red  [31m ?");
  CHECK(last_words(std::string(1000, 'x')).size() == 300);
}

}  // namespace platform_test
