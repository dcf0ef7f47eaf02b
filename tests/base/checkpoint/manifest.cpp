// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/manifest.hpp"

#include <doctest/doctest.h>

#include "base/wire/scratch.hpp"

namespace manifest_test {

using namespace edl::checkpoint;

namespace {

manifest some_manifest() {
  manifest m{.job = "mnist \"1\"",
             .version = 50,
             .layout = 0xFEDCBA9876543210u,
             .minibatch_size = 64,
             .records_per_task = 512,
             .seed = ~0ull,
             .shuffle = false,
             .epochs = 2,
             .shards = {{"train/a.rec", 60000, 0xFEDCBA9876543210u}, {"train/b.rec", 10}},
             .files = {{"variables-0-of-2.safetensors", 4096, 0xDEADBEEF, 50, {}},
                       {"variables-1-of-2.safetensors", 2048, 7, 50, {}}}};
  m.files[0].ledger.set_closed(0, 0, 9);
  m.files[0].ledger.set_open({0, 9}, 3);
  m.files[1].ledger.set_closed(0, 0, 10);
  return m;
}

bool same(manifest const& a, manifest const& b) {
  auto const file = [](manifest::file const& x, manifest::file const& y) {
    return x.name == y.name && x.bytes == y.bytes && x.crc32 == y.crc32 && x.version == y.version &&
           x.ledger == y.ledger;
  };
  auto const shard = [](manifest::shard const& x, manifest::shard const& y) {
    return x.name == y.name && x.records == y.records && x.digest == y.digest;
  };
  return a.job == b.job && a.version == b.version && a.layout == b.layout &&
         a.minibatch_size == b.minibatch_size && a.records_per_task == b.records_per_task &&
         a.seed == b.seed && a.shuffle == b.shuffle && a.epochs == b.epochs &&
         std::equal(a.shards.begin(), a.shards.end(), b.shards.begin(), b.shards.end(), shard) &&
         std::equal(a.files.begin(), a.files.end(), b.files.begin(), b.files.end(), file);
}

}  // namespace

TEST_CASE("a manifest survives its text") {
  auto const m = some_manifest();
  CHECK(same(manifest_from_json(to_json(m), "m"), m));
  CHECK(manifest_from_json(to_json(m), "m").at() == m.at());
  scratch const dir;
  spill(dir / "manifest.json", to_json(m));
  CHECK(same(read_manifest(dir.path()), m));
  auto old = m;  // as a version of before wrote it
  old.shuffle.reset();
  CHECK_FALSE(manifest_from_json(to_json(old), "m").shuffle.has_value());
}

TEST_CASE("a job has applied what all its servers have") {
  auto const applied = some_manifest().applied();
  edl::ledger expected;
  expected.set_closed(0, 0, 9);
  expected.set_open({0, 9}, 3);
  CHECK(applied == expected);
  CHECK(manifest{}.applied() == edl::ledger{});
}

TEST_CASE("any flipped bit and any cut is an error or changes nothing") {
  auto const m = some_manifest();
  auto const good = to_json(m);
  int errors = 0, wrong = 0;
  auto const look = [&](std::string const& text) {
    try {
      wrong += !same(manifest_from_json(text, "m"), m);
    } catch (edl::error const&) {
      ++errors;
    }
  };
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      auto text = good;
      text[i] = char(text[i] ^ (1 << bit));
      look(text);
    }
  CHECK(errors > int(good.size()) * 6);
  int const before = errors;
  for (std::size_t n = 0; n + 2 < good.size(); ++n) look(good.substr(0, n));
  CHECK(errors == before + int(good.size()) - 2);
  CHECK(wrong == 0);
}

TEST_CASE("a manifest cannot lead out of its directory") {
  for (std::string const name : {"../x", "/etc/x", "", ".", "..", "a/b"}) {
    auto m = some_manifest();
    m.files[0].name = name;
    CHECK(contains(complaint([&] { manifest_from_json(to_json(m), "here/manifest.json"); }),
                   "here/manifest.json"));
  }
  auto m = some_manifest();
  m.files.clear();
  CHECK(contains(complaint([&] { manifest_from_json(to_json(m), "m"); }), "'files' is empty"));
}

TEST_CASE("what is no manifest says so in one line") {
  for (std::string const& text :
       {std::string{}, std::string("[]"), std::string("{}"), std::string(R"({"crc32":1})"),
        std::string(R"({"crc32":1,"checkpoint":{}})"), std::string(400'000, '['),
        "{\"a\":" + std::string(400'000, '[')}) {
    auto const said = complaint([&] { manifest_from_json(text, "here"); });
    CHECK(contains(said, "here"));
    CHECK(said.find('\n') == std::string::npos);
  }
  scratch const dir;
  CHECK(contains(complaint([&] { read_manifest(dir.path()); }), "manifest.json"));
}

}  // namespace manifest_test
