// SPDX-License-Identifier: Apache-2.0
#include "edl/base/checkpoint/directory_lock.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/checkpoint/example_checkpoint.hpp"
#include "base/wire/scratch.hpp"
#include "edl/base/checkpoint/directory.hpp"

namespace directory_lock_test {

using namespace edl::checkpoint;
using namespace std::chrono_literals;

namespace {

lock_options options(scratch const& dir, std::string const& job) {
  return {.directory = dir.path(), .description = "--checkpoint_dir=" + dir.path(), .job = job};
}

/// What a job of another machine, whose locks are not seen here, writes: in one piece, as jobs do.
void spill_foreign(scratch const& dir, int beat) {
  std::string text = R"({"job":"far","process":7,"host":"elsewhere","since":"then","owner":"0123",)"
                     R"("machine":"another","beat":)" +
                     std::to_string(beat) + "}";
  text.resize(1024, ' ');
  int const fd = ::open((dir / ".edl-lock").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  REQUIRE(::pwrite(fd, text.data(), text.size(), 0) == 1024);
  ::close(fd);
}

}  // namespace

TEST_CASE("the second job is refused, and told who has the directory") {
  scratch const dir;
  {
    directory_lock const first(options(dir, "mnist"));
    std::string const said = complaint([&] { directory_lock{options(dir, "other")}; });
    CHECK(contains(said, "--checkpoint_dir=" + dir.path() + " is in use by job 'mnist' (process " +
                             std::to_string(::getpid()) + " on "));
    CHECK(contains(said, "wait for its end, stop it, or name another directory"));
    CHECK_NOTHROW(first.check());
    CHECK_FALSE(first.lost());
  }
  CHECK_NOTHROW(directory_lock{options(dir, "other")});
  // Whatever the name is made of, its text fits in.
  {
    directory_lock const strange(options(dir, std::string(300, '\x01') + std::string(300, '"') + "\xff"));
  }
  // No character of a long name is cut.
  directory_lock const long_name(options(dir, std::string(99, 'a') + "\u00e4"));
  CHECK(
      contains(complaint([&] { directory_lock{options(dir, "other")}; }), "'" + std::string(99, 'a') + "'"));
}

TEST_CASE("a killed holder is none, at once") {
  scratch const dir;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  pid_t const child = ::fork();
  if (child == 0) {
    auto const* const held = new directory_lock(options(dir, "killed"));
    [[maybe_unused]] auto const n = ::write(ready[1], held, 1);
    for (;;) ::pause();
  }
  char byte;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(contains(complaint([&] { directory_lock{options(dir, "next")}; }), "job 'killed'"));
  // Suspended is not dead.
  ::kill(child, SIGSTOP);
  CHECK(contains(complaint([&] { directory_lock{options(dir, "next")}; }), "job 'killed'"));
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(contains(slurp(dir / ".edl-lock"), "killed"));
  lock_options next = options(dir, "next");
  bool waited = false;
  next.tell = [&](std::string const&) { waited = true; };
  CHECK_NOTHROW(directory_lock{next});
  CHECK_FALSE(waited);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("a full disk does not take the lock away") {
  scratch const dir;
  int const status = with_limited_files(10, false, [&] {
    directory_lock const held(options(dir, "mnist"));
    bool const refused = !complaint([&] { directory_lock{options(dir, "other")}; }).empty();
    return refused && complaint([&] { held.check(); }).empty() ? 0 : 1;
  });
  CHECK(status == 0);
}

TEST_CASE("a command that cannot write its text tells its master which one is there instead") {
  scratch const dir;
  lock_options command = options(dir, "mnist"), master = command;
  command.holder = lock_options::part::command;
  master.holder = lock_options::part::master;
  spill_foreign(dir, 1);
  command.timeout = 0ms;  // it has been watched for long
  int const status = with_limited_files(0, false, [&] {
    directory_lock const outer(command);
    master.command = outer.name();
    directory_lock const inner(master);
    return complaint([&] { inner.check(); }).empty() && contains(slurp(dir / ".edl-lock"), "far") ? 0 : 1;
  });
  CHECK(status == 0);
}

TEST_CASE("a command and its master share the directory, and a second of either does not") {
  scratch const dir;
  lock_options command = options(dir, "mnist"), master = command;
  command.holder = lock_options::part::command;
  master.holder = lock_options::part::master;
  master.timeout = 100ms;
  directory_lock const outer(command);
  master.command = outer.name();
  auto inner = std::make_unique<directory_lock>(master);
  CHECK_NOTHROW(inner->check());
  CHECK(contains(complaint([&] { directory_lock{command}; }), "is in use by job 'mnist'"));
  CHECK(contains(complaint([&] { directory_lock{options(dir, "whole")}; }), "is in use by job 'mnist'"));
  CHECK(contains(complaint([&] { directory_lock{master}; }), "is in use by job 'mnist'"));
  // A master that is killed has a successor.
  inner.reset();
  CHECK_NOTHROW(directory_lock{master});
}

TEST_CASE("a master that starts late takes no other job's text for its command's") {
  scratch const dir;
  lock_options command = options(dir, "mnist"), master = command;
  command.holder = lock_options::part::command;
  master.holder = lock_options::part::master;
  command.beat = master.beat = 1h;
  directory_lock const outer(command);
  master.command = outer.name();
  spill_foreign(dir, 1);  // the command was suspended
  directory_lock late(master);
  CHECK(contains(complaint([&] { late.claim(); }), "is in use by job 'far'"));
  CHECK(contains(complaint([&] { late.check(); }), "is in use by job 'far'"));
  CHECK(read_epoch(dir.path()).epoch == 0);
}

TEST_CASE("where the directory was removed the lock is taken again and told, or the job ends") {
  scratch const dir;
  lock_options command = options(dir, "mnist"), master = command;
  command.holder = lock_options::part::command;
  master.holder = lock_options::part::master;
  command.beat = master.beat = 1h;
  std::string told;
  command.tell = [&](std::string const& text) { told += text; };
  directory_lock const outer(command);
  master.command = outer.name();
  directory_lock const inner(master);
  std::filesystem::remove_all(dir.path());
  SUBCASE("nobody has come meanwhile") {
    SUBCASE("the master looks first") { CHECK_NOTHROW(inner.check()); }
    SUBCASE("the command looks first") {}
    CHECK_NOTHROW(outer.check());
    CHECK_NOTHROW(inner.check());
    CHECK(contains(told, "was removed while this job runs; taking its lock again"));
    CHECK(contains(complaint([&] { directory_lock{options(dir, "other")}; }), "is in use by job 'mnist'"));
    told.clear();
    CHECK_NOTHROW(outer.check());
    CHECK(told.empty());
  }
  SUBCASE("another job has it by now") {
    std::filesystem::create_directories(dir.path());
    directory_lock const other(options(dir, "other"));
    for (directory_lock const* const lost : {&outer, &inner}) {
      CHECK(contains(complaint([&] { lost->check(); }), "is in use by job 'other'"));
      CHECK(contains(lost->lost().value_or(""), "its lock was removed while this job ran"));
      CHECK_FALSE(lost->superseded());
    }
    CHECK_NOTHROW(other.check());
  }
}

TEST_CASE("a lock that was taken again beats on, and keeps the epoch that was claimed") {
  scratch const dir;
  lock_options mine = options(dir, "mnist");
  mine.beat = 1ms;
  directory_lock held(mine);
  CHECK(held.claim() == 1);
  std::filesystem::remove(dir / ".edl-epoch");
  std::filesystem::remove(dir / ".edl-lock");
  auto const text = [&] {
    std::error_code none;
    return std::filesystem::exists(dir / ".edl-lock", none) ? slurp(dir / ".edl-lock") : "";
  };
  std::string first;
  while ((first = text()).find("mnist") == first.npos) std::this_thread::yield();
  for (std::string next = first; next == first || next.find("mnist") == next.npos; next = text())
    std::this_thread::yield();
  CHECK_NOTHROW(held.check());
  CHECK(slurp(dir / ".edl-epoch").starts_with("1 "));
  CHECK(held.claim() == 2);
}

TEST_CASE("a command's master learns by itself that a later one has the directory") {
  scratch const dir;
  lock_options mine = options(dir, "mnist");
  mine.holder = lock_options::part::master;
  mine.beat = 1ms;
  directory_lock earlier(mine);
  earlier.claim();
  // Again and again, as the later one's beats do: the earlier may be just about to write its own epoch.
  while (!earlier.lost()) {
    write_epoch(dir.path(), {5, "later"});
    std::this_thread::yield();
  }
  CHECK(contains(*earlier.lost(), "belongs to a later master of the job (epoch 5, this one has 1)"));
  CHECK(complaint([&] { earlier.check(); }) == *earlier.lost());
}

TEST_CASE("who comes early waits for the end of an earlier start's master, and says so") {
  scratch const dir;
  lock_options command = options(dir, "mnist"), master = command;
  command.holder = lock_options::part::command;
  master.holder = lock_options::part::master;
  auto outer = std::make_unique<directory_lock>(command);
  auto inner = std::make_unique<directory_lock>(master);
  outer.reset();
  directory_lock const next(command);
  master.timeout = 600s;
  std::string told;
  master.tell = [&](std::string const& text) {
    told = text;
    inner.reset();
  };
  CHECK_NOTHROW(directory_lock{master});
  CHECK(contains(told, "waits for the master of an earlier start"));
}

TEST_CASE("what another machine's job has left counts when it changes") {
  scratch const dir;
  spill_foreign(dir, 1);
  lock_options mine = options(dir, "near");
  mine.look = 1ms;
  SUBCASE("it is silent") {
    mine.timeout = 20ms;
    std::string told;
    mine.tell = [&](std::string const& text) { told = text; };
    directory_lock const taken(mine);
    CHECK(contains(told, "is in use by job 'far' (process 7 on elsewhere, since then); waits up to 1 s"));
    CHECK(contains(slurp(dir / ".edl-lock"), "near"));
    // The other was suspended only, and hears of it.
    CHECK_NOTHROW(taken.check());
  }
  SUBCASE("it lives") {
    mine.timeout = 600s;
    std::atomic<bool> watching = false;
    mine.tell = [&](std::string const&) { watching = true; };
    std::thread beat([&] {
      while (!watching) std::this_thread::yield();
      spill_foreign(dir, 2);
    });
    CHECK(contains(complaint([&] { directory_lock{mine}; }), "is in use by job 'far'"));
    beat.join();
  }
  SUBCASE("it ends") {
    mine.timeout = 600s;
    std::atomic<bool> watching = false;
    mine.tell = [&](std::string const&) { watching = true; };
    std::thread end([&] {
      while (!watching) std::this_thread::yield();
      spill(dir / ".edl-lock", "");
    });
    CHECK_NOTHROW(directory_lock{mine});
    end.join();
  }
}

TEST_CASE("who has lost the directory is told before it writes") {
  scratch const dir;
  lock_options mine = options(dir, "near");
  mine.beat = 1ms;
  directory_lock const held(mine);
  CHECK_NOTHROW(held.check());
  // Beats are seen from outside.
  auto const seen = slurp(dir / ".edl-lock");
  while (slurp(dir / ".edl-lock") == seen) std::this_thread::yield();
  // Another machine takes over, as after a long suspension of this one. A beat may come between.
  while (!held.lost()) {
    spill_foreign(dir, 1);
    std::this_thread::sleep_for(5ms);
  }
  CHECK(contains(*held.lost(), "is in use by job 'far'"));
  CHECK(contains(complaint([&] { held.check(); }), "nothing more is written there"));
}

TEST_CASE("who loses a directory to its own successor knows that") {
  for (bool const own : {true, false}) {
    scratch const dir;
    auto o = options(dir, own ? "far" : "near");  // as the other machine's
    o.beat = 1ms;
    directory_lock const first(o);
    while (!first.lost()) {
      spill_foreign(dir, 1);
      std::this_thread::sleep_for(5ms);
    }
    CHECK(first.superseded() == own);
  }
}

TEST_CASE("whoever claims a later epoch ends the writing of all before") {
  scratch const dir;
  directory_lock first(options(dir, "mnist"));
  CHECK_NOTHROW(first.check());  // who has claimed none is asked by the lock alone
  CHECK(first.claim() == 1);
  CHECK_NOTHROW(first.check());
  // Another, to whom these locks say nothing.
  spill(dir / ".edl-epoch", "2\n");
  std::string const said = complaint([&] { first.check(); });
  CHECK(contains(
      said, "belongs to a later master of the job (epoch 2, this one has 1); nothing more is written there"));
  CHECK(first.superseded());
  CHECK(first.claim() == 3);  // as a new start would
  CHECK_NOTHROW(first.check());
  // The file may have been lost, or could not be written before.
  std::filesystem::remove(dir / ".edl-epoch");
  CHECK_NOTHROW(first.check());
  std::string const mine = slurp(dir / ".edl-epoch");
  CHECK(mine.starts_with("3 "));
  // Another was suspended just before it wrote the same number: the holder of the directory has it.
  spill(dir / ".edl-epoch", "3 another\n");
  CHECK_NOTHROW(first.check());
  CHECK(slurp(dir / ".edl-epoch") == mine);
  // A lost file does not let an earlier master write: there is a checkpoint of a later one.
  spill(dir / ".edl-epoch", mine);
  CHECK_NOTHROW(first.check());
  std::filesystem::remove(dir / ".edl-epoch");
  example_state().write_at({edl::in_epoch(4, 1), 7}, dir.path(), 1);
  CHECK(contains(complaint([&] { first.check(); }), "(epoch 4, this one has 3)"));
  CHECK_FALSE(std::filesystem::exists(dir / ".edl-epoch"));
}

TEST_CASE("a later epoch is a successor's, also where nobody can be read to hold the directory") {
  scratch const dir;
  directory_lock held(options(dir, "mnist"));
  CHECK(held.claim() == 1);
  spill(dir / ".edl-epoch", "2 another\n");
  std::filesystem::resize_file(dir / ".edl-lock", 0);
  CHECK(contains(complaint([&] { held.check(); }), "belongs to a later master of the job"));
  CHECK(held.superseded());
}

TEST_CASE("whoever has lost the directory before it claims an epoch claims none") {
  scratch const dir;
  directory_lock held(options(dir, "near"));
  spill_foreign(dir, 1);
  CHECK(contains(complaint([&] { held.claim(); }), "is in use by job 'far'"));
  CHECK_FALSE(std::filesystem::exists(dir / ".edl-epoch"));
}

TEST_CASE("a text that is none is nobody's, and an end takes back its own text only") {
  scratch const dir;
  spill(dir / ".edl-lock", "{");
  lock_options mine = options(dir, "near");
  mine.timeout = 5ms, mine.look = 1ms;
  {
    directory_lock const held(mine);
    CHECK(contains(slurp(dir / ".edl-lock"), "near"));
  }
  CHECK(slurp(dir / ".edl-lock").empty());
  {
    directory_lock const held(mine);
    spill_foreign(dir, 1);
  }
  CHECK(contains(slurp(dir / ".edl-lock"), "far"));
  CHECK(contains(complaint([&] {
                   lock_options none = mine;
                   none.directory = dir / "nowhere";
                   directory_lock{none};
                 }),
                 ".edl-lock"));
}

}  // namespace directory_lock_test
