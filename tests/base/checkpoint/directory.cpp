// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/directory.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "base/checkpoint/example_checkpoint.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/input_file.hpp"

namespace directory_test {

using namespace edl::checkpoint;

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
  CHECK_FALSE(newest_valid(dir.path()));
  CHECK_FALSE(newest_valid(dir / "nowhere"));
  for (std::uint64_t version : {9, 100, 20}) state.write(dir.path(), version, 2);
  for (std::string const name :
       {"version-1000", "version-", "version-0100", "version-99999999999999999999", "version-5x", "x"})
    std::filesystem::create_directory(dir / name);
  spill(dir / "version-7777", "a file");
  CHECK(newest_valid(dir.path()) == dir / "version-100");
}

TEST_CASE("what is damaged is passed over") {
  scratch const dir;
  example_state const state;
  for (std::uint64_t version : {1, 2, 3, 4}) state.write(dir.path(), version, 2);
  std::string const lost = part_of(dir / "version-4", 1);
  std::filesystem::remove(lost);
  auto const file = part_of(dir / "version-3", 0);
  auto content = slurp(file);
  content.back() ^= 1;
  spill(file, content);
  CHECK(newest_valid(dir.path(), check::sizes) == dir / "version-3");
  CHECK(newest_valid(dir.path()) == dir / "version-2");
  CHECK(contains(complaint([&] { verify_checkpoint(dir / "version-3"); }), "is damaged"));
  CHECK(complaint([&] { verify_checkpoint(dir / "version-3", check::sizes); }).empty());
  CHECK(contains(complaint([&] { verify_checkpoint(dir / "version-4"); }), lost));
  spill(file, content + "more");
  CHECK(
      contains(complaint([&] { verify_checkpoint(dir / "version-3", check::sizes); }), "its manifest gives"));
  CHECK(contains(complaint([&] { verify_checkpoint(dir / "version-5"); }), "manifest.json"));
}

TEST_CASE("what is passed over is told in one line") {
  scratch const dir;
  example_state const state;
  CHECK(find_checkpoint(dir.path()).warning().empty());
  for (std::uint64_t version : {1, 2, 3, 4}) state.write(dir.path(), version, 1);
  std::filesystem::create_directory(dir / "version-9");  // an attempt was never complete
  CHECK(find_checkpoint(dir.path()).warning().empty());
  auto const damage = [&](int version) {
    auto const file = part_of(dir / "version-" + std::to_string(version), 0);
    std::filesystem::resize_file(file, 100);
    return file;
  };
  std::string const file = damage(4);
  checkpoint_search found = find_checkpoint(dir.path());
  CHECK(found.newest == dir / "version-3");
  REQUIRE(found.passed_over.size() == 1);
  CHECK(found.warning() == "checkpoint " + dir / "version-4 is passed over (" + file +
                               " has 100 bytes, but its manifest gives " +
                               std::to_string(read_manifest(dir / "version-4").files[0].bytes) + "); using " +
                               dir / "version-3 instead");
  damage(3);
  CHECK(contains(find_checkpoint(dir.path()).warning(), ", and so is " + dir / "version-3; "));
  damage(2);
  CHECK(contains(find_checkpoint(dir.path()).warning(),
                 ", and so are 2 older ones; using " + dir / "version-1 instead"));
  spill(dir / "version-1/manifest.json", "{");
  found = find_checkpoint(dir.path());
  CHECK_FALSE(found.newest);
  CHECK(found.passed_over.size() == 4);
  CHECK(contains(found.warning(), "no older one exists"));
}

TEST_CASE("storage that cannot be read is no damage") {
  scratch const dir;
  example_state const state;
  state.write(dir.path(), 1, 1);
  auto const newest = state.write(dir.path(), 2, 1);
  // A socket is there, and cannot be opened.
  auto const file = part_of(newest, 0);
  std::filesystem::remove(file);
  int const at = ::open(newest.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  sockaddr_un where{.sun_family = AF_UNIX, .sun_path = {}};
  std::string const link = "/proc/self/fd/" + std::to_string(at) + file.substr(file.rfind('/'));
  REQUIRE(link.size() < sizeof where.sun_path);
  link.copy(where.sun_path, link.size());
  int const socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::bind(socket, reinterpret_cast<sockaddr const*>(&where), sizeof where) == 0);
  CHECK_THROWS_AS(find_checkpoint(dir.path()), edl::storage_error);
  CHECK_THROWS_AS(newest_valid(dir.path()), edl::storage_error);
  checkpoint_search const found = find_checkpoint(dir.path(), check::checksums, unreadable::passed_over);
  CHECK(found.newest == dir / "version-1");
  CHECK(found.passed_over.size() == 1);
  CHECK_NOTHROW(prune(dir.path(), 1));
  CHECK(std::filesystem::exists(dir / "version-1/manifest.json"));
  ::close(socket);
  ::close(at);
}

