// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/directory.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"

namespace directory_test {

using namespace edl::data::detail;
using strings = std::vector<std::string>;

TEST_CASE("files and folders are listed by name, hidden ones left out") {
  support::scratch const dir;
  for (char const* name : {"b", "a", ".c", "sub/x", "Z"}) support::write(dir / name, "");
  auto const all = list_directory(dir.path());
  CHECK(all.files == strings{"Z", "a", "b"});
  CHECK(all.folders == strings{"sub"});
  CHECK(support::has(support::failure([&] { list_directory(dir / "none"); }), "none: cannot be listed"));
}

TEST_CASE("patterns match in byte order, or nothing") {
  support::scratch const dir;
  for (char const* name : {"part-10.csv", "part-2.csv", "part-1.csv", "x"}) support::write(dir / name, "");
  CHECK(matching_paths(dir / "part-*.csv") ==
        strings{dir / "part-1.csv", dir / "part-10.csv", dir / "part-2.csv"});
  CHECK(matching_paths(dir / "part-[2-9].csv") == strings{dir / "part-2.csv"});
  CHECK(matching_paths(dir / "y*").empty());
  CHECK(is_pattern("a?b"));
  CHECK_FALSE(is_pattern("a,b"));
}

TEST_CASE("some names say that they are no data") {
  for (char const* name :
       {"README", "README.md", "LICENSE", "_SUCCESS", "a.txt", "A.TXT", "x.crc", "Thumbs.db", "desktop.ini"})
    CHECK(clearly_no_data(name));
  for (char const* name : {"data-00000", "a.csv", "x.jsonl"}) CHECK_FALSE(clearly_no_data(name));
}

}  // namespace directory_test
