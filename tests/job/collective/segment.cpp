// SPDX-License-Identifier: Apache-2.0
#include "edl/job/collective/segment.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "edl/core/error.hpp"

namespace segment_test {

namespace {

using edl::collective::segment;
using edl::net::descriptor;

std::vector<descriptor> copy(std::vector<descriptor> const& of) {
  std::vector<descriptor> all;
  for (auto const& d : of) all.emplace_back(::fcntl(d.get(), F_DUPFD_CLOEXEC, 0));
  return all;
}

bool rung(segment const& s) {
  pollfd bell{s.bell(), POLLIN, 0};
  return ::poll(&bell, 1, 0) == 1;
}

}  // namespace

TEST_CASE("what a member writes and posts is seen by the others, wherever they have it mapped") {
  auto parts = segment::make(2);
  REQUIRE(parts.size() == 3);
  segment b(copy(parts), 1, 2);
  auto a = std::make_unique<segment>(std::move(parts), 0, 2);
  CHECK(b.posted(0) == 0);
  a->room(0, 6)[segment::block_bytes - 1] = std::byte{7};
  a->room(0, 7)[0] = std::byte{8};
  a->say(6, {1, 2});
  a->say(7, {3, 4});
  a->post(5);
  CHECK(b.posted(0) == 5);
  CHECK(b.posted(1) == 0);
  CHECK(b.room(0, 8)[segment::block_bytes - 1] == std::byte{7});
  CHECK(b.room(0, 5)[0] == std::byte{8});
  CHECK(b.said(0, 6) == segment::purpose{1, 2});
  CHECK(b.said(0, 7) == segment::purpose{3, 4});
  a.reset();
  CHECK(b.posted(0) == 5);  // memory does not vanish with who made it
}

TEST_CASE("a bell rings for what one waits for, and for nothing else") {
  auto parts = segment::make(3);
  REQUIRE(parts.size() == 4);
  segment a(copy(parts), 0, 3), b(copy(parts), 1, 3), c(std::move(parts), 2, 3);
  c.post(2);
  c.rest(segment::whom::all, 2);
  b.post(9);
  a.post(1);
  CHECK_FALSE(c.all_posted(2));
  CHECK_FALSE(rung(c));
  a.post(2);
  CHECK(c.all_posted(2));
  CHECK(rung(c));
  c.rise();
  CHECK_FALSE(rung(c));
  a.post(3);  // it does not wait any more
  CHECK_FALSE(rung(c));
  c.rest(segment::whom::any, 10);
  a.post(9);
  CHECK_FALSE(rung(c));
  b.post(10);
  CHECK(rung(c));
  c.rise();

  CHECK(a.given_up() == -1);
  b.give_up(0);
  c.give_up(1);
  CHECK(a.given_up() == 0);
  CHECK(c.given_up() == 0);
  CHECK(rung(c));
}

TEST_CASE("sleepers and those who post never miss each other") {
  auto parts = segment::make(2);
  REQUIRE(parts.size() == 3);
  segment a(copy(parts), 0, 2), b(std::move(parts), 1, 2);
  constexpr std::uint64_t turns = 3000;
  auto const play = [](segment& mine, int other) {
    for (std::uint64_t turn = 1; turn <= turns; ++turn) {
      mine.post(turn);
      while (mine.posted(other) < turn) {
        mine.rest(turn % 2 ? segment::whom::any : segment::whom::all, turn);
        pollfd bell{mine.bell(), POLLIN, 0};
        if (mine.posted(other) < turn) ::poll(&bell, 1, -1);
        mine.rise();
      }
    }
  };
  std::thread there([&] { play(b, 0); });
  play(a, 1);
  there.join();
  CHECK(a.posted(1) == turns);
}

TEST_CASE("descriptors are passed over a socket; others than those of a segment are refused") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  descriptor const here(pair[0]);
  auto there = std::make_unique<descriptor>(pair[1]);
  std::vector<descriptor> none, some;
  CHECK_FALSE(edl::collective::receive_descriptors(here.get(), some));
  CHECK(edl::collective::send_descriptors(there->get(), none));
  CHECK(edl::collective::receive_descriptors(here.get(), some));
  CHECK(some.empty());
  auto const parts = segment::make(4);
  CHECK(edl::collective::send_descriptors(there->get(), parts));
  CHECK(edl::collective::receive_descriptors(here.get(), some));
  CHECK(some.size() == 5);
  CHECK_NOTHROW(segment(copy(some), 3, 4));

  // Of fewer members; not sealed; nothing.
  CHECK_THROWS_AS(segment(copy(some), 2, 3), edl::error);
  CHECK_THROWS_AS(segment(copy(some), 4, 5), edl::error);
  auto loose = copy(some);
  loose[0] = descriptor(::memfd_create("loose", MFD_CLOEXEC));
  REQUIRE(::ftruncate(loose[0].get(), ::lseek(some[0].get(), 0, SEEK_END)) == 0);
  CHECK_THROWS_AS(segment(std::move(loose), 3, 4), edl::error);
  CHECK_THROWS_AS(segment({}, 0, 4), edl::error);

  there.reset();
  CHECK_THROWS_AS(edl::collective::receive_descriptors(here.get(), some), edl::error);
  CHECK_THROWS_AS(edl::collective::send_descriptors(here.get(), some), edl::error);
}

}  // namespace segment_test
