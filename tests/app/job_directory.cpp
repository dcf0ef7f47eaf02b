// SPDX-License-Identifier: Apache-2.0
#include "edl/app/job_directory.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/runtime_directory.hpp"

namespace job_directory_test {

namespace fs = std::filesystem;

TEST_CASE("a job's directory is its user's alone, and goes with the job") {
  runtime_directory const r;
  std::string path;
  {
    edl::app::job_directory const d;
    path = d.path();
    CHECK(path.starts_with(r.path + "/edl-run-"));
    struct stat s{};
    REQUIRE(::stat(path.c_str(), &s) == 0);
    CHECK((s.st_mode & 0777) == 0700);
    std::ofstream(path + "/journal.json") << "{}";
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE(
    "directories of killed jobs go when the next is made; those of living jobs and others' things stay") {
  runtime_directory const r;
  edl::app::job_directory const living;
  std::string const dead = r.path + "/edl-run-dead00", unlocked = r.path + "/edl-run-other0",
                    deep = r.path + "/edl-run-deep00", other = r.path + "/something";
  for (auto const& p : {dead, unlocked, deep, other}) {
    fs::create_directory(p);
    std::ofstream(p + "/file") << "x";
    fs::permissions(p, fs::perms::owner_all);  // as mkdtemp makes them
  }
  for (auto const& p : {dead, deep, other}) std::ofstream(p + "/lock") << "";
  fs::create_directory(deep + "/data");
  std::ofstream(deep + "/data/records") << "x";
  edl::app::job_directory const next;
  CHECK_FALSE(fs::exists(dead));
  CHECK(fs::exists(unlocked + "/file"));
  CHECK(fs::exists(other + "/file"));
  CHECK(fs::exists(deep + "/data/records"));
  CHECK(fs::exists(living.path()));
}

TEST_CASE("a base too long for a socket's path is not used") {
  runtime_directory const r;
  std::string const deep = r.path + "/" + std::string(100, 'd');
  fs::create_directory(deep);
  ::setenv("XDG_RUNTIME_DIR", deep.c_str(), 1);
  edl::app::job_directory const d;
  CHECK_FALSE(d.path().starts_with(deep));
  CHECK((d.path() + "/launcher").size() < 108);
}

TEST_CASE("a base that cannot stand in an address, or that others could empty, is not used") {
  runtime_directory const r;
  for (char const* const name : {"a b", "a,b", "a!b", "a\nb"}) {
    std::string const base = r.path + "/" + name;
    fs::create_directory(base);
    ::setenv("XDG_RUNTIME_DIR", base.c_str(), 1);
    CHECK_FALSE(edl::app::job_directory().path().starts_with(base));
  }
  ::setenv("XDG_RUNTIME_DIR", ".", 1);
  CHECK(edl::app::job_directory().path().starts_with("/"));
  std::string const open = r.path + "/open";
  fs::create_directory(open);
  ::setenv("XDG_RUNTIME_DIR", open.c_str(), 1);
  for (mode_t const mode : {0777, 0770}) {
    REQUIRE(::chmod(open.c_str(), mode) == 0);
    CHECK_FALSE(edl::app::job_directory().path().starts_with(open));
  }
  REQUIRE(::chmod(open.c_str(), 01777) == 0);
  CHECK(edl::app::job_directory().path().starts_with(open));
}

}  // namespace job_directory_test
