#include "edl/wire/checkpoint_directory.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "wire/example_checkpoint.hpp"

using namespace edl::wire;

namespace {

std::vector<std::string> sorted_entries(std::string const& directory) {
  auto names = entries(directory);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("the newest valid version, by number") {
  scratch const dir;
  example_state const state;
  CHECK_FALSE(newest_valid(dir.path));
  CHECK_FALSE(newest_valid(dir / "nowhere"));
  for (std::uint64_t version : {9, 100, 20}) state.write(dir.path, version, 2);
  for (std::string const name :
       {"version-1000", "version-", "version-0100", "version-99999999999999999999", "version-5x", "x"})
    std::filesystem::create_directory(dir / name);
  spill(dir / "version-7777", "a file");
  CHECK(newest_valid(dir.path) == dir / "version-100");
}

TEST_CASE("what is damaged is passed over") {
  scratch const dir;
  example_state const state;
  for (std::uint64_t version : {1, 2, 3, 4}) state.write(dir.path, version, 2);
  std::filesystem::remove(dir / "version-4/variables-1-of-2.safetensors");
  auto const file = dir / "version-3/variables-0-of-2.safetensors";
  auto content = slurp(file);
  content.back() ^= 1;
  spill(file, content);
  CHECK(newest_valid(dir.path, check::sizes) == dir / "version-3");
  CHECK(newest_valid(dir.path) == dir / "version-2");
  CHECK(contains(complaint([&] { verify_checkpoint(dir / "version-3"); }), "is damaged"));
  CHECK(complaint([&] { verify_checkpoint(dir / "version-3", check::sizes); }).empty());
  CHECK(contains(complaint([&] { verify_checkpoint(dir / "version-4"); }), "variables-1-of-2"));
  CHECK(contains(complaint([&] { verify_checkpoint(dir / "version-5"); }), "manifest.json"));
}

TEST_CASE("pruning keeps the newest valid ones") {
  scratch const dir;
  example_state const state;
  for (std::uint64_t version : {10, 20, 30, 40}) state.write(dir.path, version, 1);
  std::filesystem::remove(dir / "version-30/manifest.json");  // came to nothing
  std::filesystem::create_directory(dir / "version-50");      // being written
  spill(dir / "notes.txt", "mine");
  prune(dir.path, 0);
  CHECK(entries(dir.path).size() == 6);
  prune(dir.path, 2);
  CHECK(sorted_entries(dir.path) ==
        std::vector<std::string>{"notes.txt", "version-20", "version-30", "version-40", "version-50"});
  prune(dir.path, 1);
  CHECK(sorted_entries(dir.path) == std::vector<std::string>{"notes.txt", "version-40", "version-50"});
  prune(dir.path, 1);
  CHECK(newest_valid(dir.path) == dir / "version-40");
  prune(dir / "nowhere", 1);
}

TEST_CASE("nothing valid, nothing removed") {
  scratch const dir;
  std::filesystem::create_directory(dir / "version-1");
  std::filesystem::create_directory(dir / "version-2");
  prune(dir.path, 1);
  CHECK(entries(dir.path).size() == 2);
}
