// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/rows.hpp"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "base/bucket/unkind_store.hpp"
#include "base/wire/scratch.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/checkpoint/layout_digest.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/core/error.hpp"

namespace rows_test {

using namespace edl::checkpoint;
using edl::sparse::table;
using edl::sparse::table_snapshot;

namespace {

edl::rule<edl::adagrad> const adagrad{edl::adagrad{.learning_rate = 0.1f}};
std::vector<std::string> const slots = adagrad.slots();

edl::parameter_layout layout_of_two() {
  return {.variables = {{"w", {4}, 0}}, .parameters = 4, .state = 0, .tables = {{"words", 3}, {"users", 1}}};
}

/// Two servers' tables, with `rows` ids each in all.
struct servers {
  explicit servers(std::uint64_t rows) {
    for (std::size_t i = 0; i < 4; ++i)
      tables.push_back(
          std::make_unique<table>(edl::sparse::table_options{.width = i % 2 == 0 ? 3 : 1,
                                                             .seed = i % 2,
                                                             .policy = {.admission = i % 2 == 0 ? 1 : 2},
                                                             .remembers_removed = true},
                                  adagrad));
    train(0, rows, 0);
    train(0, rows / 2, 1);
  }

  void train(std::uint64_t first, std::uint64_t last, std::uint32_t clock) {
    for (std::uint64_t id = first; id < last; ++id)
      for (std::size_t t = 0; t < 2; ++t) {
        std::vector<float> const slope(std::size_t(tables[t]->width()), 1);
        std::uint64_t const key = ~id * 3;
        tables[2 * server_of(key) + t]->push(std::span(&key, 1), slope, 0.1f, 0, clock);
      }
  }

  static std::size_t server_of(std::uint64_t id) { return edl::sparse::id_hash(id).slot() >= 2048; }

  /// A checkpoint of both; its path.
  std::string save(scratch const& dir, std::uint64_t version = 3, std::size_t most_changes = 0) {
    return save(edl::bucket::place(dir.path()), version, most_changes);
  }
  std::string save(edl::bucket::place const& in, std::uint64_t version, std::size_t most_changes) {
    auto const layout = layout_of_two();
    auto const path = in.below("version-" + std::to_string(version));
    begin_checkpoint(path);
    manifest all{.job = "j", .version = version, .layout = layout_digest(layout)};
    std::vector<float> const w(2);
    for (std::uint32_t i = 0; i < 2; ++i) {
      edl::ledger ledger;
      if (i == 1) ledger.apply({{{0, 0}, 0, 1}, 5});
      std::vector<segment> const dense{{{2 * i, 2 * i + 2}, version, {}}};
      std::vector<segment> const rows{{{2048 * i, 2048 * i + 2048}, version + i, ledger}};
      std::vector<edl::view<float>> const of_slots(slots.size(), w);
      all.files.push_back(write_part(path, layout,
                                     {.server = i,
                                      .servers = 2,
                                      .version = version,
                                      .elements = dense[0].elements,
                                      .variables = w,
                                      .slot_names = slots,
                                      .slots = of_slots,
                                      .segments = dense}));
      std::vector<std::shared_ptr<table_snapshot const>> snapshots;
      for (std::size_t t = 0; t < 2; ++t)
        snapshots.push_back(std::make_shared<table_snapshot>(*tables[2 * i + t]));
      auto const files = write_rows(path, layout,
                                    {.server = i,
                                     .servers = 2,
                                     .version = version,
                                     .slots = rows[0].elements,
                                     .tables = snapshots,
                                     .slot_names = slots,
                                     .segments = rows},
                                    chains[i], most_changes);
      all.files.insert(all.files.end(), files.begin(), files.end());
    }
    commit_checkpoint(path, all);
    return path.path();
  }

  std::vector<std::unique_ptr<table>> tables;  // of the first server, then of the second
  std::array<row_chain, 2> chains;
};

using content = std::map<std::pair<std::size_t, std::uint64_t>, std::vector<float>>;

content content_of(servers& s, edl::element_range of) {
  content all;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t slot = of.first; slot < of.last; ++slot) {
      auto const add = [&](auto const& header, edl::view<float> values) {
        auto& row = all[{i % 2, header.id}];
        row.assign(values.begin(), values.end());
        row.push_back(float(header.last_use)), row.push_back(float(header.uses));
      };
      s.tables[i]->for_each(std::uint32_t(slot), add);
      s.tables[i]->for_each_candidate(std::uint32_t(slot), [&](auto const& header) { add(header, {}); });
    }
  return all;
}

std::vector<segment> read(std::string const& path, edl::element_range of, content& into,
                          edl::parameter_layout const& layout = layout_of_two(),
                          std::vector<std::string> const& names = slots) {
  return read_rows(path, layout, of, of, names,
                   {.remove = [&](std::size_t t, std::uint64_t id) { into.erase({t, id}); },
                    .put =
                        [&](std::size_t t, auto const& header, edl::view<float> values) {
                          auto& row = into[{t, header.id}];
                          row.assign(values.begin(), values.end());
                          row.push_back(float(header.last_use)), row.push_back(float(header.uses));
                        }});
}

std::vector<manifest::file> rows_of_server(edl::bucket::place const& path, int server) {
  auto files = read_manifest(path).files;
  std::erase_if(files, [&](auto const& f) { return !f.name.starts_with("rows-" + std::to_string(server)); });
  return files;
}

std::string rows_file(std::string const& path) {
  for (auto const& f : read_manifest(path).files)
    if (is_rows(f.name)) return path + "/" + f.name;
  return {};
}

}  // namespace

