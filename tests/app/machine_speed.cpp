// SPDX-License-Identifier: Apache-2.0
#include "edl/app/machine_speed.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>

#include "base/net/peers.hpp"
#include "base/wire/scratch.hpp"
#include "edl/base/wire/method.hpp"

namespace machine_speed_test {

using namespace edl::app;
using namespace peers;

TEST_CASE("a disk has a speed where it can be written to, and no file stays") {
  scratch const dir;
  CHECK(disk_speed(dir.path(), 1 << 16) > 0);
  CHECK(std::filesystem::is_empty(dir.path()));
  CHECK(disk_speed(dir.path() + "/no", 1 << 16) == 0);
  CHECK(disk_speed("") == 0);
}

TEST_CASE("what is in memory is no disk, and what was not measured is said to be so") {
  for (std::string const memory : {"/dev/shm", "/sys/fs/cgroup"})
    if (std::filesystem::exists(memory) && on_disk({memory}).empty())
      CHECK(on_disk({memory, "/proc"}) == "/proc");
  CHECK(on_disk({"", "/no/such", "/proc"}) == "/proc");
  CHECK(on_disk({"/no/such"}).empty());
  CHECK(speeds_in_words(9e7, "/tmp", 1.2e8) ==
        "this machine writes 90 MB/s to /tmp, and sends 120 MB/s to the master");
  CHECK(speeds_in_words(0, "/tmp", 0) ==
        "this machine could not write to /tmp, so its disk was not measured, and the way to the master was "
        "not measured: it takes no probe");
  CHECK(speeds_in_words(0, "", 1e6) ==
        "this machine has no directory on a disk, so its disk was not measured, and sends 1 MB/s to the "
        "master");
}

TEST_CASE("the way to the master has a speed where it takes what is sent, and none where it does not") {
  edl::net::node there(options()), here(options());
  std::atomic<std::uint64_t> got{0};
  std::atomic<bool> takes{true};
  edl::net::listener master(there, {any_port()}, [&](edl::net::request& r) -> asio::awaitable<void> {
    if (!takes) throw edl::net::call_error(status::unknown_method, "no");
    CHECK(r.method() == edl::wire::method::probe);
    std::vector<std::byte> into(r.payload_size());
    co_await r.read(into);
    got += into.size();
    co_await r.reply(std::string_view());
  });
  edl::net::channel to(here, master.addresses(), "the master");
  CHECK(network_speed(to) > 0);
  CHECK(got == 3 * edl::wire::most_probe_bytes);
  CHECK(may_measure(to));
  takes = false;
  CHECK(network_speed(to) == 0);
  CHECK_FALSE(may_measure(to));
}

}  // namespace machine_speed_test