TEST_CASE("what ended attempts left is removed, and nothing else") {
  scratch const dir;
  example_state const state;
  auto const whole = state.write(dir.path(), 1, 2);
  state.write(whole, 1, 0, 3);
  spill(whole + "/.manifest.json.tmp-0123456789abcdef", "half");
  spill(whole + "/notes.txt", "mine");
  std::filesystem::create_directory(dir / "version-2");
  state.write(dir / "version-2", 2, 0, 2);
  edl::durable_file const living(dir / "version-2/variables-1-of-2-0123456789abcdef.safetensors");
  auto const damaged = state.write(dir.path(), 3, 2);
  spill(damaged + "/manifest.json", "{");
  remove_litter(dir.path(), false);
  CHECK(entries(whole).size() == 5);
  CHECK(entries(dir / "version-2").size() == 2);
  remove_litter(dir.path(), true);
  CHECK(entries(whole).size() == 4);
  CHECK(state.is_in(whole));
  CHECK(entries(dir / "version-2").size() == 1);  // somebody is at it
  CHECK(entries(damaged).size() == 3);
  spill(dir / "version-9", "a file of somebody's");
  remove_litter(dir.path(), true);
  CHECK(std::filesystem::exists(dir / "version-9"));
  remove_litter(dir / "nowhere", true);
}

TEST_CASE("a manifest that its writer has not completed when another cleans can no longer appear") {
  scratch const dir;
  example_state const state;
  std::filesystem::create_directory(dir / "version-2");
  state.write(dir / "version-2", 2, 0, 1);
  auto const whole = state.write(dir.path(), 1, 2);
  edl::durable_file late(dir / "version-2/manifest.json"), other(whole + "/manifest.json");
  for (auto* each : {&late, &other}) each->write("{}");
  remove_litter(dir.path(), false);
  CHECK(entries(dir / "version-2").size() == 2);
  remove_litter(dir.path(), true);
  for (auto* each : {&late, &other}) CHECK(contains(complaint([&] { each->commit(); }), "cannot complete"));
  CHECK_FALSE(std::filesystem::exists(dir / "version-2"));
  CHECK(state.is_in(whole));
  CHECK_NOTHROW(verify_checkpoint(whole));
}

TEST_CASE("who must not write any more removes nothing") {
  scratch const dir;
  example_state const state;
  for (std::uint64_t version : {1, 2}) state.write(dir.path(), version, 1);
  CHECK(contains(complaint([&] { prune(dir.path(), 1, [] { throw edl::error("given up"); }); }), "given up"));
  CHECK(entries(dir.path()).size() == 2);
}

TEST_CASE("pruning keeps the newest valid ones") {
  scratch const dir;
  example_state const state;
  for (std::uint64_t version : {10, 20, 30, 40}) state.write(dir.path(), version, 1);
  std::filesystem::remove(dir / "version-30/manifest.json");  // came to nothing
  std::filesystem::create_directory(dir / "version-50");      // being written
  spill(dir / "notes.txt", "mine");
  prune(dir.path(), 0);
  CHECK(entries(dir.path()).size() == 6);
  prune(dir.path(), 2);
  CHECK(sorted_entries(dir.path()) ==
        std::vector<std::string>{"notes.txt", "version-20", "version-30", "version-40", "version-50"});
  prune(dir.path(), 1);
  CHECK(sorted_entries(dir.path()) == std::vector<std::string>{"notes.txt", "version-40", "version-50"});
  prune(dir.path(), 1);
  CHECK(newest_valid(dir.path()) == dir / "version-40");
  prune(dir / "nowhere", 1);
}

