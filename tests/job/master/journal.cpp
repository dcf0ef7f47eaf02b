// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/journal.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "base/wire/scratch.hpp"
#include "edl/core/error.hpp"

namespace journal_test {

using namespace edl::master;

TEST_CASE("a journal is read by the next master of the same run, and by no other") {
  scratch const dir;
  std::string const path = dir.path() + "/master.json";
  persisted_state m{.generation = 7,
                    .members = 3,
                    .wanted_servers = 2,
                    .evaluated = 50,
                    .workers = {.next = 9, .lines = {{4, 1, false}, {8, 2, true}}},
                    .servers = {.next = 2, .lines = {{0, 0, false}, {1, 0, false}}},
                    .events = 12,
                    .addresses = {"tcp:127.0.0.1:4000"},
                    .avoided = {"node-3"},
                    .finished = true,
                    .good = {.workers = {{4, 30}, {8, 50}}, .copies = 40},
                    .undo = 30,
                    .void_until = 6};
  journal mine(path, "run");
  CHECK_FALSE(mine.read());
  mine.write(m);
  CHECK(journal(path, "run").read() == m);
  CHECK_FALSE(journal(path, "another run").read());
  m.evaluated.reset();
  ++m.generation;
  mine.write(m);
  CHECK(journal(path, "run").read() == m);

  journal none("", "run");
  CHECK_FALSE(none.read());
}

TEST_CASE("what is no journal, with none before it, is as a lost one: it is told, and kept") {
  scratch const dir;
  std::string const path = dir.path() + "/master.json";
  for (char const* text : {"", "{", "[]", "{\"run\": \"run\", \"generation\": \"x\"}"}) {
    std::ofstream(path) << text;
    journal damaged(path, "run");
    CHECK_FALSE(damaged.read());
    CHECK(damaged.trouble() ==
          path + " is damaged at byte 0: it is not a journal of a master; the file is kept as " + path +
              ".damaged");
    std::string kept;
    std::getline(std::ifstream(path + ".damaged"), kept, '\0');
    CHECK(kept == text);
    damaged.write({.generation = 3});
    CHECK_FALSE(std::filesystem::exists(path + ".before"));
    CHECK(journal(path, "run").read()->generation == 3);
    damaged.remove();
  }
}

TEST_CASE("every flipped bit of a journal is found, and the journal before takes its place") {
  scratch const dir;
  std::string const path = dir.path() + "/master.json";
  persisted_state m{.generation = 7, .members = 3, .wanted_servers = 2, .addresses = {"tcp:127.0.0.1:4000"}};
  journal mine(path, "run");
  mine.write(m);
  ++m.generation;
  mine.write(m);
  std::string whole;
  std::getline(std::ifstream(path, std::ios::binary), whole, '\0');
  REQUIRE(whole.size() > 50);
  CHECK(journal::addresses(path) == m.addresses);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = char(damaged[i] ^ (1 << (i % 8)));
    std::ofstream(path, std::ios::binary) << damaged;
    journal after(path, "run");
    auto const found = after.read();
    REQUIRE(found);
    CHECK(found->generation == 7);
    CHECK(after.trouble().find(path + " is damaged") == 0);
    CHECK_THROWS_AS(journal::addresses(path), edl::error);
  }
  for (std::size_t const size : {std::size_t(0), std::size_t(5), whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    CHECK(journal(path, "run").read()->generation == 7);
  }
  // A crash between two names.
  std::filesystem::remove(path);
  journal after(path, "run");
  CHECK(after.read()->generation == 7);
  CHECK(after.trouble() == path + " is missing");
  CHECK_FALSE(journal(path, "another run").read());
  // Both.
  std::ofstream(path) << "x";
  std::ofstream(path + ".before") << "y";
  CHECK_FALSE(after.read());
  CHECK(after.trouble().find(path + ".before is damaged") != std::string::npos);
  after.remove();
  CHECK_FALSE(after.read());
}

TEST_CASE("a journal that cannot be written leaves the one that was written last") {
  scratch const dir;
  std::string const path = dir.path() + "/master.json";
  journal j(path, "run");
  j.write({.generation = 3});
  CHECK(with_limited_files(1, false, [&] {
          try {
            j.write({.generation = 4});
          } catch (edl::error const&) {
            return 0;
          }
          return 1;
        }) == 0);
  CHECK(journal(path, "run").read()->generation == 3);
  j.write({.generation = 4});
  CHECK(journal(path, "run").read()->generation == 4);
}

}  // namespace journal_test
