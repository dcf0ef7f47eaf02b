// SPDX-License-Identifier: Apache-2.0
#include "edl/cluster/kubernetes/names.hpp"

#include <doctest/doctest.h>

#include <string>

namespace names_test {

using namespace edl::kubernetes;

TEST_CASE("names of one part") {
  for (char const* good : {"a", "1", "test-mnist", "a--b", "0a"}) CHECK(is_label(good));
  for (char const* bad : {"", "-a", "a-", "A", "a_b", "a.b", "a b", "\xc3\xa4"}) CHECK_FALSE(is_label(bad));
  CHECK(is_label(std::string(63, 'a')));
  CHECK_FALSE(is_label(std::string(64, 'a')));
}

TEST_CASE("names of several parts") {
  for (char const* good : {"a", "a.b", "system-node-critical", "1.2.3"}) CHECK(is_subdomain(good));
  for (char const* bad : {"", ".", "a.", ".a", "a..b", "a.-b", "A.b", "a/b"}) CHECK_FALSE(is_subdomain(bad));
  std::string const part(63, 'a');
  CHECK(is_subdomain(part + "." + part + "." + part + "." + part.substr(0, 61)));
  CHECK_FALSE(is_subdomain(part + "." + part + "." + part + "." + part.substr(0, 62)));
}

TEST_CASE("names of variables") {
  for (char const* good : {"A", "_", "a1", "JAVA.OPTS", "a-b"}) CHECK(is_variable(good));
  for (char const* bad : {"", "1a", "a b", "a=b", "$A", "\xc3\xa4"}) CHECK_FALSE(is_variable(bad));
}

}  // namespace names_test