TEST_CASE("rows of any number of servers are read by any number of servers") {
  scratch const dir;
  servers s(20'000);
  std::string const path = s.save(dir);
  for (edl::element_range const of :
       {edl::element_range{0, 4096}, {0, 16}, {2000, 2100}, {2048, 4096}, {4080, 4096}}) {
    content got;
    auto const segments = read(path, of, got);
    CHECK(got == content_of(s, of));
    CHECK(segments.front().elements.first == of.first);
    CHECK(segments.back().elements.last == of.last);
    CHECK(segments.size() == (of.first < 2048 && of.last > 2048 ? 2 : 1));
  }
  content got;
  auto const segments = read(path, {0, 4096}, got);
  CHECK(segments[1].steps == 4);
  CHECK(read_segments(path, read_manifest(path).files[3])[0].ledger == segments[1].ledger);
  // The variables beside them are read as ever.
  std::vector<float> variables(4);
  CHECK(read_range(path, layout_of_two(), 0, variables).size() == 1);
}

TEST_CASE("tables without rows are written and read, too") {
  scratch const dir;
  servers s(0);
  content got;
  CHECK(read(s.save(dir), {0, 4096}, got).size() == 2);
  CHECK(got.empty());
}

TEST_CASE("rows of another model, a damaged file and a missing one are told by name") {
  scratch const dir;
  servers s(100);
  std::string const path = s.save(dir);
  content got;
  auto other = layout_of_two();
  other.tables[1].width = 2;
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got, other),
                       doctest::Contains("has table \"users\" of width 1 where"), edl::error);
  other.tables.pop_back();
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got, other), doctest::Contains("it has other tables"),
                       edl::error);
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got, layout_of_two(), {}),
                       doctest::Contains("its optimiser has the slots"), edl::error);
  std::string const name = rows_file(path);
  {
    std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put('x');
  }
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got), doctest::Contains("is damaged"), edl::error);
  std::filesystem::resize_file(name, std::filesystem::file_size(name) - 5);
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got), doctest::Contains("bytes"), edl::error);
  std::filesystem::remove(name);
  CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got), doctest::Contains(name.c_str()), edl::error);
}

