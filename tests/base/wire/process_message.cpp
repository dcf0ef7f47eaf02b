// SPDX-License-Identifier: Apache-2.0
#include "edl/base/wire/process_message.hpp"

#include <doctest/doctest.h>

#include "edl/core/error.hpp"

namespace process_message_test {

using edl::process_id;
using edl::role;
namespace wire = edl::wire;

TEST_CASE("a process is the same on the other side") {
  wire::Instance m;
  for (role const of : {role::master, role::server, role::worker}) {
    wire::to_message(process_id{of, 3}, m);
    CHECK(wire::from_message(m) == process_id{of, 3});
  }
  m.set_role(3);
  CHECK_THROWS_AS(wire::from_message(m), edl::error);
  for (role const of : {role::server, role::worker}) CHECK(wire::from_message(wire::to_message(of)) == of);
}

TEST_CASE("a message of a member names its sender") {
  wire::LeaveRequest m;
  m.set_role(wire::JoinRequest::SERVER);
  m.set_id(2);
  CHECK(wire::sender_of(m) == process_id{role::server, 2});
}

}  // namespace process_message_test
