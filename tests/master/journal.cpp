#include "edl/master/journal.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "edl/core/error.hpp"
#include "wire/scratch.hpp"

using namespace edl::master;

TEST_CASE("a journal is read by the next master of the same run, and by no other") {
  scratch const dir;
  std::string const path = dir.path + "/master.json";
  memory m{.generation = 7,
           .members = 3,
           .wanted_servers = 2,
           .evaluated = 50,
           .workers = {.next = 9, .lines = {{4, 1, false}, {8, 2, true}}},
           .servers = {.next = 2, .lines = {{0, 0, false}, {1, 0, false}}},
           .events = 12,
           .addresses = {"tcp:127.0.0.1:4000"}};
  journal mine(path, "run");
  CHECK_FALSE(mine.read());
  mine.write(m);
  CHECK(journal(path, "run").read() == m);
  CHECK_FALSE(journal(path, "another run").read());
  m.evaluated.reset();
  ++m.generation;
  mine.write(m);
  CHECK(journal(path, "run").read() == m);

  journal const none("", "run");
  CHECK_FALSE(none.read());
}

TEST_CASE("what is no journal is an error that names it") {
  scratch const dir;
  std::string const path = dir.path + "/master.json";
  for (char const* text : {"", "{", "[]", "{\"run\": \"run\", \"generation\": \"x\"}"}) {
    std::ofstream(path) << text;
    CHECK_THROWS_WITH_AS(journal(path, "run").read(), doctest::Contains(path.c_str()), edl::error);
  }
}

TEST_CASE("a journal that cannot be written is none, rather than an old one") {
  scratch const dir;
  std::string const path = dir.path + "/journals/master.json";
  std::filesystem::create_directories(dir.path + "/journals");
  journal j(path, "run");
  j.write({.generation = 3});
  std::filesystem::remove_all(dir.path + "/journals");
  std::ofstream(dir.path + "/journals") << "in the way";
  CHECK_THROWS_AS(j.write({.generation = 4}), edl::error);
  std::filesystem::remove(dir.path + "/journals");
  std::filesystem::create_directories(dir.path + "/journals");
  CHECK_FALSE(j.read());
  j.write({.generation = 4});
  CHECK(j.read()->generation == 4);
}
