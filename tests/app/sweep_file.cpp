// SPDX-License-Identifier: Apache-2.0
#include "edl/app/sweep_file.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/bucket/unkind_store.hpp"
#include "edl/core/durable_file.hpp"
#include "scratch_directory.hpp"

namespace sweep_file_test {

using edl::app::sweep_file, edl::app::trial;
using test::request, test::says, test::thrown, test::unkind_store, test::wire;

namespace {

std::vector<trial> planned() {
  return {trial{.values = {{"rate", "0.1"}}}, trial{.values = {{"rate", "0.2"}}}};
}

}  // namespace

TEST_CASE("a list of trials is the same in a directory and in a bucket, and a lost reply changes nothing") {
  scratch const dir;
  int n = 0;
  unkind_store* self = nullptr;
  unkind_store store([&](request const& r, wire& w) {
    if (r.method != "PUT" || !r.target.ends_with("/sweep.json")) return false;
    int const i = n++ % 3;
    if (i == 0) return unkind_store::refuse(w, 503, "SlowDown"), true;
    return i == 1 && (self->serve_silently(r, w), true);
  });
  self = &store;
  for (std::string const& output : {dir / "s", std::string("s3://box/s")}) {
    CAPTURE(output);
    auto const options = [&](char const* identity) {
      return sweep_file::options{.output = output,
                                 .identity = identity,
                                 .job = "sweep",
                                 .cache = {.directory = dir / "cache", .store = store.options()}};
    };
    auto all = planned();
    {
      sweep_file file(options("this"));
      CHECK_FALSE(file.read(all, 10));
      for (std::size_t i = 0; i < 2; ++i) {
        all[i].steps = 10, all[i].value = double(i);
        file.write(all);
      }
    }
    {
      sweep_file file(options("this"));
      auto const before = file.read(planned(), 10);
      REQUIRE(before);
      CHECK((*before)[1].value == 1.0);
      CHECK(says(thrown([&] { file.read(planned(), 9); }), {"sweep.json"}));
      file.write(all);
    }
    sweep_file file(options("that"));
    CHECK(says(thrown([&] { file.read(planned(), 10); }),
               {"--output=" + output, "holds another sweep (this)"}));
  }
}

TEST_CASE("a sweep that has lost its bucket writes nothing more there") {
  scratch const dir;
  unkind_store store;
  auto const options = [&](char const* output) {
    return sweep_file::options{.output = output,
                               .identity = "this",
                               .job = "sweep",
                               .cache = {.directory = dir / "cache", .store = store.options()}};
  };
  auto const put = [&](char const* key, char const* text) {
    std::lock_guard const lock(store.mutex);
    store.objects[key] = text;
    store.sums.erase(key);
  };
  sweep_file lost(options("s3://box/a")), raced(options("s3://box/b"));
  lost.write(planned());
  std::string const before = store.objects.at("a/sweep.json");
  put("a/.edl-lock", R"({"job": "sweep", "host": "h", "process": 7, "owner": "another"})");
  CHECK(says(thrown([&] { lost.write({}); }),
             {"--output=s3://box/a is in use by job 'sweep' (process 7 on h"}));
  CHECK(lost.lost());
  CHECK(store.objects.at("a/sweep.json") == before);

  // Another has written just behind the last look at the lock.
  put("b/sweep.json", "another's");
  CHECK(says(thrown([&] { raced.write(planned()); }),
             {"s3://box/b/sweep.json was changed or removed by another process"}));
  CHECK(store.objects.at("b/sweep.json") == "another's");
}

}  // namespace sweep_file_test
