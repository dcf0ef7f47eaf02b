// SPDX-License-Identifier: Apache-2.0
#include "edl/app/machine_check.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "app/job.hpp"

namespace machine_check_test {

using namespace edl::app;

TEST_CASE("a machine with uncorrected errors of memory is told of, and one without is not") {
  CHECK(machine_fault(1 << 16).empty());
  job::scratch const dir;
  CHECK(memory_errors(dir / "no").empty());
  std::filesystem::create_directories(dir / "mc0");
  std::ofstream(dir / "mc0/ue_count") << "0\n";
  CHECK(memory_errors(dir / "").empty());
  std::ofstream(dir / "mc0/ue_count") << "2\n";
  CHECK(memory_errors(dir / "") ==
        "the system has counted 2 uncorrected memory errors since its start (mc0)");
}

TEST_CASE("a machine with such errors is left where there are others, and told of where there are none") {
  job::scratch const dir;
  std::filesystem::create_directories(dir / "edac");
  std::string const edac = dir / "edac";
  int const file = ::open((dir / "log").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  edl::logger const log(edl::severity::info, "", file);
  check_machine(true, log, edac);
  std::filesystem::create_directories(edac + "/mc1");
  std::ofstream(edac + "/mc1/ue_count") << "1\n";
  CHECK_THROWS_WITH_AS(check_machine(true, log, edac),
                       "this machine is not to be trusted: the system has counted 1 uncorrected memory "
                       "errors since its start (mc1)",
                       untrusted_machine);
  CHECK(job::slurp(dir / "log").empty());
  check_machine(false, log, edac);
  CHECK(job::has(job::slurp(dir / "log"), "the worker takes part nevertheless"));
  ::close(file);
}

}  // namespace machine_check_test
