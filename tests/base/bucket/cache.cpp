// SPDX-License-Identifier: Apache-2.0
#include "edl/base/bucket/cache.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

#include "base/bucket/unkind_store.hpp"
#include "scratch_directory.hpp"

namespace cache_test {

using edl::bucket::cache_options;
using edl::bucket::copy_of;
using test::request, test::says, test::thrown, test::unkind_store, test::wire;

namespace {

std::string text_of(std::string const& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct fixture {
  scratch dir;
  cache_options options(unkind_store const& of) const {
    return {.directory = dir.path(),
            .range = 1000,
            .store = of.options(),
            .log = edl::logger(edl::severity::critical)};
  }
};

}  // namespace

TEST_CASE("what a path names is copied once, whatever it is") {
  fixture const f;
  unkind_store double_;
  std::string large;
  for (int i = 0; i < 12'345; ++i) large += char(i * 7);
  double_.objects = {{"d/large.csv", large}, {"d/empty", ""}, {"d/cat/1.png", "p"}, {"e.csv", "e"}};
  auto const o = f.options(double_);
  {
    auto const one = copy_of("s3://box/d/large.csv", o);
    CHECK(one.path().ends_with("/large.csv"));
    CHECK(text_of(one.path()) == large);
  }
  for (char const* url : {"s3://box/d/", "s3://box/d"}) {
    auto const all = copy_of(url, o);
    CHECK(text_of(all.path() + "/large.csv") == large);
    CHECK(text_of(all.path() + "/cat/1.png") == "p");
    CHECK(std::filesystem::file_size(all.path() + "/empty") == 0);
  }
  auto const some = copy_of("s3://box/d/*.csv", o);
  CHECK(some.path().ends_with("/*.csv"));
  CHECK(text_of(std::filesystem::path(some.path()).parent_path() / "large.csv") == large);
  CHECK_FALSE(std::filesystem::exists(std::filesystem::path(some.path()).parent_path() / "empty"));
  // From now on only lists are asked for.
  int const before = double_.requests();
  CHECK(text_of(copy_of("s3://box/d", o).path() + "/large.csv") == large);
  CHECK(double_.requests() == before + 2);
  // Another content is another copy.
  auto const old = copy_of("s3://box/e.csv", o);
  double_.objects["e.csv"] = "E";
  CHECK(text_of(copy_of("s3://box/e.csv", o).path()) == "E");
  CHECK(text_of(old.path()) == "e");
  CHECK(says(thrown([&] { copy_of("s3://box/x", o); }),
             {"s3://box/x: no such object, and none below it in http"}));
}

TEST_CASE("several ranges are asked for at a time, of a store that fails now and then") {
  fixture const f;
  std::atomic<int> n{0};
  unkind_store double_([&](request const& r, wire& w) {
    if (r.field("If-Match").empty()) return false;
    int const i = n++;
    if (i % 3 == 0) return unkind_store::refuse(w, 503, "SlowDown"), true;
    if (i % 7 == 1) return w.cut(), true;
    return false;
  });
  std::string large;
  for (int i = 0; i < 50'000; ++i) large += char(i * i >> 3);
  for (int i = 0; i < 5; ++i) double_.objects["d/" + std::to_string(i)] = large + char(i);
  auto const all = copy_of("s3://box/d", f.options(double_));
  for (int i = 0; i < 5; ++i) CHECK(text_of(all.path() + "/" + std::to_string(i)) == large + char(i));
  CHECK(double_.connections() > 1);
}

TEST_CASE("a wrong checksum is an error, and the bytes are not kept") {
  fixture const f;
  bool damage = true;
  unkind_store* self = nullptr;
  unkind_store double_([&](request const& r, wire& w) {
    if (r.field("If-Match").empty() || !damage) return false;
    w.send("HTTP/1.1 206 P\r\nETag: " + self->tag_of("k") +
           "\r\nContent-Range: bytes 0-3/4\r\nContent-Length: 4\r\n\r\ntexT");
    return true;
  });
  self = &double_;
  double_.objects["k"] = "text";
  auto const o = f.options(double_);
  CHECK(says(thrown([&] { copy_of("s3://box/k", o); }),
             {"s3://box/k: the received bytes have the MD5 sum", "ETag"}));
  damage = false;
  CHECK(text_of(copy_of("s3://box/k", o).path()) == "text");
  // An ETag that is no MD5 sum says nothing of the content.
  double_.objects["k"] = "more";
  double_.tags["k"] = "\"d41d8cd98f00b204e9800998ecf8427e-2\"";
  CHECK(text_of(copy_of("s3://box/k", o).path()) == "more");
}

TEST_CASE("a sum that the store sends counts, and not an ETag that only looks like an MD5 sum") {
  fixture const f;
  std::string sum = "x-amz-checksum-crc32: y/Q5Jg==";  // of 123456789
  unkind_store* self = nullptr;
  unkind_store double_([&](request const& r, wire& w) {
    if (r.field("x-amz-checksum-mode").empty()) return false;
    w.send("HTTP/1.1 200 OK\r\nETag: " + self->tag_of("k") + "\r\n" + sum +
           "\r\nContent-Length: 9\r\n\r\n123456789");
    return true;
  });
  self = &double_;
  double_.objects["k"] = "123456789";
  double_.tags["k"] = "\"00112233445566778899aabbccddeeff\"";  // of a store that encrypts
  CHECK(text_of(copy_of("s3://box/k", f.options(double_)).path()) == "123456789");
  sum = "x-amz-checksum-crc64nvme: rosUhgp5mIg=";
  double_.tags["k"] = "\"10112233445566778899aabbccddeeff\"";
  CHECK(text_of(copy_of("s3://box/k", f.options(double_)).path()) == "123456789");
  for (auto const& [wrong, name] :
       {std::pair{"x-amz-checksum-crc32: AAAAAA==", "the CRC-32 y/Q5Jg==, but the store sends AAAAAA=="},
        {"x-amz-checksum-crc64nvme: AAAAAAAAAAA=",
         "the CRC-64 rosUhgp5mIg=, but the store sends AAAAAAAAAAA="}}) {
    sum = wrong;
    double_.tags["k"] = "\"20112233445566778899aabbccddeeff\"";
    CHECK(says(thrown([&] { copy_of("s3://box/k", f.options(double_)); }),
               {std::string("s3://box/k: the received bytes have ") + name}));
  }
}

TEST_CASE("what was copied before it broke off is not copied again") {
  fixture const f;
  std::mutex mutex;
  std::vector<std::string> asked;
  bool fails = true;
  unkind_store double_([&](request const& r, wire& w) {
    if (r.field("If-Match").empty()) return false;
    std::lock_guard const lock(mutex);
    asked.push_back(r.target);
    if (!fails || r.target != "/box/d/2") return false;
    return unkind_store::refuse(w, 403, "AccessDenied"), true;
  });
  for (int i = 0; i < 3; ++i) double_.objects["d/" + std::to_string(i)] = "text " + std::to_string(i);
  auto o = f.options(double_);
  o.connections = 1;
  CHECK(says(thrown([&] { copy_of("s3://box/d", o); }), {"s3://box/d/2: ", "403 AccessDenied"}));
  CHECK(asked.size() == 3);
  fails = false;
  asked.clear();
  CHECK(text_of(copy_of("s3://box/d", o).path() + "/0") == "text 0");
  CHECK(asked == std::vector<std::string>{"/box/d/2"});
}

TEST_CASE("the longest unused copy makes room, and one in use never does") {
  fixture const f;
  unkind_store double_;
  for (char c : {'a', 'b', 'c'}) double_.objects[std::string(1, c)] = std::string(100, c);
  auto o = f.options(double_);
  o.most_bytes = 250;
  std::string first, second;
  {
    auto const a = copy_of("s3://box/a", o), b = copy_of("s3://box/b", o);
    first = a.path(), second = b.path();
    CHECK(says(thrown([&] { copy_of("s3://box/c", o); }),
               {"no room for 100 bytes: 200 bytes are in use", "--data_cache_size is 250"}));
  }
  auto const b = copy_of("s3://box/b", o);
  CHECK(text_of(copy_of("s3://box/c", o).path()) == std::string(100, 'c'));
  CHECK_FALSE(std::filesystem::exists(first));
  CHECK(text_of(second) == std::string(100, 'b'));
  o.most_bytes = 99;
  CHECK(says(thrown([&] { copy_of("s3://box/a", o); }),
             {"1 objects have 100 bytes, but --data_cache_size is 99"}));
}

TEST_CASE("those that want one copy at a time fetch it once") {
  fixture const f;
  std::atomic<int> fetched{0};
  unkind_store double_([&](request const& r, wire&) {
    fetched += !r.field("If-Match").empty();
    return false;
  });
  double_.objects["k"] = std::string(500, 'x');
  auto const o = f.options(double_);
  std::vector<std::jthread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { good += text_of(copy_of("s3://box/k", o).path()).size() == 500; });
  threads.clear();
  CHECK(good == 4);
  CHECK(fetched == 1);
}

TEST_CASE("a key that would leave the copy's directory is refused") {
  fixture const f;
  for (char const* key : {"d/../../x", "d//x", "d/./x", "d/x.edl-part"}) {
    unkind_store double_;
    double_.objects[key] = "x";
    CHECK(says(thrown([&] { copy_of("s3://box/d/", f.options(double_)); }),
               {"is not a valid file name: rename it"}));
  }
}

TEST_CASE("sizes whose sum is more than a number holds are larger than the cache") {
  fixture const f;
  unkind_store double_([](request const& r, wire& w) {
    if (r.target.find("list-type") == std::string::npos) return false;
    std::string text = "<Name>box</Name><IsTruncated>false</IsTruncated>";
    for (char const* key : {"d/a", "d/b"})
      text += std::string("<Contents><Key>") + key +
              "</Key><ETag>e</ETag><Size>9223372036854775808</Size></Contents>";
    w.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
    return true;
  });
  CHECK(says(thrown([&] { copy_of("s3://box/d/", f.options(double_)); }),
             {"2 objects have 18446744073709551615 bytes, but --data_cache_size is"}));
}

TEST_CASE("a fetch that takes long tells how far it is, also when nothing comes") {
  struct lines final : edl::line_sink {
    std::mutex mutex;
    std::condition_variable changed;
    std::string all;
    void write(std::string_view more) override {
      std::lock_guard const lock(mutex);
      all += more;
      changed.notify_all();
    }
    void wait_for(std::string const& text) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return all.find(text) != all.npos; });
    }
  };
  auto const told = std::make_shared<lines>();
  fixture const f;
  unkind_store double_([&](request const& r, wire&) {
    if (r.field("If-Match").empty()) return false;
    bool const first = r.field("Range") == "bytes=0-999";
    told->wait_for(first ? ": fetched 0 of 1500 bytes" : ": fetched 1000 of 1500 bytes");
    return false;
  });
  double_.objects["k"] = std::string(1500, 'x');
  auto o = f.options(double_);
  o.connections = 1;
  o.progress = std::chrono::milliseconds(1);
  o.log = edl::logger(edl::severity::info, "", edl::log_target{.to = told});
  CHECK(text_of(copy_of("s3://box/k", o).path()).size() == 1500);
}

}  // namespace cache_test
