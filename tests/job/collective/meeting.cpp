// SPDX-License-Identifier: Apache-2.0
#include "edl/job/collective/meeting.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <thread>

#include "edl/base/net/listener.hpp"

namespace meeting_test {

namespace {

using edl::collective::broken;
using edl::collective::meeting;
using edl::collective::participant;
using namespace std::chrono_literals;

struct process {
  edl::net::node node{{.job = "j", .secret = edl::net::token("a secret of some length")}};
  meeting here{node};
  edl::net::listener listener{node,
                              {edl::net::parse_address("tcp:127.0.0.1:0")},
                              [](edl::net::request&) -> asio::awaitable<void> { co_return; },
                              edl::net::listener_options{.streams = here.handler()}};
};

std::vector<participant> all_of(std::vector<std::unique_ptr<process>> const& of) {
  std::vector<participant> all;
  for (std::size_t i = 0; i < of.size(); ++i)
    all.push_back({"member-" + std::to_string(i), of[i]->listener.addresses()});
  return all;
}

std::vector<std::unique_ptr<process>> processes(int n) {
  std::vector<std::unique_ptr<process>> out;
  for (int i = 0; i < n; ++i) out.push_back(std::make_unique<process>());
  return out;
}

}  // namespace

TEST_CASE("processes form groups over the net, one after the other, and sum") {
  auto const members = processes(5);
  auto const all = all_of(members);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int r = 0; r < 5; ++r)
    threads.emplace_back([&, r] {
      for (std::uint64_t number = 1; number <= 3; ++number) {
        auto const g = members[std::size_t(r)]->here.form(number, r, all, 10s);
        std::vector<float> values(20'000, float(r));
        g->all_reduce(values);
        right += values[0] == 10 && values[19'999] == 10;
        g->barrier();  // nobody leaves while others read
      }
    });
  for (auto& t : threads) t.join();
  CHECK(right == 15);
}

TEST_CASE("who waits for a member that does not come is told who; an interruption ends the waiting") {
  auto const members = processes(2);
  auto const all = all_of(members);
  CHECK_THROWS_WITH_AS(members[1]->here.form(1, 1, all, 20ms), "member-0 did not join group 1 within 20 ms",
                       broken);
  std::promise<void> asked;  // the third member for its link: the second one is forming the group
  edl::net::listener third{
      members[0]->node,
      {edl::net::parse_address("tcp:127.0.0.1:0")},
      [](edl::net::request&) -> asio::awaitable<void> { co_return; },
      edl::net::listener_options{.streams = [&](edl::net::byte_stream, std::string const&,
                                                std::string const&) { asked.set_value(); }}};
  auto three = all;
  three.push_back({"member-2", third.addresses()});
  std::thread later([&] {
    asked.get_future().wait();
    members[1]->here.interrupt(2);
  });
  CHECK_THROWS_WITH_AS(members[1]->here.form(2, 1, three, 60s), "group 2 is given up", broken);
  later.join();
  CHECK_THROWS_AS(members[1]->here.form(2, 1, all, 60s), broken);
  auto gone = all;
  gone[1].addresses = {edl::net::parse_address("tcp:127.0.0.1:1")};
  CHECK_THROWS_AS(members[0]->here.form(3, 0, gone, 5s), broken);
}

TEST_CASE("what is opened for nothing that is known here is closed, and does no harm") {
  auto const members = processes(2);
  auto const all = all_of(members);
  for (char const* what : {"group/", "group/x/1", "group/7", "group/7/", "group/7/-1", "group/7/1x", "tea"}) {
    std::atomic<bool> done{false};
    members[0]->node.spawn([&]() -> asio::awaitable<void> {
      auto const d = co_await edl::net::open_stream(members[0]->node, all[1].addresses, "m", what, 5s);
      done = bool(d);
    });
    while (!done) std::this_thread::sleep_for(1ms);
  }
  std::thread other([&] { members[1]->here.form(8, 1, all, 10s)->barrier(); });
  members[0]->here.form(8, 0, all, 10s)->barrier();
  other.join();
}

}  // namespace meeting_test
