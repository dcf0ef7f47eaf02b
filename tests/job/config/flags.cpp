// SPDX-License-Identifier: Apache-2.0
#include "edl/job/config/flags.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "edl/core/error.hpp"

namespace flags_test {

TEST_CASE("a flag is there once, says what it is, and is read by someone") {
  std::set<std::string> names;
  for (edl::job_flag const& f : edl::job_flags()) {
    CAPTURE(f.flag.name);
    CHECK(names.insert(f.flag.name).second);
    for (std::string const& a : f.flag.aliases) CHECK(names.insert(a).second);
    CHECK_FALSE(f.flag.help.empty());
    CHECK_FALSE(f.flag.group.empty());
    CHECK_FALSE(f.read_by.empty());
    CHECK_FALSE(f.commands.empty());
  }
}

TEST_CASE("a default is a value that the flag accepts, and that a job has without it") {
  for (edl::job_flag const& f : edl::job_flags()) {
    if (f.flag.fallback.empty()) continue;
    CAPTURE(f.flag.name);
    CHECK(edl::cli::accept(f.flag, f.flag.fallback) == f.flag.fallback);
  }
}

TEST_CASE("a flag's value arrives in the job as its own type") {
  edl::parsed_flags a;
  auto const put = [&](std::string const& name, std::string const& value) {
    for (edl::job_flag const& f : edl::job_flags())
      if (f.flag.name == name) return f.put(a, edl::cli::accept(f.flag, value));
    FAIL("no flag " << name);
  };
  put("seed", "18446744073709551615");
  put("num_epochs", "-1");
  put("use_async", "yes");
  put("device", "CUDA");
  put("sync_version_tolerance", "3");
  put("distribution_strategy", "AllreduceStrategy");
  put("port", "65535");
  put("log_level", "warning");
  CHECK(a.job.seed == ~std::uint64_t{0});
  CHECK(a.job.data.num_epochs == -1);
  CHECK(a.job.training.use_async);
  CHECK(a.job.compute.device == edl::worker::device_kind::cuda);
  CHECK(a.job.training.sync_version_tolerance == 3);
  CHECK(a.strategy == edl::strategy::allreduce);
  CHECK(a.job.processes.port == 65535);
  CHECK(a.job.log.log_level == edl::severity::warning);
}

TEST_CASE("a number that the flag's type cannot hold is refused, and becomes no other") {
  auto const accepts = [](std::string const& name, std::string const& value) {
    for (edl::job_flag const& f : edl::job_flags()) try {
        if (f.flag.name == name) return edl::cli::accept(f.flag, value) == value;
      } catch (edl::usage_error const&) {
        return false;
      }
    FAIL("no flag " << name);
    return false;
  };
  CHECK_FALSE(accepts("num_epochs", "5000000000"));
  CHECK_FALSE(accepts("get_model_steps", "5000000000"));
  CHECK(accepts("evaluation_steps", "5000000000"));
  CHECK(accepts("clip_norm", "1e38"));
  CHECK_FALSE(accepts("clip_norm", "1e39"));
}

TEST_CASE("a command has its own flags, and cannot do without some of them") {
  auto const needed = [](edl::command c) {
    std::set<std::string> names;
    for (edl::cli::flag const& f : edl::flags_of(c, "mnist"))
      if (f.needed) names.insert(f.name);
    return names;
  };
  CHECK(needed(edl::command::train) == std::set<std::string>{"training_data"});
  CHECK(needed(edl::command::evaluate) ==
        std::set<std::string>{"validation_data", "checkpoint_dir_for_init"});
  CHECK(needed(edl::command::predict) == std::set<std::string>{"prediction_data", "checkpoint_dir_for_init"});
  for (edl::cli::flag const& f : edl::flags_of(edl::command::predict, "mnist")) {
    CHECK(f.name != "training_data");
    if (f.name == "job_name") CHECK(f.fallback == "mnist");
  }
}

// EDL_WRITE_DOCS=1 writes the tables anew.
TEST_CASE("docs/jobs.md has the flags as they are") {
  std::string const path = EDL_DOCS "/jobs.md", begin = "tests/test-config -->\n",
                    end = "<!-- end of the generated";
  std::ifstream in(path);
  std::string page{std::istreambuf_iterator<char>(in), {}};
  auto const from = page.find(begin), to = page.find(end);
  REQUIRE(from != page.npos);
  REQUIRE(to != page.npos);
  std::string const tables = edl::flags_as_markdown() + "\n";
  bool const same = page.substr(from + begin.size(), to - from - begin.size()) == tables;
  if (!same && std::getenv("EDL_WRITE_DOCS")) {
    page.replace(from + begin.size(), to - from - begin.size(), tables);
    std::ofstream(path) << page;
    return;
  }
  INFO("EDL_WRITE_DOCS=1 tests/test-config writes the tables anew");
  CHECK(same);
}

}  // namespace flags_test
