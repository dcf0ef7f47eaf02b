// SPDX-License-Identifier: Apache-2.0
#include "edl/core/control_group.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

#include "core/group_files.hpp"

namespace control_group_test {

namespace {

struct machine : group_folder {
  edl::group_files files() const { return {root / "cgroup", root / "groups", root / "vmstat"}; }
};

}  // namespace

TEST_CASE("a process's group comes before those that contain it") {
  machine const m;
  CHECK(edl::control_groups("memory", m.files()).empty());
  m.write("cgroup", "7:memory:/a/b\n4:cpu,cpuacct:/c\nnonsense\n0::/d\n");
  auto const g = m.root / "groups";
  CHECK(edl::control_groups("memory", m.files()) ==
        std::vector{g / "memory/a/b", g / "memory/a", g / "memory/", g / "d", g / ""});
  CHECK(edl::control_groups("cpuacct", m.files()).front() == g / "cpu,cpuacct/c");
}

TEST_CASE("kills for memory are those of the group, or of the machine") {
  machine const m;
  CHECK(edl::memory_kills(m.files()) == 0);
  m.write("vmstat", "nr_free_pages 70000\noom_kill 9\nswap_ra 1\n");
  CHECK(edl::memory_kills(m.files()) == 9);
  m.write("cgroup", "7:memory:/a\n");
  m.write("groups/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  CHECK(edl::memory_kills(m.files()) == 5);  // a container's root
  m.write("groups/memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  CHECK(edl::memory_kills(m.files()) == 2);
  m.write("cgroup", "0::/a\n");
  m.write("groups/a/memory.events", "low 0\nhigh 0\nmax 17\noom 4\noom_kill 3\noom_group_kill 0\n");
  CHECK(edl::memory_kills(m.files()) == 3);
}

}  // namespace control_group_test
