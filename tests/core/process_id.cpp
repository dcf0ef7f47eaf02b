// SPDX-License-Identifier: Apache-2.0
#include "edl/core/process_id.hpp"

#include <doctest/doctest.h>

namespace process_id_test {

using edl::parse_process_id;
using edl::process_id;
using edl::role;

TEST_CASE("the name of a process is read as it was written") {
  for (process_id const who : {process_id{role::master, 0}, process_id{role::server, 0},
                               process_id{role::worker, 3}, process_id{role::worker, 4294967295u}})
    CHECK(parse_process_id(to_string(who)) == who);
  CHECK(to_string(process_id{role::server, 7}) == "ps-7");
}

TEST_CASE("what names no process is none") {
  for (char const* text : {"", "-", "ps", "worker", "ps-", "ps-x", "ps-1 ", "ps--1", "ps-+1", "master-0",
                           "masters", "trainer-1", "worker-4294967296", "worker-1-2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_process_id(text));
  }
}

}  // namespace process_id_test
