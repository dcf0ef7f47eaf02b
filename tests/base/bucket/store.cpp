// SPDX-License-Identifier: Apache-2.0
#include "edl/base/bucket/store.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <map>

#include "base/bucket/unkind_store.hpp"
#include "edl/core/storage_error.hpp"
#include "scratch_directory.hpp"

namespace store_test {

using edl::bucket::object;
using edl::bucket::store;
using test::request, test::says, test::thrown, test::unkind_store, test::wire;

namespace {

std::string read(store const& s, object const& o) {
  std::string all;
  s.read(o, 0, o.size, [&](std::string_view part) { all += part; });
  return all;
}

}  // namespace

TEST_CASE("objects are found, listed by pages and read by ranges") {
  unkind_store double_;
  for (int i = 0; i < 10; ++i) double_.objects["a/" + std::to_string(i)] = std::string(std::size_t(i), 'x');
  double_.objects["a/b c%2F+&<é>"] = "named";
  double_.objects["a/folder/"] = "";
  double_.objects["b"] = "other";
  for (std::size_t const page : {1000, 3, 1}) {
    double_.page = page;
    double_.backwards = page == 3;
    store const s("box", double_.options());
    auto const all = s.list("a/");
    REQUIRE(all.size() == 11);
    for (std::size_t i = 0; i < 10; ++i) {
      CHECK(all[i].key == "a/" + std::to_string(i));
      CHECK(all[i].size == i);
      CHECK(all[i].etag == "\"" + test::md5(std::string(i, 'x')) + "\"");
    }
    CHECK(read(s, all[10]) == "named");
    CHECK(s.list("none").empty());
    CHECK(s.find("b")->size == 5);
    CHECK(s.find("a/0")->size == 0);
    CHECK_FALSE(s.find("a"));
  }
}

TEST_CASE("what nobody wants is passed over in a list, and names are asked for without what is below them") {
  unkind_store double_([&](request const&, wire& w) {
    return double_.lists % 3 == 1 && (++double_.lists, unkind_store::refuse(w, 503, "SlowDown"), true);
  });
  for (int i = 0; i < 30; ++i) double_.objects["p/a/" + std::to_string(i)] = "x";
  for (char const* key : {"p/a", "p/a-", "p/a0", "p/b/1", "p/b/é", "p/z", "q"}) double_.objects[key] = "x";
  double_.page = 4;
  auto const skip = [](std::vector<edl::bucket::object> const& page) -> std::optional<std::string> {
    if (page.back().key.starts_with("p/a/")) return "p/a/";
    return std::nullopt;
  };
  for (auto const& [backwards, starts_after] : {std::pair{false, true}, {true, true}, {false, false}}) {
    CAPTURE(backwards);
    CAPTURE(starts_after);
    double_.backwards = backwards;
    double_.starts_after = starts_after;
    store const s("box", double_.options());
    auto const all = s.list("p/", skip);
    bool const passed = !backwards && starts_after;
    CHECK(all.size() == (passed ? 8 : 36));
    for (char const* key : {"p/a", "p/a-", "p/a0", "p/b/1", "p/b/é", "p/z"})
      CHECK(std::ranges::count(all, key, &edl::bucket::object::key) == 1);
    CHECK(s.names("p/") == std::vector<std::string>{"a", "a-", "a0", "b", "z"});
    CHECK(says(thrown([&] { s.list("p/", {}, 20); }), {"s3://box/p/", "more than 20 objects"}));
  }
}

TEST_CASE("bursts of 503, silence and cut answers are no errors, and no byte comes twice") {
  std::atomic<int> n{0};
  unkind_store* self = nullptr;
  unkind_store double_([&](request const& r, wire& w) {
    if (r.field("If-Match").empty()) return false;
    int const i = n++;
    if (i < 5) return unkind_store::refuse(w, i % 2 ? 500 : 503, "SlowDown"), true;
    if (i % 2) return false;
    // Some bytes of the answer, and then none.
    std::string const range = r.field("Range"), all = self->objects.at("k");
    std::size_t const from = range.empty() ? 0 : std::stoul(range.substr(6));
    w.send("HTTP/1.1 206 Partial\r\nETag: " + self->tag_of("k") + "\r\nContent-Range: bytes " +
           std::to_string(from) + "-" + std::to_string(all.size() - 1) + "/" + std::to_string(all.size()) +
           "\r\nContent-Length: " + std::to_string(all.size() - from) + "\r\n\r\n" + all.substr(from, 1000));
    i % 4 ? w.cut() : w.close();
    return true;
  });
  self = &double_;
  std::string all;
  for (int i = 0; i < 10'000; ++i) all += char('a' + i % 26);
  double_.objects["k"] = all;
  store const s("box", double_.options());
  CHECK(read(s, *s.find("k")) == all);
  CHECK(n > 5);
}

TEST_CASE("a short object is read whole, or not at all") {
  int n = 0;
  unkind_store double_([&](request const&, wire& w) {
    if (n++ % 3 == 2) return false;
    if (n % 3 == 1) return unkind_store::refuse(w, 503, "SlowDown"), true;
    w.send("HTTP/1.1 200 OK\r\nETag: \"0\"\r\nContent-Length: 9\r\n\r\n1234");
    return w.cut(), true;
  });
  double_.objects = {{"k", "123456789"}, {"empty", ""}};
  store const s("box", double_.options());
  CHECK(s.get("k", 9)->first == "123456789");
  CHECK(s.get("k", 9)->second.etag == double_.tag_of("k"));
  CHECK(s.get("empty", 9)->first.empty());
  CHECK_FALSE(s.get("none", 9));
  CHECK(says(thrown([&] { s.get("k", 8); }), {"s3://box/k: it has more than 8 bytes"}));
  double_.sums["k"] = "4waSgg==";
  CHECK(says(thrown([&] { s.get("k", 9); }), {"s3://box/k: the received bytes have the CRC-32C", "damaged"}));
}

TEST_CASE("where this machine's clock is wrong, the store's is taken") {
  unkind_store double_([](request const& r, wire& w) {
    return !r.field("x-amz-date").starts_with("20400101T00") &&
           (unkind_store::refuse(w, 403, "RequestTimeTooSkewed", "Date: Sun, 01 Jan 2040 00:00:00 GMT\r\n"),
            true);
  });
  double_.objects["k"] = "x";
  auto o = double_.options();
  o.now = [] { return std::time_t{1'700'000'000}; };
  store const s("box", o);
  CHECK(s.find("k")->size == 1);
  CHECK(double_.requests() == 2);
  CHECK(s.find("k")->size == 1);
  CHECK(double_.requests() == 3);
  // A store that sends another time than it takes is asked no third time.
  unkind_store mad([](request const&, wire& w) {
    return unkind_store::refuse(w, 403, "RequestTimeTooSkewed", "Date: Sun, 01 Jan 2040 00:00:00 GMT\r\n"),
           true;
  });
  CHECK(says(thrown([&] { store("box", mad.options()).find("k"); }), {"clock is wrong"}));
  CHECK(mad.requests() == 2);
}

TEST_CASE("what does not pass says bucket, key, status, code and request, and the way out") {
  struct one {
    int status;
    char const *code, *more, *way;
  };
  for (auto const& [status, code, more, way] :
       {one{403, "AccessDenied", "", "needs s3:ListBucket"}, one{403, "RequestTimeTooSkewed", "", "clock"},
        one{400, "ExpiredToken", "", "the credentials of a test have expired: renew"},
        one{301, "PermanentRedirect", "x-amz-bucket-region: eu-west-3\r\n", "set AWS_REGION=eu-west-3"},
        one{404, "NoSuchBucket", "", "AWS_ENDPOINT_URL"}}) {
    CAPTURE(code);
    unkind_store double_(
        [&](request const&, wire& w) { return unkind_store::refuse(w, status, code, more), true; });
    store const s("box", double_.options());
    CHECK(says(thrown([&] { s.find("k/l"); }),
               {"s3://box/k/l: the object store http://127.0.0.1:", std::to_string(status), code, "said so",
                "(request R1)", way}));
    CHECK(double_.requests() == 1);
  }
  unkind_store busy([&](request const&, wire& w) { return unkind_store::refuse(w, 503, "SlowDown"), true; });
  auto o = busy.options();
  o.retry_timeout = std::chrono::milliseconds(300);
  store const s("box", o);
  CHECK(says(thrown([&] { s.list("p"); }), {"s3://box/p: the object store", "503 SlowDown", "(request R1)",
                                            "try again later", "requested ", " times"}));
  CHECK(busy.requests() > 1);
  CHECK(says(thrown([&] { store("No_Bucket", busy.options()); }),
             {"s3://No_Bucket: this is not the name of a bucket"}));
}

TEST_CASE("an object that is another one meanwhile is an error") {
  unkind_store double_;
  double_.objects["k"] = "before";
  store const s("box", double_.options());
  auto const o = *s.find("k");
  double_.objects["k"] = "after!";
  CHECK(says(thrown([&] { read(s, o); }), {"s3://box/k: ", "412 PreconditionFailed", "start again"}));
  double_.objects.clear();
  CHECK(says(thrown([&] { read(s, o); }), {"s3://box/k: it has changed"}));
  // A store that does not know If-Match.
  unkind_store careless([](request const& r, wire& w) {
    if (r.field("If-Match").empty()) return false;
    w.send("HTTP/1.1 206 P\r\nETag: \"x\"\r\nContent-Range: bytes 0-5/6\r\nContent-Length: 6\r\n\r\nafter!");
    return true;
  });
  careless.objects["k"] = "before";
  store const t("box", careless.options());
  CHECK(says(thrown([&] { read(t, *t.find("k")); }), {"s3://box/k: it has changed"}));
}

TEST_CASE("credentials that have expired are looked for again") {
  unkind_store double_([](request const& r, wire& w) {
    bool const old = r.field("Authorization").find("Credential=A/") != std::string::npos;
    if (old) unkind_store::refuse(w, 400, "ExpiredToken");
    return old;
  });
  double_.objects["k"] = "text";
  double_.user = "N";
  auto o = double_.options();
  auto times = std::make_shared<int>(0);
  o.find = [first = o.find, times] {
    auto a = first();
    if ((*times)++ > 0) a.who.key = "N";
    return a;
  };
  store const s("box", o);
  CHECK(read(s, *s.find("k")) == "text");
  CHECK(*times == 2);
}

TEST_CASE("a store that answers nonsense is told apart") {
  auto const with = [](std::string const& answer, bool list) {
    unkind_store double_([&](request const& r, wire& w) {
      if (!list && r.field("If-Match").empty()) return false;
      return w.send(answer), true;
    });
    double_.objects["k"] = "before";
    store const s("box", double_.options());
    return thrown([&] {
      if (list)
        s.list("k");
      else
        read(s, *s.find("k"));
    });
  };
  auto const body = [](std::string const& text) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
  };
  std::string const tag = "ETag: \"" + test::md5("before") + "\"\r\n";
  CHECK(says(with(body("<html>"), true), {"s3://box/k: the reply is not a list of objects: '<html>'"}));
  CHECK(says(with(body("<KeyCount>1</KeyCount><Contents><Key>other</Key></Contents>"), true),
             {"has an invalid entry"}));
  CHECK(says(with(body("<KeyCount>1</KeyCount><IsTruncated>true</IsTruncated>"), true),
             {"does not say where it continues"}));
  CHECK(says(with(body("<KeyCount>0</KeyCount><IsTruncated>true</IsTruncated><NextContinuationToken>t"
                       "</NextContinuationToken>"),
                  true),
             {"the same page"}));
  CHECK(
      says(with("HTTP/1.1 206 P\r\n" + tag + "Content-Range: bytes 1-6/9\r\nContent-Length: 6\r\n\r\nbefore",
                false),
           {"replies with 'bytes 1-6/9' instead of 'bytes 0-5/6'"}));
  CHECK(
      says(with("HTTP/1.1 206 P\r\n" + tag + "Content-Range: bytes 0-5/6\r\nContent-Length: 7\r\n\r\nbefore!",
                false),
           {"sends more than was requested"}));
}

TEST_CASE("a list that has no end, or lacks entries, is an error") {
  auto const with = [](std::function<std::string(int)> const& page) {
    std::atomic<int> n{0};
    unkind_store double_([&](request const&, wire& w) {
      std::string const text = page(n++);
      w.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
      return true;
    });
    store const s("box", double_.options());
    return thrown([&] { s.list(""); });
  };
  auto const next = [](int token, std::string const& more = {}) {
    return "<Name>box</Name><IsTruncated>true</IsTruncated><NextContinuationToken>" + std::to_string(token) +
           "</NextContinuationToken>" + more;
  };
  std::string const end = "<Name>box</Name><IsTruncated>false</IsTruncated>";
  CHECK(says(with([&](int i) { return i < 1000 ? next(i % 2) : end; }), {"the same page of the list again"}));
  CHECK(says(with([&](int i) { return i < 1000 ? next(i) : end; }), {"101 pages of the list in a row"}));
  CHECK(with([&](int i) { return i < 100 ? next(i) : end; }) == "nothing was thrown");
  auto const one = [](std::string const& key, std::string const& size) {
    return "<Contents><Key>" + key + "</Key><ETag>e</ETag><Size>" + size + "</Size></Contents>";
  };
  CHECK(with([&](int) { return end + one("a", "1") + one("b", "2"); }) == "nothing was thrown");
  for (char const* size : {"-1", "NaN", "1e3", "18446744073709551616", ""})
    CHECK(says(with([&](int) { return end + one("a", size); }), {"has an invalid entry"}));
  CHECK(says(with([&](int) { return end + "<Contents></Contents>" + one("b", "2"); }),
             {"has an invalid entry"}));
  CHECK(says(with([&](int) { return end + one("a", "1") + "<Contents><Key>b</Key>"; }),
             {"has an invalid entry"}));
  CHECK(says(with([&](int) { return "<Name>box</Name><IsTruncated>yes</IsTruncated>" + one("a", "1"); }),
             {"the list has the IsTruncated 'yes'"}));
}

TEST_CASE("credentials that are new each time and have always expired are an error") {
  unkind_store double_(
      [](request const&, wire& w) { return unkind_store::refuse(w, 400, "ExpiredToken"), true; });
  auto o = double_.options();
  o.find = [first = o.find, n = std::make_shared<int>(0)] {
    auto a = first();
    a.who.key = "A" + std::to_string(++*n);
    return a;
  };
  CHECK(says(thrown([&] { store("box", o).find("k"); }), {"have expired: renew them"}));
  CHECK(double_.requests() == 2);
}

TEST_CASE("a redirection is not followed, and what it would send is not sent") {
  unkind_store other;
  for (int const status : {301, 302, 307, 308}) {
    unkind_store double_([&](request const&, wire& w) {
      unkind_store::refuse(w, status, "TemporaryRedirect", "Location: " + other.url() + "/box/k\r\n");
      return true;
    });
    store const s("box", double_.options());
    CHECK(says(thrown([&] { s.find("k"); }), {"replies " + std::to_string(status)}));
    CHECK(double_.requests() == 1);
  }
  CHECK(other.requests() == 0);
}

namespace {

struct file {
  scratch dir;
  std::string text;
  explicit file(std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) text += char('a' + i * i % 23);
    std::ofstream(dir / "f", std::ios::binary) << text;
  }
  edl::input_file open() const { return edl::input_file(dir / "f"); }
};

edl::bucket::store_options in_parts(unkind_store const& of) {
  auto o = of.options();
  o.part = 1000;
  return o;
}

bool writes(request const& r) { return r.method == "PUT" || r.method == "POST"; }

}  // namespace

TEST_CASE("an object is written, replaced and removed, and its conditions hold") {
  unkind_store double_;
  store const s("box", double_.options());
  auto const first = s.put("a b/k+", "one");
  REQUIRE(first);
  CHECK(first->size == 3);
  CHECK(first->etag == s.find("a b/k+")->etag);
  CHECK(read(s, *first) == "one");
  CHECK_FALSE(s.put("a b/k+", "two", {.absent = true}));
  CHECK_FALSE(s.put("a b/k+", "two", {.etag = "\"other\""}));
  CHECK_FALSE(s.put("none", "two", {.etag = first->etag}));
  CHECK(double_.objects == std::map<std::string, std::string>{{"a b/k+", "one"}});
  auto const second = s.put("a b/k+", "two", {.etag = first->etag});
  REQUIRE(second);
  CHECK(read(s, *second) == "two");
  CHECK(s.put("empty", "", {.absent = true})->size == 0);
  CHECK(s.find("empty")->size == 0);
  s.remove("a b/k+");
  s.remove("a b/k+");
  CHECK_FALSE(s.find("a b/k+"));
}

TEST_CASE("a large file is uploaded in parts, which come whole and in order") {
  for (std::size_t const bytes : {0, 1, 1000, 1001, 7654}) {
    CAPTURE(bytes);
    unkind_store double_;
    file const f(bytes);
    store const s("box", in_parts(double_));
    auto const made = s.put("k", f.open(), {.absent = true});
    REQUIRE(made);
    CHECK(made->size == bytes);
    CHECK(made->etag == double_.tag_of("k"));
    CHECK(double_.objects.at("k") == f.text);
    CHECK(double_.begun == (bytes > 1000));
    CHECK(double_.uploads.empty());
    CHECK_FALSE(s.put("k", f.open(), {.absent = true}));
    CHECK(double_.uploads.empty());
  }
}

TEST_CASE("the store copies an object, whole or in parts, though replies are lost") {
  for (std::size_t const bytes : {0, 1, 320, 321, 1000}) {
    CAPTURE(bytes);
    unkind_store* self = nullptr;
    std::map<std::string, int> tries;
    unkind_store double_([&](request const& r, wire& w) {
      std::lock_guard const lock(self->mutex);
      int const n = tries[r.method + r.target]++ % 4;
      if (n == 0) return self->serve_silently(r, w), true;
      if (n == 1) return unkind_store::refuse(w, 503, "SlowDown"), true;
      if (n == 3 || !writes(r) || r.target.ends_with("uploads=")) return false;
      std::string const late = "<Error><Code>InternalError</Code><Message>no</Message></Error>";
      w.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(late.size()) + "\r\n\r\n" + late);
      return true;
    });
    self = &double_;
    file const f(bytes);
    double_.objects["a b/k+"] = f.text;
    auto o = double_.options();
    o.part = 10;  // the store copies 320 bytes in one request
    store const s("box", o);
    CHECK(s.copy("a b/k+", "to"));
    CHECK(double_.objects.at("to") == f.text);
    CHECK(double_.objects.size() == 2);
    CHECK_FALSE(s.copy("none", "to"));
    for (auto const& [id, begun] : double_.uploads) CHECK(begun.parts.empty());  // whose first reply was lost
  }
  // One that changes between its parts, or that the store does not give.
  file const f(1000);
  for (bool const changes : {true, false}) {
    unkind_store* self = nullptr;
    unkind_store double_([&](request const& r, wire& w) {
      if (!r.target.ends_with("partNumber=2")) return false;
      std::lock_guard const lock(self->mutex);
      if (changes) return self->objects["k"] += "x", self->tags.clear(), false;
      return unkind_store::refuse(w, 403, "AccessDenied"), true;
    });
    self = &double_;
    double_.objects["k"] = f.text;
    auto o = double_.options();
    o.part = 10, o.connections = 1;
    store const s("box", o);
    if (changes)
      CHECK_FALSE(s.copy("k", "to"));
    else
      CHECK(says(thrown<edl::storage_error>([&] { s.copy("k", "to"); }),
                 {"s3://box/k, copied to to, part 2 of 4: ", "403 AccessDenied"}));
    CHECK_FALSE(double_.objects.contains("to"));
    CHECK(double_.uploads.empty());
  }
}

TEST_CASE("a write whose reply is lost is recognised as one's own") {
  // The first so many writes take place, and their replies are lost; in bursts with 503.
  file const f(3500);
  for (bool const large : {false, true})
    for (int const lost : {1, 2, 3}) {
      CAPTURE(large);
      CAPTURE(lost);
      unkind_store* self = nullptr;
      std::map<std::string, int> tries;
      unkind_store double_([&](request const& r, wire& w) {
        if (!writes(r)) return false;
        std::lock_guard const lock(self->mutex);
        int const n = tries[r.method + r.target]++;
        if (n % 2 == 1) return unkind_store::refuse(w, 503, "SlowDown"), true;
        if (n / 2 >= lost) return false;
        return self->serve_silently(r, w), true;
      });
      self = &double_;
      store const s("box", in_parts(double_));
      auto const put = [&](edl::bucket::only_if const& what) {
        tries.clear();
        return large ? s.put("k", f.open(), what) : s.put("k", "new", what);
      };
      auto const made = put({.absent = true});
      REQUIRE(made);
      CHECK(read(s, *made) == (large ? f.text : "new"));
      CHECK_FALSE(put({.absent = true}));
      auto const again = put({.etag = made->etag});
      REQUIRE(again);
      CHECK(again->etag == s.find("k")->etag);
    }
}

TEST_CASE("a write whose reply is lost, and which another one has replaced, is not one's own") {
  unkind_store* self = nullptr;
  int n = 0;
  unkind_store double_([&](request const& r, wire& w) {
    if (r.method != "PUT" || n++ > 0) return false;
    self->serve_silently(r, w);
    self->objects["k"] = "other";
    self->marks["k"] = "theirs";
    return true;
  });
  self = &double_;
  store const s("box", double_.options());
  CHECK_FALSE(s.put("k", "mine", {.absent = true}));
  CHECK(double_.objects.at("k") == "other");
}

TEST_CASE("an upload that fails leaves no parts, and says which part it was") {
  file const f(5000);
  for (char const* where : {"partNumber=3", "uploadId=id%2B1"}) {
    CAPTURE(where);
    unkind_store double_([&](request const& r, wire& w) {
      bool const here = writes(r) && r.target.ends_with(where);
      return here && (unkind_store::refuse(w, 403, "AccessDenied"), true);
    });
    store const s("box", in_parts(double_));
    CHECK(says(thrown([&] { s.put("k", f.open()); }),
               {"s3://box/k", where[0] == 'p' ? ", part 3 of 5: " : ": ", "403 AccessDenied", "(request R1)",
                "needs s3:PutObject"}));
    CHECK(double_.begun == 1);
    CHECK(double_.uploads.empty());
    CHECK(double_.objects.empty());
  }
  // The store never takes a part.
  unkind_store busy([&](request const& r, wire& w) {
    return r.target.ends_with("partNumber=2") && (unkind_store::refuse(w, 503, "SlowDown"), true);
  });
  auto o = in_parts(busy);
  o.retry_timeout = std::chrono::milliseconds(20);
  CHECK(says(thrown<edl::storage_error>([&] { store("box", o).put("k", f.open()); }),
             {"s3://box/k, part 2 of 5: ", "503 SlowDown", "requested "}));
  CHECK(busy.uploads.empty());
}

TEST_CASE("a store that replies 200 and then an error has not joined the parts") {
  file const f(2500);
  for (char const* code : {"InternalError", "EntityTooSmall", "", "<html>"}) {
    CAPTURE(code);
    int n = 0;
    unkind_store double_([&](request const& r, wire& w) {
      if (r.method != "POST" || r.target.ends_with("uploads=") || n++ > 2) return false;
      std::string const text = code[0] == '\0' || code[0] == '<' ? code
                                                                 : std::string("  <Error><Code>") + code +
                                                                       "</Code><Message>no</Message></Error>";
      w.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text);
      return true;
    });
    store const s("box", in_parts(double_));
    bool const passes = code[0] == 'I' || code[0] == '\0';
    if (passes)
      CHECK(s.put("k", f.open())->size == 2500);
    else if (code[0] == '<')
      CHECK(says(thrown([&] { s.put("k", f.open()); }),
                 {"s3://box/k: the parts cannot be joined: the store replies '<html>'"}));
    else
      CHECK(says(thrown([&] { s.put("k", f.open()); }),
                 {"s3://box/k: the parts cannot be joined: EntityTooSmall no"}));
    CHECK(double_.uploads.empty());
    CHECK(double_.objects.contains("k") == passes);
  }
}

