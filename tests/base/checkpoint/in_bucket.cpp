// SPDX-License-Identifier: Apache-2.0
// Checkpoints in a bucket of a store that is not always kind.
#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "base/bucket/unkind_store.hpp"
#include "base/checkpoint/example_checkpoint.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/directory_lock.hpp"
#include "edl/core/generation.hpp"

namespace in_bucket_test {

using namespace edl::checkpoint;
using namespace std::chrono_literals;
using edl::in_epoch;
using edl::bucket::place;
using test::request, test::unkind_store, test::wire;

namespace {

/// Loses the reply to the first try of every write, refuses every fifth request in pairs, cuts some bodies,
/// and lists three keys at a time.
struct bucket {
  scratch dir;
  std::atomic<int> requests{0}, gets{0};
  std::map<std::string, int> writes;
  bool kind = false;
  std::string faster;  // a text that comes just before that of job "other"
  unkind_store store{[this](request const& r, wire& w) {
    if (!faster.empty() && r.target.ends_with("/.edl-lock") && contains(r.body, "\"other\"")) {
      std::lock_guard const lock(store.mutex);
      store.objects["c/.edl-lock"] = faster;
      store.sums.clear();
    }
    if (kind) return false;
    int const i = requests++;
    if (i % 10 == 3 || i % 10 == 4) return unkind_store::refuse(w, 503, "SlowDown"), true;
    if (r.method == "GET") return gets++ % 7 == 2 && (w.cut(), true);
    std::lock_guard const lock(store.mutex);
    return writes[r.method + r.target]++ % 2 == 0 && (store.serve_silently(r, w), true);
  }};
  edl::bucket::cache_options options{
      .directory = dir / "cache", .store = store.options(), .log = edl::logger(edl::severity::critical)};
  place at{"s3://box/c", options};

  bucket() {
    store.page = 3;
    options.store.part = 1000;
    at = place("s3://box/c", options);
  }

  std::vector<std::string> keys(std::string const& prefix = "c/") {
    std::lock_guard const lock(store.mutex);
    std::vector<std::string> all;
    for (auto const& [key, text] : store.objects)
      if (key.starts_with(prefix)) all.push_back(key);
    return all;
  }
  std::string& object(std::string const& key) {
    std::lock_guard const lock(store.mutex);
    return store.objects.at(key);
  }

