// SPDX-License-Identifier: Apache-2.0
#include "edl/base/net/disk.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <asio/co_spawn.hpp>
#include <asio/use_future.hpp>
#include <latch>

#include "base/net/peers.hpp"
#include "base/wire/scratch.hpp"
#include "edl/core/error.hpp"

namespace disk_test {

using edl::net::disk;

namespace {

struct logged_node {
  static edl::net::node_options options(int fd) {
    auto o = peers::options();
    o.log = edl::logger(edl::severity::info, "", fd);
    return o;
  }
  ~logged_node() {
    node.stop();
    ::close(fd);
  }
  std::string said() const { return slurp("/proc/self/fd/" + std::to_string(fd)); }
  auto begin(disk& d, std::string const& file, std::function<void()> const& work) {
    return asio::co_spawn(node.executor(), d.run(file, work), asio::use_future);
  }

  int fd = ::memfd_create("log", MFD_CLOEXEC);
  edl::net::node node{options(fd)};
};

}  // namespace

TEST_CASE("work that waits for a disk keeps the node's thread free, and comes in order") {
  logged_node n;
  disk d(n.node);
  std::latch asked(1);
  std::vector<int> done;
  auto first = n.begin(d, "a file", [&] {
    asked.wait();
    done.push_back(n.node.on_thread() ? -1 : 1);
  });
  auto second = n.begin(d, "another", [&] { done.push_back(2); });
  n.node.post([&] { asked.count_down(); });  // would not come if that thread waited
  first.get();
  second.get();
  CHECK(done == std::vector{1, 2});
  CHECK(n.said().empty());
}

TEST_CASE("what the work throws is thrown to whoever waits for it") {
  logged_node n;
  disk d(n.node);
  CHECK_THROWS_WITH_AS(n.begin(d, "a file", [] { throw edl::error("no room"); }).get(), "no room",
                       edl::error);
}

TEST_CASE("a disk that is slow is told once with the file and the seconds, and that it is over") {
  logged_node n;
  disk d(n.node, std::chrono::milliseconds(0));
  n.begin(d, "/data/journal.json", [&] {
     while (n.said().empty()) std::this_thread::yield();
   }).get();
  CHECK(n.said().find("the disk is slow: /data/journal.json has taken 0 s so far\n") != std::string::npos);
  CHECK(n.said().find("the disk took 0 s for /data/journal.json\n") != std::string::npos);
  n.begin(d, "", [] {}).get();
  CHECK(n.said().find("the disk took") == n.said().rfind("the disk took"));
}

}  // namespace disk_test
