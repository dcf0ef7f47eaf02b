// SPDX-License-Identifier: Apache-2.0
// The commands for data, whose inputs and outputs lie in a bucket of a store that is not always kind.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "base/bucket/unkind_store.hpp"
#include "command/tool.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "variables.hpp"
#include "zoo/table_model.hpp"

namespace command_buckets_test {

using edl::tool::words;
using support::has;
using test::request, test::unkind_store, test::wire;
using tool_test::run;

namespace {

struct bucket {
  explicit bucket(unkind_store::fault f = {}) : store(std::move(f)) {}

  support::scratch dir;
  unkind_store store;
  test::variables env{{{"AWS_ACCESS_KEY_ID", "A"},
                       {"AWS_SECRET_ACCESS_KEY", "secret"},
                       {"AWS_ENDPOINT_URL", store.url()},
                       {"XDG_CACHE_HOME", dir / "cache"}}};

  /// The same bytes as a file and as an object.
  void put(std::string const& name, std::string const& bytes) {
    support::write(dir / name, bytes);
    std::lock_guard const lock(store.mutex);
    store.objects[name] = bytes;
  }

  std::map<std::string, std::string> below(std::string const& prefix) {
    std::lock_guard const lock(store.mutex);
    std::map<std::string, std::string> all;
    for (auto const& [key, text] : store.objects)
      if (key.starts_with(prefix)) all[key.substr(prefix.size())] = text;
    return all;
  }
};

std::string replaced(std::string text, std::string const& from, std::string const& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

TEST_CASE("commands for data do with objects what they do with files, though the store fails now and then") {
  std::atomic<int> requests{0}, halves{0};
  bucket b([&](request const& r, wire& w) {
    int const i = requests++;
    if (i % 12 == 3) return unkind_store::refuse(w, 503, "SlowDown"), true;
    if (i % 12 == 8 && r.method == "GET") return w.cut(), true;
    std::lock_guard const lock(b.store.mutex);
    auto const whole = b.store.objects.find(r.target.substr(std::min<std::size_t>(5, r.target.size())));
    if (i % 5 != 0 || r.method != "GET" || r.field("Range").empty() || whole == b.store.objects.end())
      return false;
    auto const n = whole->second.size();  // half of it comes, and the rest with the next request
    w.send(
        fmt::format("HTTP/1.1 206 Part\r\nETag: {}\r\nContent-Range: bytes 0-{}/{}\r\nContent-Length: {}"
                    "\r\n\r\n{}",
                    b.store.tag_of(whole->first), n - 1, n, n, whole->second.substr(0, n / 2)));
    ++halves;
    return w.cut(), true;
  });
  b.put("t/1.csv", "x,word\n1,a\n2,b\n");
  b.put("t/2.csv", "x,word\n3,7\nfour,c\n");  // x is a text in both files only if they are read as one set
  b.put("t.columns", "word | string_lookup words=a,b\n");
  b.put("t/a.txt", "one two two\n\nthree three three");
  b.put("t/b.txt", "two two one");
  b.put("t/c.jsonl", "{\"prompt\":\"one\",\"completion\":\"two\"}\n");
  std::string const here = b.dir.path() + "/", there = "s3://box/";
  // What is said of files, and of objects.
  auto const same = [&](words const& line) {
    words of_objects = line;
    for (std::string& word : of_objects) word = replaced(word, here, there);
    auto const files = run(line), objects = run(of_objects);
    CAPTURE(files.err);
    CAPTURE(objects.err);
    CAPTURE(objects.out);
    CHECK(files.code == 0);
    CHECK(objects.code == 0);
    CHECK(objects.out == replaced(files.out, here, there));
    CHECK(objects.err == replaced(files.err, here, there));
  };
  same({"data", "inspect", here + "t/1.csv", "--columns=" + here + "t.columns", "--verify"});
  same({"data", "inspect", here + "t/1.csv," + here + "t/2.csv", "-o", "json"});
  same({"data", "analyze", here + "t/*.csv", "-o", "json"});
  same({"data", "convert", "--from=" + here + "t/1.csv," + here + "t/2.csv", "--to=" + here + "out/rows",
        "--records_per_shard=1"});
  same({"data", "inspect", here + "out/rows", "--verify"});
  same({"data", "train-tokenizer", "--vocab_size=270", "--output=" + here + "out/tokenizer.json",
        here + "t/a.txt", here + "t/b.txt"});
  words const tokenize{"data", "tokenize", "--tokenizer=" + here + "out/tokenizer.json"};
  auto const with = [&](words more) {
    more.insert(more.begin(), tokenize.begin(), tokenize.end());
    same(more);
  };
  with({"--output=" + here + "out/a.tokens", here + "t/a.txt", here + "t/b.txt"});
  with({"--output=" + here + "out/c.recordio", "--instructions=plain", "--end_token=<|endoftext|>",
        here + "t/c.jsonl"});
  same({"data", "inspect", "tokens:4:" + here + "out/a.tokens"});
  auto const pattern = run({"data", "tokenize", "--tokenizer=s3://box/out/tokenizer.json",
                            "--output=s3://box/out/all.tokens", "s3://box/t/*.txt"});
  CHECK(pattern.code == 0);
  auto const made = b.below("out/");
  CHECK(made.at("all.tokens") == made.at("a.tokens"));
  CHECK(made.size() == 8);
  for (auto const& [name, bytes] : made)
    if (name != "all.tokens") CHECK(bytes == support::read(here + "out/" + name));
  CHECK(edl::tool::model_of_table(there + "t/1.csv", "word", "auto").name ==
        edl::tool::model_of_table(here + "t/1.csv", "word", "auto").name);
  CHECK(halves > 0);
  CHECK(b.store.uploads.empty());
  CHECK_FALSE(std::filesystem::exists(b.dir / "cache/edl/upload"));
}

TEST_CASE("what is missing, denied or damaged in a bucket is named as objects are") {
  bucket b([](request const& r, wire& w) {
    return has(r.target, "/box/secret") && (unkind_store::refuse(w, 403, "AccessDenied"), true);
  });
  {
    edl::data::recordio_writer out(b.dir / "a.recordio", {.with = edl::data::compressor::none});
    for (int i = 0; i < 3; ++i) out.write("not an example, but long enough for a chunk");
    out.close();
  }
  std::string bytes = support::read(b.dir / "a.recordio");
  bytes[bytes.size() - 5] ^= 1;
  b.put("d/a.recordio", bytes);
  b.put("d.csv", "x,y\n1,2\n");
  b.put("odd.csv", "x,y\n\"1\"2,2\n");
  b.put("full/one", "x");
  std::map<std::string, std::string> const before = b.below("");
  auto const refused = [&](words const& line, std::string const& why) {
    auto const told = run(line);
    CAPTURE(told.out);
    CAPTURE(told.err);
    CHECK(told.code != 0);
    CHECK(has(told.err, why));
    CHECK_FALSE(has(told.err, "/cache/"));
  };
  refused({"data", "inspect", "s3://box/d", "--verify"}, "damaged: s3://box/d/a.recordio");
  refused({"data", "analyze", "s3://box/odd.csv"}, "s3://box/odd.csv:2: ");
  refused({"data", "analyze", "s3://box/none.csv"}, "s3://box/none.csv: no such object");
  refused({"data", "analyze", "s3://box/secret.csv"}, "s3://box/secret.csv: ");
  refused({"data", "analyze", "s3://box/d.csv", "--to=s3://box/statistics"}, "name a directory");
  refused({"zoo", "init", "--model_zoo=s3://box/zoo"},
          "--model_zoo=s3://box/zoo: an image is built of files");
  refused({"data", "convert", "--from=s3://box/d.csv", "--to=s3://box/full"},
          "s3://box/full: objects are there already");
  refused({"data", "convert", "--from=s3://box/d.csv", "--to=s3://box/secret/x"}, "s3://box/secret/x/");
  refused({"data", "train-tokenizer", "--output=s3://box/secret.json", b.dir / "d.csv"},
          "s3://box/secret.json");
  refused({"data", "train-tokenizer", "--output=s3://box/", b.dir / "d.csv"}, "s3://box/: names no object");
  refused({"data", "tokenize", "--tokenizer=s3://box/d.csv", "--output=" + b.dir / "t", b.dir / "d.csv"},
          "s3://box/d.csv");
  CHECK(b.below("") == before);
  CHECK(b.store.uploads.empty());
}

}  // namespace command_buckets_test
