// SPDX-License-Identifier: Apache-2.0
#include "edl/job/master/server/journal_keeper.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/net/peers.hpp"
#include "base/wire/scratch.hpp"
#include "job/master/held_disk.hpp"

namespace journal_keeper_test {

extern "C" int fsync(int fd) {
  ++held_disk::asked;
  held_disk::held.wait(true);
  static auto const next = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "fsync"));
  return next(fd);
}

using edl::master::journal;
using edl::master::journal_keeper;

namespace {

edl::master::persisted_state of(std::uint64_t generation) {
  edl::master::persisted_state m;
  m.generation = generation;
  return m;
}

/// A keeper on a node of its own; it is asked on the node's thread.
struct kept {
  explicit kept(std::string const& path, edl::forced most = edl::forced::name)
      : it(node, journal(path, "run", most), std::chrono::milliseconds(1),
           edl::logger(edl::severity::critical), [this] { ++kept_count; }) {}
  ~kept() { node.stop(); }

  template <class F>
  auto on_node(F work) {
    std::packaged_task<std::invoke_result_t<F>()> task(work);
    auto result = task.get_future();
    node.post([&task] { task(); });
    return result.get();
  }
  void keep(std::uint64_t generation, bool promised = true) {
    on_node([&] { it.keep(of(generation), promised); });
  }
  bool is_kept() {
    return on_node([this] { return it.kept(); });
  }
  std::uint64_t generation() {
    return on_node([this] { return it.generation(); });
  }
  /// Until more has been kept than ever so often.
  void wait(int times) {
    while (kept_count < times) std::this_thread::yield();
  }

  std::atomic<int> kept_count{0};
  edl::net::node node{peers::options()};
  journal_keeper it;
};

}  // namespace

TEST_CASE(
    "what is promised may be told when it is on the disk, and what changes meanwhile goes there together") {
  scratch const dir;
  std::string const path = dir / "journal.json";
  kept k(path);
  held_disk::asked = 0;
  {
    held_disk::hold const disk;
    k.keep(1);
    while (held_disk::asked == 0) std::this_thread::yield();
    for (std::uint64_t generation : {2, 3, 4, 5}) k.keep(generation);
    // The node's thread has answered; nothing may be told.
    CHECK_FALSE(k.is_kept());
    CHECK(k.generation() == 0);
    CHECK_FALSE(std::filesystem::exists(path));
  }
  k.wait(2);
  CHECK(k.is_kept());
  CHECK(k.generation() == 5);
  CHECK(journal(path, "run").read()->generation == 5);
  CHECK(held_disk::asked == 4);  // the file and its name, twice
}

TEST_CASE("what nobody is told of costs one wait for the disk, and nobody waits for it") {
  scratch const dir;
  kept k(dir / "journal.json");
  k.keep(1);
  k.wait(1);
  held_disk::asked = 0;
  {
    held_disk::hold const disk;
    auto more = of(1);
    more.members = 3;
    k.on_node([&] { k.it.keep(more, false); });
    while (held_disk::asked == 0) std::this_thread::yield();
    CHECK(k.is_kept());
  }
  k.wait(2);
  CHECK(held_disk::asked == 1);
  CHECK(journal(dir / "journal.json", "run").read()->members == 3);
}

TEST_CASE(
    "a journal that nobody reads after the power has failed waits for no disk; nor does one without a file") {
  scratch const dir;
  held_disk::hold const disk;
  held_disk::asked = 0;
  kept k(dir / "journal.json", edl::forced::nothing);
  k.keep(7);
  k.wait(1);
  CHECK(k.generation() == 7);
  CHECK(held_disk::asked == 0);
  kept none("");
  none.keep(8);
  CHECK(none.generation() == 8);
  CHECK(none.is_kept());
}

TEST_CASE("what cannot be written keeps nobody waiting, and is written when it can be") {
  scratch const dir;
  kept k(dir / "gone/journal.json");
  k.keep(3);
  k.wait(1);
  CHECK(k.is_kept());
  CHECK(k.generation() == 3);
  k.keep(4);
  CHECK(k.generation() == 4);
  std::filesystem::create_directories(dir / "gone");
  // What was under way when the directory came is written first.
  auto const written = [&] {
    auto const found = journal(dir / "gone/journal.json", "run").read();
    return found ? found->generation : 0;
  };
  while (written() < 4) std::this_thread::yield();
  CHECK(written() == 4);
}

}  // namespace journal_keeper_test
