// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/data/source.hpp"

#include <doctest/doctest.h>

#include "compute/data/support.hpp"
#include "edl/compute/data/format/convert.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/synthetic.hpp"

namespace source_test {

using namespace edl::data;
using support::failure, support::has;

namespace {

std::string refused(std::string const& path, source_options const& options = {}) {
  return failure([&] { open_source(path, options); });
}

std::string idx_images(char value) {
  return std::string("\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x02", 16) + value + value;
}
std::string idx_labels(char value) { return std::string("\0\0\x08\x01\0\0\0\x01", 8) + value; }

std::int64_t first_label(source const& s) {
  edl::example e;
  s.open()->read(0, 0, e);
  return e.integer("label");
}

}  // namespace

TEST_CASE("a directory of RecordIO files, by name; what is clearly no data is left out") {
  support::scratch const dir;
  convert(synthetic_source({.records = 25}), dir / "set", {.records_per_shard = 10});
  for (char const* name :
       {"README", "README.md", "notes.txt", ".hidden", "_SUCCESS", "data-00000.crc", "sub/data-00009"})
    support::write((dir / "set/") + name, "hello");
  auto const s = open_source(dir / "set/");
  CHECK(s->shards() == std::vector<shard>{{"data-00000", 10}, {"data-00001", 10}, {"data-00002", 5}});
  CHECK(records(*s) == 25);
  CHECK(open_source(dir / "set/data-00002")->shards() == std::vector<shard>{{"data-00002", 5}});
  support::write(dir / "set/data-00001x", "This is something else entirely.");
  CHECK(has(refused(dir / "set"), "set/data-00001x: chunk 0 at byte 0: expected the RecordIO magic number"));
  auto const rest = open_source(dir / "set", {.skip_damaged = true});
  CHECK(records(*rest) == 25);
  CHECK(rest->damage().size() == 1);
}

TEST_CASE("MNIST's directory, whole or in parts") {
  support::scratch const dir;
  support::write(dir / "train-images-idx3-ubyte", idx_images(1));
  support::write(dir / "train-labels-idx1-ubyte", idx_labels(1));
  CHECK(first_label(*open_source(dir.path())) == 1);
  support::write(dir / "t10k-images.idx3-ubyte", idx_images(2));
  CHECK(has(refused(dir / "test"), "has " + (dir / "t10k-images.idx3-ubyte") + " but not the labels"));
  support::write(dir / "t10k-labels.idx1-ubyte", idx_labels(2));
  CHECK(refused(dir.path()) ==
        dir.path() + ": holds training and test files; name " + (dir / "train") + " or " + (dir / "test"));
  CHECK(first_label(*open_source(dir / "train")) == 1);
  CHECK(first_label(*open_source(dir / "test/")) == 2);
  CHECK(has(refused(dir / "validation"), "no such file"));
  // A directory that is there comes before a part.
  support::write(dir / "test/t10k-images-idx3-ubyte", idx_images(3));
  support::write(dir / "test/t10k-labels-idx1-ubyte", idx_labels(3));
  CHECK(first_label(*open_source(dir / "test")) == 3);
}

TEST_CASE("CIFAR-10's directory") {
  support::scratch const dir;
  support::write(dir / "data_batch_2.bin", std::string(3073, '\x02'));
  support::write(dir / "data_batch_1.bin", std::string(3073, '\x01'));
  support::write(dir / "readme.html", "x");
  support::write(dir / "batches.meta.txt", "airplane\n");
  CHECK(open_source(dir.path())->shards() ==
        std::vector<shard>{{"data_batch_1.bin", 1}, {"data_batch_2.bin", 1}});
  support::write(dir / "test_batch.bin", std::string(3073, '\x03'));
  CHECK(has(refused(dir.path()), "name "));
  CHECK(first_label(*open_source(dir / "test")) == 3);
  CHECK(open_source(dir / "train")->shards().size() == 2);
}

TEST_CASE("a published file by itself is refused with the directory that is to be named") {
  support::scratch const dir;
  std::string const images = dir / "train-images-idx3-ubyte.gz", test = dir / "t10k-labels.idx1-ubyte";
  support::write(images, "x");
  support::write(dir / "train-labels-idx1-ubyte.gz", "x");
  std::string const why = ": is one of several published files; name the directory that holds them: ";
  CHECK(refused(images) == images + why + dir.path());
  CHECK(refused(dir / "train-*.gz") == images + why + dir.path());
  support::write(test, "x");
  CHECK(refused(images) == images + why + (dir / "train"));
  CHECK(refused(test) == test + why + (dir / "test"));
  support::write(dir / "c/data_batch_3.bin", std::string(3073, '\x02'));
  CHECK(refused(dir / "c/data_batch_3.bin") == (dir / "c/data_batch_3.bin") + why + (dir / "c"));
}

TEST_CASE("CSV files") {
  support::scratch const dir;
  support::write(dir / "d/a.csv", "label;x\n4;2\n");
  CHECK(first_label(*open_source(dir / "d/a.csv", {.csv_delimiter = ';'})) == 4);
  CHECK(has(refused(dir / "d"),
            "named one by one, or by a pattern: " + (dir / "d/a.csv") + " or " + (dir / "d/*.csv")));
  support::write(dir / "d/b.csv", "label\n");
  CHECK(refused(dir / "d/b.csv") == (dir / "d/b.csv") + ": holds no records");
}

TEST_CASE("synthetic sets need no file") {
  CHECK(records(*open_source("synthetic:train")) == 60'000);
  CHECK(records(*open_source("synthetic:test")) == 10'000);
}

TEST_CASE("a shard that is rewritten has another digest, however many records it has") {
  support::scratch const dir;
  auto const digest = [](std::string const& path, std::size_t shard = 0) {
    std::uint64_t const value = open_source(path)->digest(shard);
    CHECK(value != 0);
    CHECK(open_source(path)->digest(shard) == value);
    return value;
  };
  // RecordIO: the checksums of chunks, none of which is read.
  convert(synthetic_source({.records = 20}), dir / "a", {.records_per_shard = 10});
  convert(synthetic_source({.records = 20}), dir / "same", {.records_per_shard = 10});
  convert(synthetic_source({.records = 20, .seed = 1}), dir / "b", {.records_per_shard = 10});
  CHECK(digest(dir / "a") == digest(dir / "same"));
  CHECK(digest(dir / "a") != digest(dir / "a", 1));
  CHECK(digest(dir / "a") != digest(dir / "b"));
  // MNIST's files: images or labels.
  auto const idx = [&](char image, char label) {
    support::write_anew(dir / "idx/train-images-idx3-ubyte", idx_images(image));
    support::write_anew(dir / "idx/train-labels-idx1-ubyte", idx_labels(label));
    return digest(dir / "idx");
  };
  CHECK(idx(1, 1) == idx(1, 1));
  CHECK(idx(1, 1) != idx(2, 1));
  CHECK(idx(1, 1) != idx(1, 2));
  // CIFAR-10 and CSV: one byte in the middle.
  std::string pictures(10 * 3073, '\x02');
  support::write_anew(dir / "cifar/data_batch_1.bin", pictures);
  auto const before = digest(dir / "cifar");
  pictures[5 * 3073 + 7] = 3;
  support::write_anew(dir / "cifar/data_batch_1.bin", pictures);
  CHECK(digest(dir / "cifar") != before);
  support::write_anew(dir / "a.csv", "x,label\n1,1\n2,0\n");
  auto const table = digest(dir / "a.csv");
  support::write_anew(dir / "a.csv", "x,label\n1,1\n2,1\n");
  CHECK(digest(dir / "a.csv") != table);
  CHECK(digest("synthetic:train") != digest("synthetic:test"));
  CHECK(open_source(dir / "a.csv")->digest(7) == 0);
}

TEST_CASE("what cannot be opened is named, and why") {
  support::scratch const dir;
  CHECK(refused("") == "the path of a data set is empty");
  CHECK(refused(dir / "none") == (dir / "none") + ": no such file or directory");
  CHECK(refused(dir / "none/train") == (dir / "none/train") + ": no such file or directory");
  CHECK(refused(dir / "train") == (dir / "train") + ": no such file or directory");
  CHECK(refused(dir.path()) == dir.path() + ": holds no data files");
  support::write(dir / "empty", "");
  CHECK(refused(dir.path()) == dir.path() + ": holds no records");
  CHECK(refused(dir / "empty") == (dir / "empty") + ": holds no records");
  // Of whatever kind, and beside others it is none of them.
  for (char const* const ending : {"csv", "tsv", "jsonl", "libsvm", "npz", "npy", "rio"}) {
    std::string const path = dir / ("zero." + std::string(ending));
    support::write(path, "");
    CHECK(refused(path) == path + ": holds no records");
  }
  support::write(dir / "one.csv", "x,y\n1,2\n");
  CHECK(edl::data::records(*open_source((dir / "zero.csv") + "," + (dir / "one.csv"))) == 1);
  support::write(dir / "text", "This is no RecordIO file.");
  CHECK(has(refused(dir / "text"), "is this a RecordIO file?"));
  CHECK(has(refused(dir / "text", {.skip_damaged = true}), "holds no records; damaged: "));
  CHECK(has(refused(dir / "text", {.skip_damaged = true}),
            "other formats by the file's extension: .csv, .tsv"));
  std::filesystem::create_symlink(dir / "nowhere", dir / "link");
  CHECK(!refused(dir / "link").empty());
  CHECK(!refused(dir.path()).empty());
  CHECK(!refused("/dev/null").empty());
  if (::geteuid() != 0) {
    support::write(dir / "secret/f", "x");
    std::filesystem::permissions(dir / "secret", std::filesystem::perms::none);
    CHECK(has(refused(dir / "secret"), "ermission denied"));
    std::filesystem::permissions(dir / "secret", std::filesystem::perms::owner_all);
  }
}

TEST_CASE("the data sets of this machine") {
  auto const folder = support::data_sets("mnist");
  if (folder.empty()) return;
  CHECK(records(*open_source(folder + "/train")) == 60'000);
  CHECK(records(*open_source(folder + "/test")) == 10'000);
}

TEST_CASE("whoever opens paths of its own is asked first, for each path of a list") {
  support::scratch const dir;
  support::write(dir / "a.csv", "label\n1\n");
  std::vector<std::string> asked;
  opener const own = [&](std::string const& path, source_options const& options) -> std::unique_ptr<source> {
    asked.push_back(path);
    CHECK(options.skip_damaged);
    if (!path.starts_with("own:")) return nullptr;
    return std::make_unique<synthetic_source>(synthetic_options{.records = 7});
  };
  CHECK(records(*open_source("own:x", {.skip_damaged = true}, own)) == 7);
  CHECK(records(*open_source(dir / "a.csv", {.skip_damaged = true}, own)) == 1);
  CHECK(asked == std::vector<std::string>{"own:x", dir / "a.csv"});
  asked.clear();
  CHECK(records(*open_source((dir / "a.csv") + ",own:y", {.skip_damaged = true}, own)) == 8);
  CHECK(asked == std::vector<std::string>{dir / "a.csv", "own:y"});
  CHECK(records(*open_source("own:z?n=1", {.skip_damaged = true}, own)) == 7);
  CHECK(has(failure([&] { open_source("other:z?n=1", {.skip_damaged = true}, own); }), "no path matches"));
}

TEST_CASE("an ending in capitals is the same, and one that is not known says what is read") {
  support::scratch const dir;
  support::write(dir / "T.CSV", "label\n4\n");
  support::write(dir / "T.JsonL", "{\"label\": 5}\n");
  CHECK(first_label(*open_source(dir / "T.CSV")) == 4);
  CHECK(first_label(*open_source(dir / "T.JsonL")) == 5);
  for (char const* name : {"t.orc", "t.json", "t.csv.bz2", "t.csv.bak"}) {
    auto const why = refused(support::write(dir / name, "label\n4\n"));
    CHECK(has(why, std::string(name) + ": '." + (std::string(name).substr(std::string(name).rfind('.') + 1)) +
                       "' files are not read"));
    CHECK(has(why, ".csv, .tsv, .jsonl"));
  }
  // The first bytes come before the name.
  convert(synthetic_source({.records = 5}), dir / "set");
  std::filesystem::rename(dir / "set/data-00000", dir / "digits.train");
  CHECK(records(*open_source(dir / "digits.train")) == 5);
}

TEST_CASE("UTF-16 is told by its name") {
  support::scratch const dir;
  std::string const text(
      "\xFF\xFE"
      "x\0,\0y\0",
      8);
  for (char const* name : {"a.csv", "a.tsv", "a.jsonl"})
    CHECK(refused(support::write(dir / name, text)) ==
          (dir / name) + ": is in UTF-16; save it as UTF-8: iconv -f UTF-16 -t UTF-8 " + (dir / name));
}

TEST_CASE("a file whose name is not UTF-8 is refused, because no checkpoint can name it") {
  support::scratch const dir;
  support::write(dir / "caf\xe9.csv", "label\n4\n");
  CHECK(has(refused(dir / "*.csv"), "the name of the file caf?.csv is not UTF-8; rename it"));
}

}  // namespace source_test
