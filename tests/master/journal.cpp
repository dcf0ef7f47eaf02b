#include "edl/master/journal.hpp"

#include <doctest/doctest.h>

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
