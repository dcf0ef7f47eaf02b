// SPDX-License-Identifier: Apache-2.0
// Jobs with --verify_gradients, of which a worker computes wrongly.
#include <fcntl.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "app/tiny_job.hpp"

namespace wrong_worker_test {

using namespace tiny;

namespace {

lines flags(job::scratch const& dir, lines more = {}, bool checks = true) {
  more.insert(more.end(), {"--num_epochs=6", "--checkpoint_dir=" + dir / "checkpoints",
                           "--checkpoint_steps=20", "--num_threads=1"});
  if (checks) more.push_back("--verify_gradients=0.1");
  return more;
}

job::options wrong(std::string const& how, std::string const& delay) {
  return {.env = {{"TINY_WRONG", how}, {"TINY_WRONG_WORKER", "1"}, {"TINY_DELAY_US", delay}}};
}

/// Sixteen numbers of a frozen kernel, as they stand in two checkpoints: the trained ones differ.
std::string frozen_numbers(std::string const& checkpoints) {
  lines parts;  // of the first range
  for (auto const& e : std::filesystem::recursive_directory_iterator(checkpoints))
    if (e.path().filename().native().starts_with("variables-0-")) parts.push_back(slurp(e.path()));
  // Their heads may differ in size: places are counted from the end.
  float some[16];
  for (std::size_t back = sizeof some; parts.size() > 1; back += 4) {
    if (back > parts[0].size() || back > parts[1].size()) break;
    std::string const one = parts[0].substr(parts[0].size() - back, sizeof some);
    if (one != parts[1].substr(parts[1].size() - back, sizeof some)) continue;
    std::memcpy(some, one.data(), sizeof some);
    if (std::ranges::all_of(some, [](float x) { return std::abs(x) > 1e-5f && std::abs(x) < 1; })) return one;
  }
  return {};
}

/// Flips a bit of the second number in each place of a process' memory that holds these bytes: of its
/// mantissa, or the greatest one of its exponent. Returns how many there were.
int flip_bits(pid_t process, std::string const& bytes, bool exponent = false) {
  std::string const of = "/proc/" + std::to_string(process);
  int const memory = ::open((of + "/mem").c_str(), O_RDWR | O_CLOEXEC);
  std::ifstream maps(of + "/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    char rights[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &from, &to, rights) != 3 || rights != std::string("rw-p"))
      continue;
    std::string all(to - from, '\0');
    if (::pread(memory, all.data(), all.size(), off_t(from)) != ssize_t(all.size())) continue;
    for (auto at = all.find(bytes); at != all.npos; at = all.find(bytes, at + 1)) {
      std::size_t const byte = at + (exponent ? 7 : 6);
      char const flipped = char(all[byte] ^ (exponent ? 0x40 : 4));
      found += ::pwrite(memory, &flipped, 1, off_t(from + byte)) == 1;
    }
  }
  ::close(memory);
  return found;
}

}  // namespace

TEST_CASE("a bit that flips in a server's memory is found; its backup goes on, or the job goes back") {
  for (bool const backup : {true, false}) {
    CAPTURE(backup);
    job::scratch const dir;
    lines more = flags(dir, {"--use_async", "--freeze=dense/kernel"});
    if (backup) more.push_back("--ps_replicas=2");
    job::run j(cluster(2, 2, more), {.env = {{"TINY_DELAY_US", "2000"}}});
    REQUIRE(j.says("Checkpoint of version ", 2));
    std::string const numbers = frozen_numbers(dir / "checkpoints");
    REQUIRE_FALSE(numbers.empty());
    REQUIRE(flip_bits(j.find("ps", 0), numbers) > 0);
    CHECK(j.says("have changed without a step"));
    j.open_gate();
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK(has(log, "this machine's memory corrupts data: elements ["));
    CHECK(has(log, "server 0 is lost"));
    CHECK(has(log, "Going back to version ") == !backup);
    check_account(log, 6);
    check_ledgers(dir / "checkpoints", 6, 2);
  }
}

TEST_CASE(
    "a loss that a server's flipped exponent makes infinite is not the user's fault, and the job goes on") {
  for (bool const checks : {true, false}) {
    CAPTURE(checks);
    job::scratch const dir;
    lines more = flags(dir, {"--use_async", "--freeze=dense/kernel"}, checks);
    if (!checks) more.push_back("--ps_replicas=2");
    job::run j(cluster(2, 2, more), {.env = {{"TINY_DELAY_US", "2000"}}});
    REQUIRE(j.says("Checkpoint of version ", 2));
    std::string const numbers = frozen_numbers(dir / "checkpoints");
    REQUIRE_FALSE(numbers.empty());
    REQUIRE(flip_bits(j.find("ps", 0), numbers, true) > 0);
    CHECK(j.says("server 0 is lost"));
    j.open_gate();
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    std::string const log = j.log();
    CAPTURE(log);
    CHECK(has(log, checks ? "have changed without a step" : "differ from those of its backup"));
    CHECK(has(log, "Going back to version ") == checks);
    CHECK_FALSE(has(log, "learning rate"));
    check_account(log, 6);
    check_ledgers(dir / "checkpoints", 6, 2);
  }
}

TEST_CASE("a server's flipped exponent that nothing can show ends the job, and the error names both causes") {
  job::scratch const dir;
  job::run j(cluster(1, 2, flags(dir, {"--use_async", "--freeze=dense/kernel"}, false)),
             {.env = {{"TINY_DELAY_US", "2000"}}});
  REQUIRE(j.says("Checkpoint of version ", 2));
  std::string const numbers = frozen_numbers(dir / "checkpoints");
  REQUIRE_FALSE(numbers.empty());
  REQUIRE(flip_bits(j.find("ps", 0), numbers, true) > 0);
  CHECK(j.wait() != 0);
  CHECK(has(j.log(), "a lower learning rate may help, unless the memory of a server is faulty"));
}

TEST_CASE("a worker whose exponents are wrong is replaced, also without checks, and all counts once") {
  for (bool const checks : {true, false})
    for (bool const servers : {true, false}) {
      CAPTURE(checks);
      CAPTURE(servers);
      job::scratch const dir;
      job::run j(
          servers ? cluster(1, 3, flags(dir, {"--use_async"}, checks)) : replicas(3, flags(dir, {}, checks)),
          {.env = {{"TINY_WRONG", "exponent"},
                   {"TINY_WRONG_WORKER", "1"},
                   {"TINY_WRONG_FROM", dir / "wrong"},
                   {"TINY_DELAY_US", "2000"}}});
      // With nobody else a task that fails is the user's.
      for (char const* worker : {"worker 0 joined", "worker 1 joined", "worker 2 joined"})
        REQUIRE(j.says(worker));
      std::ofstream(dir / "wrong").put('\n');
      CHECK(j.says("worker 3 joined"));
      j.open_gate();
      CHECK(j.wait() == 0);
      CHECK(j.nothing_left());
      std::string const log = j.log();
      CAPTURE(log);
      CHECK(has(log, "worker 1 is lost: "));
      CHECK_FALSE(has(log, "learning rate"));
      check_account(log, 6);
      check_ledgers(dir / "checkpoints", 6);
    }
}

TEST_CASE("a worker whose least bit is wrong is named by a third one, and replaced; all counts once") {
  for (std::string const how : {"gradient", "record", "late"})
    for (bool const servers : {true, false}) {
      CAPTURE(how);
      CAPTURE(servers);
      job::scratch const dir;
      job::run j(servers ? cluster(1, 3, flags(dir, {"--use_async"})) : replicas(3, flags(dir)),
                 wrong(how, "1000"));
      CHECK(j.says("worker 3 joined"));
      j.open_gate();
      CHECK(j.wait() == 0);
      CHECK(j.nothing_left());
      std::string const log = j.log();
      CAPTURE(log);
      CHECK(count(log, "worker 1 computes wrongly; the training after version ") == 1);
      CHECK(count(log, "computes wrongly; the training after") == 1);
      CHECK(has(log, "worker 1 is lost: it computes wrongly"));
      CHECK(has(log, "Going back to version "));
      check_account(log, 6);
      check_ledgers(dir / "checkpoints", 6);
    }
}

TEST_CASE("of two workers nobody is blamed who errs in the same way twice, and the log says so") {
  job::scratch const dir;
  job::run j(replicas(2, flags(dir)), wrong("gradient", "300"));
  CHECK(j.wait() == 0);
  std::string const log = j.log();
  CAPTURE(log);
  CHECK(has(log, "workers 0 and 1 differ in minibatch "));
  CHECK(has(log, "a third worker with this kind of processor would decide"));
  CHECK_FALSE(has(log, "computes wrongly"));
  check_account(log, 6);
}

TEST_CASE("where nothing is wrong nobody is blamed, and checks change no bit of the model") {
  std::string models[2];
  for (bool const checked : {false, true}) {
    job::scratch const dir;
    lines more{"--num_epochs=4", "--output=" + dir / "model", "--num_threads=1", "--deterministic",
               "--fixed_global_batch"};
    if (checked) more.push_back("--verify_gradients=0.1");
    job::run j(replicas(3, more));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK_FALSE(has(j.log(), "[ERROR]"));
    CHECK_FALSE(has(j.log(), "[WARNING]"));
    models[checked] = slurp(dir / "model/model.safetensors");
  }
  CHECK(models[0].size() > 259 * sizeof(float));
  CHECK(models[0] == models[1]);
}

TEST_CASE("rows of tables are checked, too") {
  for (bool const servers : {true, false}) {
    CAPTURE(servers);
    job::scratch const dir;
    job::run j(servers ? cluster(1, 3, flags(dir, {"--use_async"})) : replicas(3, flags(dir)),
               {.env = {{"TINY_TABLES", "1"}}});
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK_FALSE(has(j.log(), "differ in minibatch"));
    check_account(j.log(), 6);
  }
}

}  // namespace wrong_worker_test
