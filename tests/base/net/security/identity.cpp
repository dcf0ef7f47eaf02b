// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/security/identity.hpp"

#include <doctest/doctest.h>

namespace identity_test {

using edl::net::answers_to;
using edl::net::identity;
using edl::net::is_identity;

TEST_CASE("an identity is a name, and a number where runs are told apart") {
  CHECK(to_string(identity{"master"}) == "master");
  CHECK(to_string(identity{"ps-1", 0xdeadbeef}) == "ps-1/00000000deadbeef");
  CHECK(to_string(identity{}) == "");
}

TEST_CASE("a process answers to its name, to its whole identity, and to no other") {
  CHECK(answers_to("ps-1/0a", "ps-1/0a"));
  CHECK(answers_to("ps-1/0a", "ps-1"));
  CHECK(answers_to("ps-1/0a", ""));
  CHECK(answers_to("", ""));
  CHECK_FALSE(answers_to("ps-1/0a", "ps-1/0b"));
  CHECK_FALSE(answers_to("ps-1/0a", "ps-10"));
  CHECK_FALSE(answers_to("ps-10/0a", "ps-1"));
  CHECK_FALSE(answers_to("ps-1", "ps-1/0a"));
  CHECK_FALSE(answers_to("", "master"));
}

TEST_CASE("what is no identity is known as such") {
  for (char const* good : {"master", "ps-1/00000000deadbeef", "worker-12", "a.b_c/1"})
    CHECK(is_identity(good));
  for (char const* bad : {"", "/", "a/", "/a", "a/b/c", "a b", "a\n", "a!b"}) CHECK_FALSE(is_identity(bad));
  CHECK_FALSE(is_identity(std::string(81, 'a')));
}

}  // namespace identity_test