TEST_CASE("bytes that are damaged on their way are noticed, there and back") {
  unkind_store double_([&](request const& r, wire& w) {
    return r.method == "PUT" && r.target == "/box/bad" &&
           (unkind_store::refuse(w, 400, "XAmzContentSHA256Mismatch"), true);
  });
  store const s("box", double_.options());
  CHECK(says(thrown([&] { s.put("bad", "x"); }), {"s3://box/bad: ", "400 XAmzContentSHA256Mismatch"}));
  auto const o = *s.put("k", "123456789");
  CHECK(read(s, o) == "123456789");
  double_.sums["k"] = "4waSgw==";  // CRC-32C's check value, e3069283
  CHECK(read(s, o) == "123456789");
  for (char const* sum : {"4waSgg==", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}) {
    double_.sums["k"] = sum;
    CHECK(says(thrown([&] { read(s, o); }), {"s3://box/k: the received bytes have the ", sum, "damaged"}));
  }
  double_.sums["k"] = "4waSgg==-3";  // of parts
  CHECK(read(s, o) == "123456789");
}

TEST_CASE("credentials that expire during an upload are renewed") {
  file const f(5000);
  std::atomic<int> n{0};
  unkind_store double_([&](request const& r, wire& w) {
    bool const old = r.field("Authorization").find("Credential=A/") != std::string::npos;
    std::lock_guard const lock(double_.mutex);  // none comes between this and its answer
    if (old && ++n < 3) return double_.serve(r, w), true;
    return old && (unkind_store::refuse(w, 400, "ExpiredToken"), true);
  });
  auto o = in_parts(double_);
  o.find = [first = o.find, &n, &double_] {
    auto a = first();
    if (n < 3) return a;
    std::lock_guard const lock(double_.mutex);
    a.who.key = double_.user = "N";
    return a;
  };
  CHECK(store("box", o).put("k", f.open())->size == 5000);
  CHECK(double_.objects.at("k") == f.text);
}

}  // namespace store_test