TEST_CASE("what has changed is written, and each checkpoint is whole by itself") {
  scratch const dir;
  servers s(20'000);
  std::string path = s.save(dir, 3, 2);
  std::uint64_t const whole = rows_of_server(path, 0)[0].bytes;
  std::map<std::uint64_t, content> then{{3, content_of(s, {0, 4096})}};
  for (std::uint64_t version = 4; version < 10; ++version) {
    // Some rows change, some come, some go, and some come again after they went; candidates get their rows.
    for (auto const& t : s.tables) t->remove_if([&](auto const& h) { return h.id % 37 == version; });
    s.train(version * 100, version * 100 + 1000, std::uint32_t(version) + 1);
    s.train(30'000 + version * 10, 30'000 + version * 10 + 15, std::uint32_t(version) + 1);
    path = s.save(dir, version, 2);
    then[version] = content_of(s, {0, 4096});
    // Two of changes after each whole one.
    auto const files = rows_of_server(path, 0);
    CHECK(files.size() == 1 + (version - 3) % 3);
    if (files.size() > 1) CHECK(files.back().bytes < whole / 4);
    for (auto const& f : files) {
      CHECK(f.version == version);
      CHECK(f.ledger == files.front().ledger);
    }
  }
  for (std::uint64_t version = 3; version < 10; ++version) {
    content got;
    auto const segments = read(checkpoint_path(dir.path(), version), {0, 4096}, got);
    CHECK(got == then[version]);
    CHECK(segments.front().steps == version);
    CHECK(segments.back().steps == version + 1);
    auto const histories = read_histories(checkpoint_path(dir.path(), version));
    CHECK(histories.size() ==
          4);  // of two servers' variables and rows, as they are at the end of their files
    for (segment const& h : histories) CHECK(h.steps >= version);
    std::filesystem::remove_all(checkpoint_path(dir.path(), version));  // the next one does not need it
  }
}

TEST_CASE("in a bucket the store copies what has not changed, or all is written") {
  for (bool const refuses : {false, true}) {
    CAPTURE(refuses);
    scratch const dir;
    int refused = 0;
    std::map<std::string, int> tries;
    test::unkind_store* self = nullptr;
    test::unkind_store store([&](test::request const& r, test::wire& w) {
      if (r.method == "GET") return false;
      if (refuses && !r.field("x-amz-copy-source").empty())
        return ++refused, test::unkind_store::refuse(w, 501, "NotImplemented"), true;
      std::lock_guard const lock(self->mutex);
      int const n = tries[r.method + r.target]++ % 3;  // a reply is lost, and then the store is busy
      if (n == 1) return test::unkind_store::refuse(w, 503, "SlowDown"), true;
      return n == 0 && (self->serve_silently(r, w), true);
    });
    self = &store;
    auto o = store.options();
    o.part = 1000, o.connections = 1;  // the store copies 32,000 bytes in one request
    edl::bucket::place const at(
        "s3://box/c", {.directory = dir / "cache", .store = o, .log = edl::logger(edl::severity::critical)});
    servers s(2000);
    std::map<std::uint64_t, content> then;
    for (std::uint64_t version = 3; version < 7; ++version) {
      s.train(version, 100, std::uint32_t(version));
      auto const files = rows_of_server(at.at(s.save(at, version, 2)), 0);
      CHECK(files.size() == (refuses ? 1 : 1 + (version - 3) % 3));
      then[version] = content_of(s, {0, 4096});
    }
    CHECK(refused == (refuses ? 1 : 0));
    CHECK((store.copies > 0) == !refuses);
    for (std::uint64_t version = 3; version < 7; ++version) {
      auto const path = at.below("version-" + std::to_string(version));
      content got;
      read(path.copy().path(), {0, 4096}, got);
      CHECK(got == then[version]);
      path.remove_all();  // the next one does not need it
    }
    for (auto const& [id, begun] : store.uploads) CHECK(begun.parts.empty());  // whose first reply was lost
  }
}

TEST_CASE("where the earlier files are gone, or it is not known what has changed, all is written") {
  scratch const dir;
  servers s(1000);
  s.save(dir, 3, 8);
  std::filesystem::remove_all(checkpoint_path(dir.path(), 3));
  CHECK(rows_of_server(s.save(dir, 4, 8), 0).size() == 1);
  CHECK(rows_of_server(s.save(dir, 5, 8), 0).size() == 2);
  for (auto const& t : s.tables)
    for (std::size_t i = 0; i <= edl::sparse::removals::most; ++i) t->removed().add(i);
  CHECK(rows_of_server(s.save(dir, 6, 8), 0).size() == 1);
  CHECK(rows_of_server(s.save(dir, 7, 8), 0).size() == 2);
  CHECK(rows_of_server(s.save(dir, 2, 8), 0).size() == 1);  // of a time before the chain's
  content got;
  read(checkpoint_path(dir.path(), 2), {0, 4096}, got);
  CHECK(got == content_of(s, {0, 4096}));
}

TEST_CASE("changes that are missing, cut off or of another job are told by name, and nothing is read") {
  scratch const dir, of_other;
  servers s(1000), other(1000);
  s.save(dir, 3, 8), other.save(of_other, 3, 8);
  s.train(0, 10, 9), other.train(0, 10, 9);
  std::string const path = s.save(dir, 4, 8), theirs = other.save(of_other, 4, 8);
  manifest const right = read_manifest(path);
  auto const with = [&](auto const& change) {
    manifest m = right;
    change(m.files);
    std::ofstream(path + "/manifest.json") << to_json(m);
  };
  content got;
  auto const refused = [&](char const* why) {
    CHECK_THROWS_WITH_AS(read(path, {0, 4096}, got), doctest::Contains(why), edl::error);
  };
  auto const first = rows_of_server(path, 0), foreign = rows_of_server(theirs, 0);
  std::filesystem::copy(theirs + "/" + foreign[1].name, path + "/" + foreign[1].name);
  with([&](auto& files) {
    std::ranges::replace_if(files, [&](auto& f) { return f.name == first[1].name; }, foreign[1]);
  });
  refused("which is not the file before it in the manifest");
  with([&](auto& files) { std::erase_if(files, [&](auto& f) { return f.name == first[0].name; }); });
  refused("which is not the file before it in the manifest");
  with([](auto&) {});
  read(path, {0, 4096}, got);
  std::filesystem::resize_file(path + "/" + first[1].name, first[1].bytes - 1);
  refused("claims bytes");
  std::filesystem::remove(path + "/" + first[1].name);
  refused(first[1].name.c_str());
}

}  // namespace rows_test