TEST_CASE("nothing valid, nothing removed") {
  scratch const dir;
  std::filesystem::create_directory(dir / "version-1");
  std::filesystem::create_directory(dir / "version-2");
  prune(dir.path(), 1);
  CHECK(entries(dir.path()).size() == 2);
}

TEST_CASE("checkpoints above a version are set aside, told of, and removed when others have passed them") {
  scratch const dir;
  example_state const state;
  for (std::uint64_t version : {5, 20, 100}) state.write(dir.path(), version, 1);
  CHECK(set_aside_newer(dir.path(), 20) ==
        "the checkpoint of version 100 is set aside, in " + dir.path() +
            "/set-aside: they may be wrong, and the job goes back to an older version");
  CHECK(set_aside_newer(dir.path(), 20).empty());
  CHECK(set_aside_newer(dir / "nowhere", 0).empty());
  CHECK(newest_valid(dir.path()) == dir / "version-20");
  CHECK_NOTHROW(verify_checkpoint(dir / "set-aside/version-100.epoch-0"));
  state.write(dir.path(), 100, 1);
  set_aside_newer(dir.path(), 20);
  CHECK_NOTHROW(verify_checkpoint(dir / "set-aside/version-100.epoch-0.2"));
  state.write(dir.path(), 99, 1);
  prune(dir.path(), 3);
  CHECK(entries(dir / "set-aside").size() == 2);
  state.write(dir.path(), 100, 1);
  prune(dir.path(), 0);
  CHECK(entries(dir / "set-aside").size() == 2);
  prune(dir.path(), 3);
  CHECK(entries(dir / "set-aside").size() == 2);  // of the same version: nothing has passed them
  state.write(dir.path(), 101, 1);
  prune(dir.path(), 0);
  CHECK(entries(dir / "set-aside").size() == 2);
  prune(dir.path(), 3);
  CHECK(entries(dir / "set-aside").empty());
}

TEST_CASE("the newest is of the newest epoch, then of the newest generation, then of the highest version") {
  using edl::in_epoch;
  scratch const dir;
  example_state const state;
  // Two halves of a partition: the older master has come farther.
  for (auto const& [version, generation] :
       {std::pair{100u, in_epoch(1, 4)}, std::pair{110u, in_epoch(2, 1)}, std::pair{280u, in_epoch(1, 6)},
        std::pair{285u, in_epoch(1, 6)}, std::pair{117u, in_epoch(2, 2)}, std::pair{120u, in_epoch(2, 1)},
        std::pair{900u, std::uint64_t{0}}})
    state.write_at({generation, version}, dir.path(), 1);
  CHECK(newest_epoch(dir.path()) == 2);
  for (bool const claimed : {false, true}) {
    if (claimed) edl::replace_file(dir / ".edl-epoch", "2\n");
    CHECK(newest_valid(dir.path()) == dir / "version-117");
    auto const all = valid_checkpoints(dir.path());
    REQUIRE(all.size() == 7);
    CHECK(all[1] == dir / "version-120");
    CHECK(all[2] == dir / "version-110");
    CHECK(all[3] == dir / "version-285");
    CHECK(all[6] == dir / "version-900");
  }
  // What cannot be read may be the newest, and a damaged one is passed over for the next of the order.
  spill(dir / "version-110/manifest.json", "{}");
  std::filesystem::remove(part_of(dir / "version-117", 0));
  auto const found = find_checkpoint(dir.path());
  CHECK(found.newest == dir / "version-120");
  CHECK(found.passed_over.size() == 2);
  std::string const told = set_aside_strays(dir.path());
  CHECK(told.starts_with("checkpoints of version 285, 280, 900 are set aside, in " + dir.path()));
  CHECK(told.ends_with("the job has left their line, and goes on from version 120"));
  CHECK(set_aside_strays(dir.path()).empty());
  edl::replace_file(dir / ".edl-epoch", "5\n");
  CHECK(newest_epoch(dir.path()) == 5);
  CHECK(newest_valid(dir.path()) == dir / "version-120");
  prune(dir.path(), 1);
  CHECK(newest_valid(dir.path()) == dir / "version-120");
  // That one, the two that may be newer, what is set aside, and the epoch.
  CHECK(entries(dir.path()).size() == 5);
}

}  // namespace directory_test
