// SPDX-License-Identifier: Apache-2.0
#include "edl/core/cores.hpp"

#include <doctest/doctest.h>
#include <sched.h>
#include <stdlib.h>

#include <fstream>
#include <string>
#include <thread>

#include "core/group_files.hpp"

namespace cores_test {

namespace {

struct machine : group_folder {
  int cores(int of) const { return edl::granted_cores(of, root / "cgroup", root / "groups"); }
};

}  // namespace

TEST_CASE("a control group's quota limits the cores, rounded down, never below one") {
  machine m;
  m.write("cgroup", "0::/kubepods/pod1/worker\n");
  CHECK(m.cores(8) == 8);  // nothing to read
  struct {
    char const* max;
    int cores;
  } const all[] = {{"max 100000", 8},    {"40000 100000", 1}, {"100000 100000", 1}, {"250000 100000", 2},
                   {"900000 100000", 8}, {"nonsense", 8},     {"100000 0", 8},      {"", 8}};
  for (auto const& [max, cores] : all) {
    m.write("groups/kubepods/pod1/worker/cpu.max", max);
    CAPTURE(max);
    CHECK(m.cores(8) == cores);
  }
}

TEST_CASE("the groups above limit as well") {
  machine m;
  m.write("cgroup", "0::/kubepods/pod1/worker\n");
  m.write("groups/kubepods/pod1/worker/cpu.max", "400000 100000");
  m.write("groups/kubepods/cpu.max", "300000 100000");
  CHECK(m.cores(8) == 3);
  m.write("groups/cpu.max", "200000 100000");  // the container's own root
  CHECK(m.cores(8) == 2);
}

TEST_CASE("the older hierarchy is understood") {
  machine m;
  m.write("cgroup", "7:memory:/a\n4:cpu,cpuacct:/a\n1:name=systemd:/\n");
  m.write("groups/cpu,cpuacct/a/cpu.cfs_quota_us", "-1");
  m.write("groups/cpu,cpuacct/a/cpu.cfs_period_us", "100000");
  CHECK(m.cores(4) == 4);
  m.write("groups/cpu,cpuacct/a/cpu.cfs_quota_us", "150000");
  CHECK(m.cores(4) == 1);
  m.write("groups/cpu,cpuacct/a/cpu.cfs_quota_us", "350000");
  CHECK(m.cores(4) == 3);
}

TEST_CASE("this process has a core") { CHECK(edl::granted_cores() >= 1); }

TEST_CASE("processors are a process's own where it has just enough of more") {
  std::thread([] {  // a mask of one thread, which goes with it
    cpu_set_t all;
    REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
    int const cores = CPU_COUNT(&all);
    CHECK(edl::own_processors(cores + 1).empty());
    if (cores < 2) return;
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    edl::pin_to(first);
    CHECK(edl::own_processors(1) == std::vector<int>{first});
    CHECK(edl::own_processors(2).empty());
    CHECK(::sched_getcpu() == first);
  })
      .join();
}

}  // namespace cores_test