  lock_options lock(std::string const& job) const {
    return {
        .directory = at, .description = "--checkpoint_dir=s3://box/c", .job = job, .beat = 1h, .look = 1ms};
  }
};

example_state const state;

std::string key_of(std::string const& path, std::string const& name) {
  return path.substr(std::string("s3://box/").size()) + "/" + name;
}

}  // namespace

TEST_CASE("a directory and a bucket keep the same checkpoints") {
  bucket b;
  for (place const& at : {place(b.dir / "c"), b.at}) {
    CAPTURE(at.path());
    CHECK_FALSE(find_checkpoint(at).newest);
    CHECK(newest_epoch(at) == 0);
    for (std::uint64_t const v : {2, 4, 6, 8}) state.write_at({in_epoch(1, 1), v}, at, 2);
    std::string const newest = at.path() + "/version-8";
    CHECK(newest_valid(at) == newest);
    auto const copy = [&](std::string const& path) {
      return at.in_bucket() ? at.at(path).copy().path() : path;
    };
    CHECK(state.is_in(copy(newest), 3));
    CHECK(read_manifest(at.at(newest)).version == 8);
    CHECK(valid_checkpoints(at).size() == 4);
    prune(at, 3);
    CHECK(valid_checkpoints(at).size() == 3);
    CHECK_FALSE(has_manifest(at.below("version-2")));

    // A damaged one, one without a file, and one that was never complete.
    auto const part = read_manifest(at.at(newest)).files[0].name;
    if (at.in_bucket()) {
      b.object(key_of(newest, part))[900] ^= 1;
      b.store.tags.clear();
    } else
      edl::replace_file(newest + "/" + part, std::string(3000, 'x'));
    at.below("version-6").remove(read_manifest(at.below("version-6")).files[1].name);
    place const unfinished = at.below("version-9");
    begin_checkpoint(unfinished);
    state.write(unfinished, 9, 0, 2);
    auto const found = find_checkpoint(at);
    CHECK(found.newest == at.path() + "/version-4");
    REQUIRE(found.passed_over.size() == 2);
    CHECK(contains(found.warning(), "checkpoint " + newest + " is passed over ("));
    CHECK(contains(found.unfinished, "checkpoint " + unfinished.path() + " has no manifest.json"));

    // The next master continues from there; what it no longer descends from is set aside.
    CHECK(newest_epoch(at) == 1);
    CHECK(write_epoch(at, {2, "second", read_epoch(at).tag}));
    CHECK(read_epoch(at).owner == "second");
    remove_litter(at, true);
    CHECK_FALSE(std::ranges::any_of(unfinished.names(), is_part));
    CHECK(contains(set_aside_newer(at, 4), "version 9, 8, 6 are set aside") == at.in_bucket());
    CHECK(newest_valid(at) == at.path() + "/version-4");
    CHECK(find_checkpoint(at).passed_over.empty());
    CHECK(find_checkpoint(at).unfinished.empty());
    // It comes to such a version again.
    state.write_at({in_epoch(2, 1), 8}, at, 1);
    CHECK(newest_valid(at) == newest);
    CHECK(read_manifest(at.at(newest)).files.size() == 1);
    prune(at, 2);
    CHECK(at.below("set-aside").names().size() == (at.in_bucket() ? 2 : 1));  // that are not passed yet
    state.write_at({in_epoch(2, 1), 10}, at, 1);
    prune(at, 2);
    CHECK(at.below("set-aside").names().empty());
    CHECK(newest_valid(at) == at.path() + "/version-10");
    CHECK(valid_checkpoints(at).size() == 2);
  }
  for (std::string const& key : b.keys())
    CHECK((key == "c/.edl-epoch" || key.starts_with("c/version-8/") || key.starts_with("c/version-10/")));
  std::lock_guard const lock(b.store.mutex);
  for (auto const& [id, begun] : b.store.uploads) CHECK(begun.parts.empty());  // whose first reply was lost
}

TEST_CASE("a master that wakes late completes no checkpoint, and replaces none") {
  bucket b;
  b.kind = true;
  std::string const before = state.write_at({in_epoch(1, 1), 4}, b.at, 1);
  for (std::uint64_t const version : {5, 4})
    for (int const times : {1, 2}) {
      CAPTURE(version);
      CAPTURE(times);
      place const to = b.at.below("version-" + std::to_string(version));
      auto const earlier = begin_checkpoint(to);
      auto late = state.manifest(version);
      late.files = {state.write(to, version, 0, 1)};
      auto const suspended = [&] { remove_litter(b.at, true); };  // its successor begins
      CHECK(contains(complaint([&] { commit_checkpoint(to, late, earlier, suspended); }),
                     "another process has written its manifest meanwhile"));
      CHECK(newest_valid(b.at) == before);
      CHECK(find_checkpoint(b.at).passed_over.empty());
      CHECK(find_checkpoint(b.at).unfinished.empty());
    }
  // The version is free for the successor.
  CHECK(newest_valid(b.at) == before);
  std::string const next = state.write_at({in_epoch(2, 1), 5}, b.at, 2);
  CHECK(newest_valid(b.at) == next);
  // One that may not write any more writes no manifest.
  place const to = b.at.below("version-6");
  auto late = state.manifest(6);
  late.files = {state.write(to, 6, 0, 1)};
  CHECK(complaint([&] { commit_checkpoint(to, late, {}, [] { throw edl::error("lost"); }); }) == "lost");
  CHECK_FALSE(has_manifest(to));
}

TEST_CASE("a cache without room, or with a damaged copy, makes no checkpoint damaged") {
  bucket b;
  b.kind = true;
  state.write_at({in_epoch(1, 1), 4}, b.at, 1);
  std::string const newest = state.write_at({in_epoch(1, 1), 5}, b.at, 1);
  auto o = b.options;
  SUBCASE("no room") { o.most_bytes = 10; }
  SUBCASE("no directory") {
    edl::replace_file(b.dir / "file", "");
    o.directory = b.dir / "file";
  }
  SUBCASE("no permission") {
    o.store.find = [a = o.store.find()] {
      auto other = a;
      other.who.key = "B";
      return other;
    };
  }
  SUBCASE("a damaged copy") {}
  if (o.most_bytes == 10 || o.directory != b.options.directory || o.store.find().who.key == "B") {
    place const poor("s3://box/c", o);
    CHECK_THROWS_AS(verify_checkpoint(poor.below("version-5")), edl::storage_error);
    CHECK_THROWS_AS(find_checkpoint(poor), edl::storage_error);
    return;
  }
  place const at = b.at.below("version-5");
  std::string const part = read_manifest(at).files[0].name, file = at.copy().path() + "/" + part;
  std::string const bad(edl::input_file(file).size(), 'x');
  edl::replace_file(file, bad);
  CHECK(newest_valid(b.at) == newest);
  // Another process reads it.
  edl::replace_file(file, bad);
  auto const used = std::make_unique<edl::bucket::local_copy>(at.copy());
  CHECK_THROWS_AS(verify_checkpoint(at), edl::storage_error);
}

TEST_CASE("what lost writers have left is removed by a new master only") {
  bucket b;
  state.write_at({in_epoch(1, 1), 4}, b.at, 1);
  state.write(b.at.below("version-4"), 4, 0, 2);
  state.write(b.at.below("version-7"), 7, 0, 2);
  {
    std::lock_guard const lock(b.store.mutex);
    for (int i = 0; i < 7; ++i)
      b.store.uploads["cut+" + std::to_string(i)] = {"c/version-7/variables-" + std::to_string(i), "mark"};
    b.store.uploads["best"] = {"c/best/model.safetensors", "mark"};
    b.store.uploads["other"] = {"cc/x", "mark"};
    b.store.uploads["own"] = {"c/records/x", "mark"};
  }
  auto const all = b.keys();
  remove_litter(b.at, false);
  CHECK(b.keys() == all);
  remove_litter(b.at, true);
  CHECK(b.keys().size() == 3);  // the checkpoint, and what keeps version 7 from being completed
  CHECK(b.object("c/version-7/manifest.json") == "\n");
  CHECK(state.is_in(b.at.at(*newest_valid(b.at)).copy().path()));
  std::lock_guard const lock(b.store.mutex);
  CHECK(b.store.uploads.size() == 2);
}

TEST_CASE("two jobs on one prefix: the second is refused, or takes over what is silent") {
  bucket b;
  auto first = std::make_unique<directory_lock>(b.lock("mnist"));
  CHECK(first->claim() == 1);
  CHECK_NOTHROW(first->check());
  lock_options other = b.lock("other");
  SUBCASE("the holder lives") {
    other.timeout = 600s;
    lock_options beating = b.lock("mnist");
    first.reset();
    beating.beat = 1ms;
    directory_lock const alive(beating);
    std::string const said = complaint([&] { directory_lock{other}; });
    CHECK(contains(said, "--checkpoint_dir=s3://box/c is in use by job 'mnist' (process "));
    CHECK_FALSE(alive.lost());
  }
  SUBCASE("the holder is silent") {
    other.timeout = 20ms;
    directory_lock next(other);
    CHECK(contains(complaint([&] { first->check(); }), "is in use by job 'other'"));
    CHECK_FALSE(first->superseded());
    CHECK(next.claim() == 2);
    CHECK(contains(complaint([&] { first->claim(); }), "is in use by job 'other'"));
    first.reset();  // and leaves the other's text
    CHECK_NOTHROW(next.check());
    CHECK(contains(b.object("c/.edl-lock"), "other"));
  }
  SUBCASE("the holder ends") {
    first.reset();
    CHECK(b.object("c/.edl-lock").empty());
    CHECK(directory_lock(other).claim() == 2);
  }
  SUBCASE("two take over at once") {
    other.timeout = 20ms;
    b.faster = R"({"job":"faster","owner":"0123"})";
    CHECK(contains(complaint([&] { directory_lock{other}; }), "is in use by job 'faster'"));
    CHECK(contains(complaint([&] { first->check(); }), "is in use by job 'faster'"));
  }
  SUBCASE("somebody removes the object") {
    {
      std::lock_guard const lock(b.store.mutex);
      b.store.objects.erase("c/.edl-lock");
    }
    CHECK_NOTHROW(first->check());
    CHECK(contains(b.object("c/.edl-lock"), "mnist"));
  }
}

TEST_CASE("of two masters that claim one number one fails") {
  bucket b;
  directory_lock first(b.lock("mnist"));
  std::string const none = read_epoch(b.at).tag;
  CHECK(first.claim() == 1);
  CHECK_FALSE(write_epoch(b.at, {1, "late", none}));
  CHECK(write_epoch(b.at, {2, "later", read_epoch(b.at).tag}));
  CHECK(
      contains(complaint([&] { first.check(); }), "belongs to a later master of the job (epoch 2, this one"));
  CHECK(first.superseded());
}

TEST_CASE("a command and its master share one text, which the command beats") {
  bucket b;
  lock_options command = b.lock("mnist"), master = command;
  command.holder = lock_options::part::command, command.beat = 1ms;
  master.holder = lock_options::part::master;
  directory_lock const outer(command);
  master.command = outer.name();
  directory_lock inner(master);
  CHECK(inner.claim() == 1);
  std::string const seen = b.object("c/.edl-lock");
  while (b.at.read(".edl-lock", 4096)->content == seen) std::this_thread::yield();
  CHECK_NOTHROW(inner.check());
  CHECK_NOTHROW(outer.check());
}

TEST_CASE("a master that starts late takes no other job's text for its command's") {
  bucket b;
  lock_options command = b.lock("mnist"), master = command, other = b.lock("other");
  command.holder = lock_options::part::command;
  master.holder = lock_options::part::master;
  directory_lock const outer(command);
  master.command = outer.name();
  other.timeout = 20ms;
  std::optional<directory_lock> next(other);
  CHECK(next->claim() == 1);
  std::string const theirs = b.object("c/.edl-lock");
  std::string who = "is in use by job 'other'";
  SUBCASE("which runs") {}
  SUBCASE("which has ended") {
    next.reset();
    who = "is in use by another process";
  }
  std::string const before = next ? theirs : "";
  {
    directory_lock late(master);
    CHECK(contains(complaint([&] { late.claim(); }), who));
    CHECK(contains(complaint([&] { late.check(); }), who));
  }
  CHECK(read_epoch(b.at).epoch == 1);
  CHECK(b.object("c/.edl-lock") == before);
  if (next) CHECK_NOTHROW(next->check());
}

TEST_CASE("a store that ignores conditions is refused, and says so") {
  bucket b;
  b.kind = true;
  b.store.conditions = false;
  CHECK(contains(complaint([&] { directory_lock{b.lock("mnist")}; }),
                 "s3://box/c: the object store http://127.0.0.1:"));
  CHECK(contains(complaint([&] { directory_lock{b.lock("mnist")}; }), "ignores conditions of writes"));
  // One that knows them, but takes no ETag for right.
  unkind_store strict([](request const& r, wire& w) {
    return !r.field("If-Match").empty() && (unkind_store::refuse(w, 412, "PreconditionFailed"), true);
  });
  auto o = b.options;
  o.store = strict.options();
  lock_options lock = b.lock("mnist");
  lock.directory = place("s3://box/c", o);
  CHECK(contains(complaint([&] { directory_lock{lock}; }),
                 "refuses a write with If-Match whose ETag is right"));
  // One that encrypts with a key of the user.
  unkind_store encrypting([](request const& r, wire& w) {
    if (r.method != "PUT") return false;
    w.send("HTTP/1.1 200 OK\r\nETag: \"00112233445566778899aabbccddeeff\"\r\nContent-Length: 0\r\n\r\n");
    return true;
  });
  o.store = encrypting.options();
  lock.directory = place("s3://box/c", o);
  CHECK(contains(complaint([&] { directory_lock{lock}; }), "SSE-KMS"));
  // An object that such a bucket, or another encryption, has left does no harm; nor does one that goes.
  b.store.conditions = true;
  b.store.objects["c/.edl-conditions"] = "";
  b.store.tags["c/.edl-conditions"] = "\"00112233445566778899aabbccddeeff\"";
  CHECK_NOTHROW(directory_lock{b.lock("mnist")});
  std::atomic<bool> once{true};
  unkind_store* self = nullptr;
  unkind_store cleaned([&](request const& r, wire&) {
    std::lock_guard const guard(self->mutex);
    if (r.target.ends_with(".edl-conditions") && !r.field("If-Match").empty() && once.exchange(false))
      self->objects.erase("c/.edl-conditions");
    return false;
  });
  self = &cleaned;
  o.store = cleaned.options();
  lock.directory = place("s3://box/c", o);
  CHECK_NOTHROW(directory_lock{lock});
}

TEST_CASE("a store that fails for long is a temporary failure of storage, everywhere") {
  bucket b;
  state.write_at({in_epoch(1, 1), 4}, b.at, 1);
  b.options.store.retry_timeout = 20ms;
  place const at("s3://box/c", b.options);
  std::string const path = at.path() + "/version-4";
  b.requests = 3;
  std::atomic<bool> down{true};
  unkind_store off(
      [&](request const&, wire& w) { return down && (unkind_store::refuse(w, 503, "SlowDown"), true); });
  auto o = b.options;
  o.store = off.options();
  o.store.retry_timeout = 20ms;
  place const dead("s3://box/c", o);
  auto const passes = [](auto&& what) {
    try {
      what();
    } catch (edl::storage_error const& e) {
      return e.may_pass();
    }
    return false;
  };
  CHECK(passes([&] { find_checkpoint(dead); }));
  CHECK(passes([&] { newest_epoch(dead); }));
  CHECK(passes([&] { begin_checkpoint(dead.below("version-5")); }));
  CHECK(passes([&] { state.write(dead.below("version-5"), 5, 0, 1); }));
  CHECK(passes([&] { dead.replace("x", "y", ""); }));
  CHECK_NOTHROW(remove_litter(at, false));
}

}  // namespace in_bucket_test
