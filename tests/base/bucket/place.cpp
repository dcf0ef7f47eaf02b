// SPDX-License-Identifier: Apache-2.0
#include "edl/base/bucket/place.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "base/bucket/unkind_store.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/input_file.hpp"
#include "scratch_directory.hpp"

namespace place_test {

using edl::bucket::place;
using test::request, test::says, test::thrown, test::unkind_store, test::wire;

namespace {

edl::bucket::cache_options options(scratch const& dir, unkind_store const& of) {
  auto o = of.options();
  o.part = 1000;
  return {.directory = dir / "cache", .store = o};
}

}  // namespace

TEST_CASE("a directory and a bucket keep the same files") {
  scratch const dir;
  unkind_store double_;
  double_.objects = {{"other/x", "x"}, {"p/sub/y", "y"}};
  for (std::string const& path : {dir / "p", std::string("s3://box/p"), std::string("s3://box/p/")}) {
    CAPTURE(path);
    place const at(path, options(dir, double_));
    std::vector<std::string> const before = at.names();
    CHECK(before == (path[0] == 's' ? std::vector<std::string>{"sub"} : std::vector<std::string>{}));
    at.check();
    std::string const large(2345, 'x');
    for (auto const& [name, text] : {std::pair{"a", std::string("one")}, {"b.csv", large}, {"a", "two"}})
      at.write(name, [&](std::string const& file) {
        CHECK(std::filesystem::path(file).filename() == name);
        edl::replace_file(file, text);
      });
    CHECK(thrown([&] { at.write("c", [](std::string const&) { throw edl::error("full"); }); }) == "full");
    auto names = at.names();
    std::erase(names, "sub");
    std::ranges::sort(names);
    CHECK(names == std::vector<std::string>{"a", "b.csv"});
    if (path[0] == 's') {
      CHECK(double_.objects.at("p/a") == "two");
      CHECK(double_.objects.at("p/b.csv") == large);
      CHECK(double_.uploads.empty());
      CHECK(std::filesystem::is_empty(dir / "cache"));
    } else {
      CHECK(edl::input_file(path + "/b.csv").size() == large.size());
    }
    for (char const* name : {"a", "b.csv", "a"}) at.remove(name);
    CHECK(at.names() == before);
  }
  CHECK(double_.objects == std::map<std::string, std::string>{{"other/x", "x"}, {"p/sub/y", "y"}});
}

TEST_CASE("a directory of files becomes objects, all of them or none") {
  scratch const dir;
  bool full = false;
  unkind_store double_([&](request const& r, wire& w) {
    return full && r.method == "PUT" && r.target.starts_with("/box/p/b") &&
           (unkind_store::refuse(w, 403, "QuotaExceeded"), true);
  });
  auto const write = [](std::string const& to) {
    edl::durable_directory made(to);
    for (char const* name : {"a", "b", "c"}) edl::replace_file(made.temporary() + "/" + name, name);
    made.commit();
  };
  for (std::string const& path : {dir / "p", std::string("s3://box/p/")}) {
    place const at(path, options(dir, double_));
    CHECK(thrown([&] { at.fill([](std::string const&) { throw edl::error("full"); }); }) == "full");
    CHECK(at.names().empty());
    at.fill(write);
    CHECK(at.names().size() == 3);
    CHECK(at.read("b", 1)->content == "b");
  }
  place const at("s3://box/p", options(dir, double_));
  CHECK(says(thrown([&] { at.fill(write); }), {"s3://box/p: objects are there already"}));
  CHECK(at.names().size() == 3);
  at.remove_all();
  full = true;
  CHECK(says(thrown([&] { at.fill(write); }), {"s3://box/p/b", "QuotaExceeded"}));
  CHECK(double_.objects.empty());
  CHECK(double_.uploads.empty());
  CHECK(std::filesystem::is_empty(dir / "cache"));
}

TEST_CASE("a place without a bucket's name is an error, and no directory") {
  scratch const dir;
  unkind_store double_;
  for (char const* path : {"s3://", "s3:///", "s3:////", "s3:///c"})
    CHECK(says(thrown([&] { place(path, options(dir, double_)); }),
               {"s3://: this is not the name of a bucket"}));
  CHECK(double_.requests() == 0);
}

TEST_CASE("uploads that cannot be removed are tried once") {
  scratch const dir;
  unkind_store double_([](request const& r, wire& w) {
    return r.method == "DELETE" && (unkind_store::refuse(w, 403, "AccessDenied"), true);
  });
  double_.page = 2;
  std::string const key = "p/version-1/" + std::string(40'000, 'k');
  for (char const* id : {"a", "b", "c"}) double_.uploads[id] = {key, "mark"};
  place const at("s3://box/p", options(dir, double_));
  at.abandon_uploads("version-");
  CHECK(double_.requests() == 4);
  CHECK(double_.uploads.size() == 3);
}

TEST_CASE("a place that cannot be written is told before anything is written") {
  scratch const dir;
  unkind_store double_([](request const& r, wire& w) {
    return r.method != "GET" && (unkind_store::refuse(w, 403, "AccessDenied"), true);
  });
  CHECK(says(thrown([&] { place("s3://box/p", options(dir, double_)).check(); }),
             {"s3://box/p/", "403 AccessDenied", "needs s3:PutObject"}));
  CHECK(double_.objects.empty());
  unkind_store kind;
  edl::replace_file(dir / "file", "");
  auto o = options(dir, kind);
  o.directory = dir / "file";
  CHECK(says(thrown([&] { place("s3://box/p", o).check(); }), {dir / "file", "--data_cache"}));
  CHECK(kind.requests() == 0);
}

}  // namespace place_test
