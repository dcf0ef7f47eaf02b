// SPDX-License-Identifier: Apache-2.0
#include "edl/job/app/machine_check.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "job/app/job.hpp"

namespace machine_check_test {

TEST_CASE("a machine with uncorrected errors of memory is told of, and one without is not") {
  job::scratch const dir;
  CHECK(edl::app::machine_fault(dir / "no", 1 << 16).empty());
  std::filesystem::create_directories(dir / "mc0");
  std::ofstream(dir / "mc0/ue_count") << "0\n";
  CHECK(edl::app::machine_fault(dir / "", 1 << 16).empty());
  std::ofstream(dir / "mc0/ue_count") << "2\n";
  CHECK(edl::app::machine_fault(dir / "", 1 << 16) ==
        "the system has counted 2 uncorrected errors of memory since its start (mc0)");
}

}  // namespace machine_check_test
