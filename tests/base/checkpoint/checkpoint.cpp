// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/checkpoint.hpp"

#include <doctest/doctest.h>
#include <sys/mount.h>

#include <cstring>

#include "base/checkpoint/example_checkpoint.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/durable_file.hpp"
#include "edl/core/input_file.hpp"

namespace checkpoint_test {

using namespace edl::checkpoint;

TEST_CASE("four servers' files are read as one, three, four or seven ranges, bit for bit") {
  scratch const dir;
  example_state const state;
  for (std::uint32_t writers : {1u, 2u, 4u, 12u}) {
    auto const path = state.write(dir.path(), writers, writers);
    CHECK_NOTHROW(verify_checkpoint(path));
    for (std::uint32_t readers : {1u, 3u, 4u, 7u, 20u}) CHECK(state.is_in(path, readers));
  }
}

TEST_CASE("files can be read by others: names, parts and slots are plain") {
  scratch const dir;
  example_state const state;
  auto const path = state.write(dir.path(), 50, 2);  // [0, 64), [64, 149)
  CHECK(path == dir / "version-50");
  safetensors_file const first(part_of(path, 0)), second(part_of(path, 1));
  REQUIRE(first.find("conv2d_1/kernel"));
  CHECK(first.find("conv2d_1/kernel")->dims == std::vector<std::uint64_t>{3, 3, 1, 5});
  REQUIRE(first.find("dense_1/kernel[0:9]"));
  CHECK(first.find("dense_1/kernel[0:9]")->dims == std::vector<std::uint64_t>{9});
  REQUIRE(second.find("dense_1/kernel[9:84]"));
  REQUIRE(second.find("slots/v/dense_1/kernel[9:84]"));
  REQUIRE(second.find("state/batch_norm_1/mean"));
  CHECK_FALSE(second.find("slots/v/state/batch_norm_1/mean"));
  float value = 0;
  second.read(*second.find("dense_1/kernel[9:84]"), 4, std::as_writable_bytes(std::span(&value, 1)));
  CHECK(value == state.variables[55 + 10]);
  CHECK(second.metadata().at("version") == "50");
  CHECK(slots_of(path) == state.slot_names);
}

TEST_CASE("a range tells which history its elements have") {
  scratch const dir;
  example_state const state;
  auto const path = state.write(dir.path(), 50, 4);  // edges 32, 64, 96
  std::vector<float> all(149), some(20), one(8);
  auto const segments = read_range(path, state.layout, 0, all);
  REQUIRE(segments.size() == 4);
  CHECK(segments[2] == segment{{64, 96}, 52, example_state::ledger(2)});
  CHECK(segments[3].elements == edl::element_range{96, 149});
  CHECK(read_range(path, state.layout, 50, some) ==
        std::vector<segment>{{{50, 64}, 51, example_state::ledger(1)},
                             {{64, 70}, 52, example_state::ledger(2)}});
  CHECK(some[0] == state.variables[50]);
  CHECK(read_range(path, state.layout, 100, one) ==
        std::vector<segment>{{{100, 108}, 53, example_state::ledger(3)}});
  // No elements, and still a history: its neighbour's.
  CHECK(read_range(path, state.layout, 70, {}) ==
        std::vector<segment>{{{70, 70}, 52, example_state::ledger(2)}});
  CHECK(read_range(path, state.layout, 149, {}) ==
        std::vector<segment>{{{149, 149}, 53, example_state::ledger(3)}});
  CHECK(read_range(path, state.layout, 0, {}) ==
        std::vector<segment>{{{0, 0}, 50, example_state::ledger(0)}});
  CHECK(read_manifest(path).applied() == example_state::ledger(0));
}

TEST_CASE("neighbours with one history are one segment") {
  scratch const dir;
  example_state const state;
  auto const path = checkpoint_path(dir.path(), 1);
  begin_checkpoint(path);
  auto contents = state.manifest(1);
  for (std::uint32_t i = 0; i < 3; ++i) {
    auto const range = edl::partition(149, 3, i);
    std::vector<segment> const halves{
        {{range.first, range.first + 16}, 9, example_state::ledger(1)},
        {{range.first + 16, range.last}, 9, example_state::ledger(i == 2 ? 2 : 1)}};
    contents.files.push_back(
        write_part(path, state.layout,
                   {.server = i,
                    .servers = 3,
                    .version = 1,
                    .elements = range,
                    .variables = edl::view<float>(state.variables).subspan(range.first, range.size()),
                    .segments = halves}));
  }
  CHECK(contents.files[2].ledger == example_state::ledger(1));  // what all of the server has applied
  commit_checkpoint(path, contents);
  std::vector<float> all(149);
  CHECK(read_range(path, state.layout, 0, all) ==
        std::vector<segment>{{{0, 112}, 9, example_state::ledger(1)},
                             {{112, 149}, 9, example_state::ledger(2)}});
}

TEST_CASE("another model is refused and the variable named") {
  scratch const dir;
  example_state const state;
  auto const path = state.write(dir.path(), 50, 2);
  std::vector<float> all(149);
  auto const said = [&](auto&& change) {
    auto layout = state.layout;
    change(layout);
    std::vector<float> into(layout.size());
    return complaint([&] { read_range(path, layout, 0, into); });
  };
  CHECK(contains(said([](auto& l) { l.variables[3].dims = {7, 12}; }), "[\"dense_1/kernel\",[12,7]]"));
  CHECK(contains(said([](auto& l) { l.variables[1].name = "conv2d_1/offset"; }), "conv2d_1/offset"));
  CHECK(contains(said([](auto& l) { l.variables.pop_back(), l.state = 5; }), "batch_norm_1/variance"));
  CHECK(contains(said([](auto& l) { l.variables.push_back({"more", {1}, 149}), l.state = 11; }),
                 "lacks variable [\"more\""));
  CHECK(contains(said([](auto& l) { l.parameters = 134, l.state = 15; }), "another model"));
  std::vector<float> none;
  std::vector<std::string> const names{"momentum"};
  std::vector<float> slot(139);
  std::vector<std::span<float>> const slots{slot};
  CHECK(contains(complaint([&] { read_range(path, state.layout, 0, all, names, slots); }),
                 "slots/momentum/conv2d_1/kernel"));
  CHECK(contains(complaint([&] { read_range(path, state.layout, 1, all); }), "no such range"));
  CHECK(contains(complaint([&] { read_range(path, state.layout, 149, std::span(all).first(1)); }),
                 "no such range"));
  CHECK(contains(complaint([&] { read_range(path, state.layout, 0, all, names); }),
                 "the number of slots differs"));
}

TEST_CASE("what a server may not write") {
  scratch const dir;
  example_state const state;
  auto const range = edl::element_range{0, 149};
  std::vector<segment> const good{{range, 1, {}}}, gap{{{0, 10}, 1, {}}, {{11, 149}, 1, {}}},
      brief{{{0, 148}, 1, {}}};
  auto const said = [&](checkpoint_part part) {
    return complaint([&] { write_part(dir.path(), state.layout, part); });
  };
  checkpoint_part part{.elements = range, .variables = state.variables, .segments = good};
  CHECK(said(part).empty());
  REQUIRE(entries(dir.path()).size() == 1);
  CHECK(entries(dir.path()).front().starts_with("variables-0-of-1-"));
  CHECK(is_part(entries(dir.path()).front()));
  part.segments = gap;
  CHECK(contains(said(part), "gap"));
  part.segments = brief;
  CHECK(contains(said(part), "do not cover"));
  part.segments = {};
  CHECK(contains(said(part), "do not cover"));
  part.segments = good, part.variables = part.variables.first(148);
  CHECK(contains(said(part), "not those of its range"));
  part.variables = state.variables, part.server = 1;
  CHECK(contains(said(part), "no such server"));
  CHECK(entries(dir.path()).size() == 1);
}

TEST_CASE("any flipped bit and any cut of any file is an error or changes nothing" *
          doctest::test_suite("long")) {
  scratch const dir;
  example_state const state;
  auto const path = state.write(dir.path(), 50, 2);
  for (auto const& name : entries(path)) {
    auto const file = path + "/" + name, good = slurp(file);
    std::size_t errors = 0, wrong = 0, tried = 0;
    auto const look = [&](std::string const& content) {
      spill(file, content);
      ++tried;
      try {
        wrong += !state.is_in(path);
      } catch (edl::error const&) {
        ++errors;
      }
    };
    for (std::size_t i = 0; i < good.size(); ++i) {
      auto content = good;
      content[i] = char(content[i] ^ (1 << (i % 8)));
      look(content);
    }
    for (std::size_t n = 0; n < good.size(); n += 13) look(good.substr(0, n));
    look(good + '\0');
    CHECK(wrong == 0);
    if (name != "manifest.json") CHECK(errors == tried);  // white space of a manifest may change
    spill(file, good);
  }
  CHECK(state.is_in(path));
}

TEST_CASE("a header forged together with its checksums does no harm") {
  scratch const dir;
  example_state const state;
  auto const path = state.write(dir.path(), 50, 2);
  auto contents = read_manifest(path);
  auto const file = path + "/" + contents.files[1].name, good = slurp(file);
  std::uint64_t length = 0;
  std::memcpy(&length, good.data(), 8);
  int refused = 0;
  std::size_t const step = 3;
  for (std::size_t i = 8; i < 8 + length; i += step) {
    auto content = good;
    content[i] = "0987[]{}\",:x \\"[i % 14];
    spill(file, content);
    edl::input_file const forged(file);
    contents.files[1].crc32 = forged.crc32();
    spill(path + "/manifest.json", to_json(contents));
    try {
      state.is_in(path, 3);
    } catch (edl::error const&) {
      ++refused;
    }
  }
  CHECK(refused > int(length / step / 2));
}

TEST_CASE("without its manifest, or a file, there is no checkpoint") {
  scratch const dir;
  example_state const state;
  auto const path = checkpoint_path(dir.path(), 50);
  begin_checkpoint(path);
  auto contents = state.manifest(50);
  CHECK(contains(complaint([&] { commit_checkpoint(path, contents); }), "no server has written"));
  contents.files.push_back(state.write(path, 50, 0, 2));
  CHECK_FALSE(newest_valid(dir.path()));
  contents.files.push_back(state.write(path, 50, 1, 2));
  CHECK_FALSE(newest_valid(dir.path()));
  auto wrong = contents;
  wrong.files[1].bytes += 1;
  CHECK(contains(complaint([&] { commit_checkpoint(path, wrong); }), "its server wrote"));
  wrong = contents;
  wrong.files[1].name = "variables-1-of-3.safetensors";
  CHECK(contains(complaint([&] { commit_checkpoint(path, wrong); }), "variables-1-of-3"));
  CHECK_FALSE(newest_valid(dir.path()));
  commit_checkpoint(path, contents);
  CHECK(newest_valid(dir.path()) == path);
  // Files that leave a gap, or cover a part twice, are no checkpoint of the model.
  contents.files.pop_back();
  commit_checkpoint(path, contents);
  CHECK(contains(complaint([&] { state.is_in(path); }), "end at element 64 of 149"));
  contents.files.push_back(contents.files[0]);
  commit_checkpoint(path, contents);
  CHECK(contains(complaint([&] { state.is_in(path); }), "element 64 is in none"));
  // Beginning anew leaves the old one until the new one is complete.
  begin_checkpoint(path);
  CHECK(newest_valid(dir.path()) == path);
}

TEST_CASE("who was given up cannot change what others have committed") {
  scratch const dir;
  example_state const late(3), now(7);
  auto const path = checkpoint_path(dir.path(), 50);
  auto const before = begin_checkpoint(path);
  // A server that is held up before it writes, and one in the middle of it; their master is given up, too.
  auto contents = late.manifest(50);
  contents.files.push_back(late.write(path, 50, 0, 2));
  edl::durable_file half(path + "/" + contents.files[0].name);
  half.write("half");
  CHECK(now.write(dir.path(), 50, 2) == path);
  CHECK(now.is_in(path));
  contents.files.push_back(late.write(path, 50, 1, 2));
  CHECK(contains(complaint([&] { half.commit(); }), "No such file"));
  CHECK_NOTHROW(verify_checkpoint(path));
  CHECK(now.is_in(path));
  // Its parts are not there any more, and it is not allowed to say otherwise.
  CHECK(contains(complaint([&] { commit_checkpoint(path, contents, before); }), "cannot open"));
  auto all = late.manifest(50);
  for (std::uint32_t i : {0u, 1u}) all.files.push_back(late.write(path, 50, i, 2));
  CHECK(contains(complaint([&] {
                   commit_checkpoint(path, all, before,
                                     [] { throw edl::error("another has the directory"); });
                 }),
                 "another has the directory"));
  CHECK(now.is_in(path));
  CHECK_NOTHROW(verify_checkpoint(path));
}

TEST_CASE("what a held-up writer cleans is older than what it has seen") {
  scratch const dir;
  example_state const old(3), now(7);
  auto const path = old.write(dir.path(), 50, 2);
  auto const seen = begin_checkpoint(path);
  auto contents = old.manifest(50);
  for (std::uint32_t i : {0u, 1u}) contents.files.push_back(old.write(path, 50, i, 2));
  CHECK(newest_valid(dir.path()) == path);
  commit_checkpoint(path, contents, {});
  CHECK(entries(path).size() == 5);
  now.write(dir.path(), 50, 2);
  CHECK(entries(path).size() == 3);
  for (std::string const& name : seen) CHECK_FALSE(std::filesystem::exists(path + "/" + name));
  CHECK(now.is_in(path));
}

TEST_CASE("a checkpoint of an older version of this program is read") {
  scratch const dir;
  example_state const state;
  auto const path = state.write(dir.path(), 50, 2);
  auto contents = read_manifest(path);
  for (std::size_t i : {0u, 1u}) {
    std::string const name = "variables-" + std::to_string(i) + "-of-2.safetensors";
    std::filesystem::rename(part_of(path, i), path + "/" + name);
    CHECK(is_part(name));
    contents.files[i].name = name;
  }
  std::filesystem::remove(path + "/manifest.json");
  spill(path + "/manifest.json", to_json(contents));
  CHECK(newest_valid(dir.path()) == path);
  CHECK(state.is_in(path, 3));
  example_state const next(5);
  next.write(dir.path(), 50, 1);
  CHECK(entries(path).size() == 2);
  CHECK(next.is_in(path));
}

TEST_CASE("names of servers' files") {
  for (char const* name : {"variables-0-of-1.safetensors", "variables-12-of-30-0123456789abcdef.safetensors"})
    CHECK(is_part(name));
  for (char const* name : {"manifest.json", "variables-.safetensors", "variables-mine.safetensors",
                           "model.safetensors", "variables-0-of-1.safetensors.bak"})
    CHECK_FALSE(is_part(name));
}

TEST_CASE("a crash at any byte leaves the older checkpoint the newest, and can be made good") {
  scratch const dir;
  example_state const old(0), now(7);
  auto const older = old.write(dir.path(), 50, 2);
  auto const size = std::filesystem::file_size(part_of(older, 0));
  for (std::size_t bytes = 0; bytes < size; bytes += size / 11) {
    int const status = with_limited_files(bytes, true, [&] { return now.write(dir.path(), 100, 2).empty(); });
    REQUIRE(WIFSIGNALED(status));
    CHECK(newest_valid(dir.path()) == older);
    CHECK_FALSE(std::filesystem::exists(dir / "version-100/manifest.json"));
    CHECK(edl::is_temporary(entries(dir / "version-100").front()));
  }
  auto const newer = now.write(dir.path(), 100, 2);
  CHECK(newest_valid(dir.path()) == newer);
  CHECK(now.is_in(newer, 3));
  CHECK(entries(newer).size() == 3);  // what the crashes left is gone
}

TEST_CASE("a full disk is one error; what is written is no checkpoint and leaves no temporaries") {
  scratch const dir;
  example_state const state;
  auto const whole = state.write(dir.path(), 50, 2);
  auto const size = std::filesystem::file_size(part_of(whole, 1));
  int const status = with_limited_files(size - 1, false, [&] {
    auto const said = complaint([&] { state.write(dir.path(), 100, 2); });
    return contains(said, "version-100/variables-") && contains(said, "raise ulimit -f") ? 0 : 1;
  });
  CHECK(status == 0);
  CHECK(newest_valid(dir.path()) == whole);
  for (auto const& name : entries(dir / "version-100")) CHECK_FALSE(edl::is_temporary(name));
}

TEST_CASE("a disk that is really full") {
  scratch const dir;
  if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=40k") != 0) {
    MESSAGE("no small file system can be mounted here: skipped");
    return;
  }
  struct unmount {
    std::string const& path;
    ~unmount() { ::umount2(path.c_str(), MNT_DETACH); }
  } const after{dir.path()};
  example_state const state;
  std::string last, said;
  for (std::uint64_t version = 1; said.empty() && version < 100; ++version)
    said = complaint([&] { last = state.write(dir.path(), version, 1); });
  CHECK(contains(said, "No space left on device"));
  CHECK(contains(said, "make room"));
  CHECK(newest_valid(dir.path()) == last);
  CHECK(state.is_in(last));
  prune(dir.path(), 1);
  CHECK(newest_valid(dir.path()) == last);
  CHECK_NOTHROW(state.write(dir.path(), 1000, 1));
}

}  // namespace checkpoint_test
