// SPDX-License-Identifier: Apache-2.0
// What a user or a machine may get wrong: one line that says it, a code that is not 0, no crash and no hang.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmath>
#include <sstream>

#include "app/job.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/compute/data/format/record_file.hpp"

namespace bad_input_test {

using job::count, job::has, job::slurp, job::train;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

std::string const secret = "not-the-secret-of-a-job-that-runs";

/// Lines of standard error that are no log lines.
lines plain_lines(std::string const& log) {
  lines out;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with("[20")) out.push_back(line);
  return out;
}

/// The command fails with code 1 and ends by one line "tiny: …" that names all of `parts`; a master that read
/// the same thing may have said it before. Nothing stays behind.
void check_refused(lines const& command, lines const& parts, job::options const& o = {}) {
  job::run j(command, o);
  CHECK(j.wait() == 1);
  CHECK(j.nothing_left());
  std::string const log = j.log();
  CAPTURE(log);
  auto const said = plain_lines(log);
  REQUIRE_FALSE(said.empty());
  CAPTURE(said.back());
  for (std::string const& line : said) CHECK(line.starts_with("tiny: "));
  for (std::string const& part : parts) CHECK(has(said.back(), part));
  CHECK_FALSE(has(log, "terminate called"));
  CHECK_FALSE(has(log, "Sanitizer"));
}

/// Here and with processes.
void check_refused_both_ways(lines const& flags, lines const& parts) {
  check_refused(train(flags), parts);
  lines more = flags;
  more.insert(more.end(), {"--num_ps_pods=1", "--num_workers=1"});
  check_refused(train(more), parts);
}

void spill(std::string const& path, std::string const& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

/// A directory of records of which one is not what `feed` expects.
std::string spoilt(job::scratch const& dir, std::function<void(edl::example&)> const& how) {
  job::write_shard(dir / "spoilt/part-0", 256, 1, [&](std::uint64_t record, edl::example& e) {
    if (record == 200) how(e);
  });
  return "--training_data=" + dir / "spoilt";
}

/// A bound TCP port of this machine.
struct bound_port {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  int number = 0;
  bound_port() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ::bind(socket, reinterpret_cast<sockaddr*>(&at), sizeof at);
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
    number = ntohs(at.sin_port);
  }
  ~bound_port() { ::close(socket); }
};

/// "127.0.0.1:port" of the master, from its log.
int master_port(std::string const& log) {
  auto const line = log.find("master of job ");
  auto const at = log.find("tcp:127.0.0.1:", line);
  return line == std::string::npos || at == std::string::npos ? 0 : std::stoi(log.substr(at + 14));
}

void send_to(int port, std::string const& bytes) {
  int const s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(std::uint16_t(port));
  REQUIRE(::connect(s, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  ::send(s, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  ::close(s);
}

/// A long job of processes of which something is asked while it runs, and that is none the worse for it.
struct long_job {
  job::scratch dir;
  job::run j{train({"--use_async", "--num_epochs=2", "--num_ps_pods=2", "--num_workers=2",
                    "--checkpoint_dir=" + dir / "checkpoints"}),
             {.env = {{"TINY_DELAY_US", "900"}}}};
  int port = 0;

  long_job() {
    REQUIRE(j.says(" completed, ", 2));
    port = master_port(j.log());
    REQUIRE(port > 0);
  }
  void check_unharmed() {
    CHECK_FALSE(j.ended());
    CHECK(j.wait() == 0);
    CHECK(j.nothing_left());
    CAPTURE(j.log());
    CHECK(has(j.log(),
              "Epoch 1: 2048 records in the data set, 2048 counted once, 0 skipped as damaged, 0 left"));
    CHECK_FALSE(has(j.log(), "Going back"));
  }
};

}  // namespace

TEST_CASE("data that is not there, or is none") {
  job::scratch const dir;
  check_refused_both_ways({"--training_data=" + dir / "nowhere"},
                          {dir / "nowhere: no such file or directory"});
  std::filesystem::create_directory(dir / "empty");
  check_refused_both_ways({"--training_data=" + dir / "empty"}, {dir / "empty: holds no data files"});
  spill(dir / "nothing/part-0", "");
  check_refused_both_ways({"--training_data=" + dir / "nothing"}, {dir / "nothing: holds no records"});
  check_refused(train({"--validation_data=" + dir / "nowhere"}), {dir / "nowhere: no such"});
  spill(dir / "text/part-0", "this is a poem, not a file of records");
  check_refused(train({"--training_data=" + dir / "text"}),
                {dir / "text/part-0", "at byte 0", "is this a RecordIO file?"});
  std::filesystem::create_symlink(dir / "nowhere", dir / "empty/link");
  check_refused(train({"--training_data=" + dir / "empty"}), {dir / "empty/link: cannot be opened"});
  std::filesystem::create_directory(dir / "pipe");
  REQUIRE(::mkfifo((dir / "pipe/part-0").c_str(), 0600) == 0);
  check_refused_both_ways({"--training_data=" + dir / "pipe"}, {dir / "pipe/part-0: is not a regular file"});
  if (::geteuid() == 0) {
    MESSAGE("skipped: this user may read every file");
  } else {
    spill(dir / "secret/part-0", "x");
    ::chmod((dir / "secret/part-0").c_str(), 0);
    check_refused_both_ways({"--training_data=" + dir / "secret"},
                            {dir / "secret/part-0: cannot be opened: Permission"});
  }
}

TEST_CASE("records that are cut off or damaged") {
  job::scratch const dir;
  std::string const whole = slurp(job::data().training + "/part-0");
  spill(dir / "cut/part-0", whole.substr(0, whole.size() - 100));
  check_refused_both_ways({"--training_data=" + dir / "cut"}, {dir / "cut/part-0", "at byte ", "cut off"});
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 0x10;
  spill(dir / "flipped/part-0", flipped);
  check_refused_both_ways({"--training_data=" + dir / "flipped"},
                          {dir / "flipped/part-0", "at byte ", "checksum ", "damaged"});
  job::run told(train({"--training_data=" + dir / "flipped"}));
  CHECK(told.wait() != 0);
  CHECK_FALSE(has(told.log(), "[ERROR]"));  // the master tells each failure, and nobody else does
  // What can be read is trained on if the user says so, and the account says what is missing.
  job::run j(train({"--training_data=" + dir / "flipped", "--skip_damaged", "--max_damaged=0.5"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "Epoch 0: 512 records in the data set, "));
  CHECK(has(j.log(), " 0 left"));
  CHECK_FALSE(has(j.log(), ", 0 skipped as damaged"));
}

TEST_CASE("a damaged record that is left out is told once, with file, record and reason") {
  job::scratch const dir;
  job::write_shard(dir / "d/part-0", 256, 1, [](std::uint64_t i, edl::example& e) {
    if (i == 200 || i == 201) edl::example_builder(e).integer("label", 3);
  });
  job::run j(train({"--training_data=" + dir / "d", "--skip_damaged", "--num_epochs=3"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  for (char const* record : {"200", "201"})
    CHECK(job::count(j.log(), "record " + std::string(record) + " of part-0: ") == 1);
  CHECK(job::count(j.log(), "; it is left out") == 2);
  CHECK(has(j.log(), "Epoch 2: 256 records in the data set, 254 counted once, 2 skipped as damaged, 0 left"));
}

TEST_CASE("records that are not what the model expects") {
  job::scratch const dir;
  check_refused_both_ways({spoilt(dir, [](edl::example& e) { edl::example_builder(e).integer("label", 1); })},
                          {"record 200 of part-0: ", "'x'", "label"});
  check_refused_both_ways({spoilt(dir,
                                  [](edl::example& e) {
                                    edl::example_builder b(e);
                                    b.floats("x", 8);
                                    b.integer("label", 3);
                                  })},
                          {"record 200 of part-0: ", "label 3"});
  check_refused(train({spoilt(dir,
                              [](edl::example& e) {
                                edl::example_builder b(e);
                                b.floats("x", 7);
                                b.integer("label", 0);
                              })}),
                {"record 200 of part-0: ", "gets 7 values from `feed`, but the network takes 8"});
  check_refused(train({spoilt(dir,
                              [](edl::example& e) {
                                edl::example_builder b(e);
                                for (float& x : b.floats("x", 8)) x = NAN;
                                b.integer("label", 0);
                              })}),
                {"record 200 of part-0: value 0 of 'x' is nan"});
}

TEST_CASE("data of which more is damaged than may be are no data to train on") {
  job::scratch const dir;
  auto const spoilt = [&](std::string const& name, std::uint64_t every) {
    job::write_shard(dir / name + "/part-0", 512, 1, [&](std::uint64_t i, edl::example& e) {
      if (i % every != 0) return;
      edl::example_builder b(e);
      for (float& x : b.floats("x", 8)) x = INFINITY;
      b.integer("label", 0);
    });
    return "--training_data=" + dir / name;
  };
  check_refused_both_ways({spoilt("all", 1), "--skip_damaged", "--output=" + dir / "out"},
                          {" of part-0: value 0 of 'x' is inf"});  // no feed has taken a record
  CHECK_FALSE(std::filesystem::exists(dir / "out/model.safetensors"));
  std::string const some = spoilt("some", 64);
  check_refused_both_ways({some, "--skip_damaged"},
                          {"6 of 512 records are skipped as damaged, and --max_damaged=0.01 allows 5"});
  job::run j(train({some, "--skip_damaged", "--max_damaged=0.1"}));
  CHECK(j.wait() == 0);
  CHECK(has(j.log(), "504 counted once, 8 skipped as damaged"));
}

TEST_CASE("a record that cannot be evaluated is found before the first step, or the model is written first") {
  for (std::uint64_t const bad : {511, 200})
    for (lines const& processes : {lines{}, lines{"--num_ps_pods=1", "--num_workers=1"}}) {
      CAPTURE(bad);
      job::scratch const dir;
      job::write_shard(dir / "test/part-0", 512, 9, [&](std::uint64_t i, edl::example& e) {
        if (i != bad) return;
        edl::example_builder b(e);
        b.floats("x", 8);
        b.integer("label", 3);
      });
      lines flags{"--validation_data=" + dir / "test", "--output=" + dir / "out"};
      flags.insert(flags.end(), processes.begin(), processes.end());
      check_refused(train(flags), {"record " + std::to_string(bad) + " of part-0: label 3 is out of range"});
      CHECK(std::filesystem::exists(dir / "out/model.safetensors") == (bad == 200));
    }
}

TEST_CASE("a file that changes while it is read") {
  for (std::string const how : {"cut", "written", "longer"})
    for (lines const& processes : {lines{}, lines{"--num_ps_pods=1", "--num_workers=2"}}) {
      CAPTURE(how);
      job::scratch const dir;
      for (int i = 0; i < 4; ++i) job::write_shard(dir / "train/part-" + std::to_string(i), 512, 1);
      lines flags{"--training_data=" + dir / "train", "--num_epochs=3"};
      flags.insert(flags.end(), processes.begin(), processes.end());
      job::run j(train(flags), {.env = {{"TINY_DELAY_US", "300"}}});
      REQUIRE(j.says(" completed, ", 2));
      for (int i = 0; i < 4; ++i) {
        std::string const path = dir / "train/part-" + std::to_string(i);
        if (how == "cut") {
          std::filesystem::resize_file(path, 100);
        } else if (how == "written") {
          std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
          for (std::uint64_t at = 30; at < std::filesystem::file_size(path); at += 1000)
            file.seekp(std::streamoff(at)).put('!');
        } else {
          std::ofstream(path, std::ios::binary | std::ios::app) << "more";
        }
      }
      int const code = j.wait();
      CHECK(j.nothing_left());
      CAPTURE(j.log());
      // Chunks that had been read before are in memory: a run need not notice. If it does, it says which
      // file.
      if (code == 0) {
        CHECK(has(j.log(), "Epoch 2: 2048 records in the data set, 2048 counted once"));
      } else {
        CHECK(code == 1);
        CHECK(has(plain_lines(j.log()).back(), dir / "train/part-"));
      }
      if (how == "longer") CHECK(code == 0);
    }
}

TEST_CASE("places that cannot be written to") {
  job::scratch const dir;
  spill(dir / "file", "x");
  for (std::string const flag : {"--checkpoint_dir", "--output"}) {
    check_refused_both_ways({flag + "=" + dir / "file"}, {flag + "=" + dir / "file"});
    check_refused_both_ways({flag + "=" + dir / "file/below"},
                            {flag + "=" + dir / "file/below", "Not a directory"});
  }
  check_refused(train({"--log_file_path=" + dir / "file/log"}),
                {"--log_file_path=" + dir / "file/log", "Not a directory"});
}

TEST_CASE("why a process ends is also in the file of its log") {
  job::scratch const dir;
  for (lines flags : {lines{}, lines{"--num_ps_pods=1", "--num_workers=1"}}) {
    flags.insert(flags.end(), {"--training_data=" + dir / "absent", "--log_file_path=" + dir / "log"});
    check_refused(train(flags), {dir / "absent"});
    std::string const kept = slurp(dir / "log");
    CAPTURE(kept);
    CHECK(has(kept, "[ERROR]"));
    CHECK(has(kept, "this process ends: "));
    CHECK(has(kept, dir / "absent"));
    std::filesystem::remove(dir / "log");
  }
}

TEST_CASE("a disk that is full when a checkpoint is written") {
  // 2,000 bytes take what the log says of it, and no checkpoint's file.
  for (lines const& processes : {lines{}, lines{"--num_ps_pods=1", "--num_workers=1"}}) {
    job::scratch const dir;
    lines flags{"--checkpoint_dir=" + dir / "checkpoints", "--log_level=ERROR"};
    flags.insert(flags.end(), processes.begin(), processes.end());
    job::run j(train(flags), {.file_bytes = 2000});
    CHECK(j.wait() == 1);
    CHECK(j.nothing_left());
    CAPTURE(j.log());
    REQUIRE_FALSE(plain_lines(j.log()).empty());
    CHECK(has(plain_lines(j.log()).back(), "the final checkpoint cannot be written"));
    CHECK(has(plain_lines(j.log()).back(), "File too large"));
    CHECK_FALSE(edl::checkpoint::newest_valid(dir / "checkpoints").has_value());
  }
}

TEST_CASE("a disk that is full for a while costs the checkpoints of that while, and no training") {
  // The file that stands in the place of the checkpoints' directory is as good as no space.
  for (lines const& processes : {lines{}, lines{"--num_ps_pods=2", "--num_workers=1"}}) {
    job::scratch const dir;
    lines flags{"--checkpoint_dir=" + dir / "checkpoints", "--checkpoint_steps=8", "--num_epochs=2"};
    flags.insert(flags.end(), processes.begin(), processes.end());
    for (int v : {8, 16, 24}) spill(dir / "checkpoints/version-" + std::to_string(v), "in the way");
    job::run j(train(flags));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "the checkpoint of version 8 cannot be written: "));
    CHECK(has(j.log(), dir / "checkpoints/version-8"));
    CHECK(has(j.log(), "Checkpoint of version "));  // which ones depends on how fast the disk is
    CHECK(has(j.log(), "Epoch 1: 2048 records in the data set, 2048 counted once, "));
    CHECK(edl::checkpoint::newest_valid(dir / "checkpoints") == dir / "checkpoints/version-128");
  }
}

TEST_CASE("flags that are unknown or make no sense") {
  auto const& there = "--training_data=" + job::data().training;
  check_refused({"train", there, "--num_epoch=1"}, {"unknown flag --num_epoch", "--num_epochs"});
  check_refused({"train", there, "--minibatch_size=many"}, {"--minibatch_size", "many"});
  check_refused({"train", there, "--minibatch_size=0"}, {"--minibatch_size"});
  check_refused({"train", there, "--num_workers=-1"}, {"--num_workers"});
  check_refused({"train"}, {"--training_data"});
  check_refused({"train", there, "--checkpoint_steps=10"}, {"--checkpoint_steps needs --checkpoint_dir"});
  check_refused({"train", there, "--port=70000"}, {"--port"});
  check_refused({"trian", there}, {"trian", "did you mean train?"});
  check_refused({"evaluate", "--validation_data=" + job::data().validation}, {"--checkpoint_dir_for_init"});
  job::scratch const dir;
  for (lines const& more : {lines{}, {"--num_ps_pods=1", "--num_workers=1"}}) {
    lines line{"evaluate", "--validation_data=" + job::data().validation,
               "--checkpoint_dir_for_init=" + dir / "none"};
    line.insert(line.end(), more.begin(), more.end());
    check_refused(line, {dir / "none"});
  }
}

TEST_CASE("no name, path or content of a file drives the terminal") {
  job::scratch const dir;
  std::string const evil =
                        "\x1b]0;title\x07\x9b"
                        "31m",
                    table = dir / ("a" + evil + ".csv");
  std::ofstream(table) << "x,label\n1,2\n" << evil << ",3\n";
  for (lines const& line :
       {lines{"train", "--training_data=" + dir / evil},
        {"train", "--training_data=" + table},
        {"train", "--training_data=" + job::data().training, "--" + evil + "=1"},
        {"train", "--training_data=" + job::data().training, "--num_epochs=" + evil},
        {"evaluate", "--validation_data=x", "--checkpoint_dir_for_init=" + dir / evil},
        {"predict", "--prediction_data=" + dir / evil, "--checkpoint_dir_for_init=" + dir / evil},
        {"data", "--from=" + dir / evil, "--to=" + dir / "out"},
        {"audit", dir / evil},
        {"scale", "--job_name=" + evil, "--num_workers=2"},
        {evil}}) {
    job::run j(line);
    CHECK(j.wait() != 0);
    CAPTURE(j.log());
    CHECK_FALSE(j.log().empty());
    CHECK(j.log().find_first_of("\x1b\x07\x9b") == std::string::npos);
  }
}

TEST_CASE("a port that is in use") {
  bound_port const taken;
  ::listen(taken.socket, 1);
  check_refused(train({"--num_workers=1", "--num_ps_pods=1", "--port=" + std::to_string(taken.number)}),
                {std::to_string(taken.number), "Address already in use"});
  check_refused(train({"--num_workers=1", "--num_ps_pods=1", "--host=no.such.host.invalid"}),
                {"no.such.host.invalid"});
}

TEST_CASE("roles without what they need") {
  auto const command = train({"--num_workers=1", "--num_ps_pods=1"});
  check_refused(command, {"EDL_ROLE=boss", "master, ps or worker"}, {.env = {{"EDL_ROLE", "boss"}}});
  check_refused(command, {"EDL_JOB_TOKEN is not set"}, {.env = {{"EDL_ROLE", "worker"}}});
  check_refused(command, {"MASTER_ADDR is not set"},
                {.env = {{"EDL_ROLE", "worker"}, {"EDL_JOB_TOKEN", secret}}});
  job::environment ps{{"EDL_ROLE", "ps"}, {"EDL_JOB_TOKEN", secret}, {"MASTER_ADDR", "127.0.0.1:1"}};
  check_refused(command, {"PS_ID is not set"}, {.env = ps});
  ps.emplace_back("PS_ID", "7");
  check_refused(command, {"PS_ID=7", "--num_ps_pods=1"}, {.env = ps});
  check_refused(command, {"WORKER_ID='one'"},
                {.env = {{"EDL_ROLE", "worker"},
                         {"EDL_JOB_TOKEN", secret},
                         {"MASTER_ADDR", "127.0.0.1:1"},
                         {"WORKER_ID", "one"}}});
  check_refused(command, {"nonsense"},
                {.env = {{"EDL_ROLE", "worker"},
                         {"EDL_JOB_TOKEN", secret},
                         {"MASTER_ADDR", "nonsense"},
                         {"WORKER_ID", "1"}}});
}

TEST_CASE("roles whose master cannot be reached wait for it, give up, and say where it was to be") {
  std::vector<std::unique_ptr<job::run>> all;
  for (std::string const role : {"worker", "ps"})
    all.push_back(
        std::make_unique<job::run>(train({"--num_workers=1", "--num_ps_pods=1", "--master_timeout=7"}),
                                   job::options{.env = {{"EDL_ROLE", role},
                                                        {role == "ps" ? "PS_ID" : "WORKER_ID", "0"},
                                                        {"EDL_JOB_TOKEN", secret},
                                                        {"MASTER_ADDR", "127.0.0.1:1"}}}));
  for (auto& j : all) {
    CHECK(j->wait(120s) == 75);  // of sysexits.h: worth another try
    CAPTURE(j->log());
    REQUIRE(plain_lines(j->log()).size() == 1);
    CHECK(has(plain_lines(j->log()).back(), "the master was away for longer than --master_timeout=7 s"));
    CHECK(has(j->log(), "waits for the master, which has not answered for "));
    CHECK(has(plain_lines(j->log()).back(), "127.0.0.1:1"));
  }
}

TEST_CASE("a worker with the wrong token is turned away, and the job does not mind") {
  long_job l;
  job::run stranger(train({"--num_workers=2", "--num_ps_pods=2"}),
                    {.env = {{"EDL_ROLE", "worker"},
                             {"WORKER_ID", "9"},
                             {"EDL_JOB_NAME", "tiny"},
                             {"EDL_JOB_TOKEN", secret},
                             {"MASTER_ADDR", "127.0.0.1:" + std::to_string(l.port)}}});
  // It tries again: whoever turned it away may have been somebody else at that address.
  REQUIRE(l.j.says("connection refused", 1));
  l.check_unharmed();
  CHECK_FALSE(has(l.j.log(), "worker 9 joined"));
}

TEST_CASE("a process of another job is turned away") {
  long_job l;
  job::run stranger(train({"--num_workers=2", "--num_ps_pods=2"}),
                    {.env = {{"EDL_ROLE", "worker"},
                             {"WORKER_ID", "9"},
                             {"EDL_JOB_NAME", "another job"},
                             {"EDL_JOB_TOKEN", secret},
                             {"MASTER_ADDR", "127.0.0.1:" + std::to_string(l.port)}}});
  REQUIRE(l.j.says("connection refused", 1));
  l.check_unharmed();
}

TEST_CASE("garbage sent to the master costs that connection only") {
  long_job l;
  edl::random_stream const random(5, 0);
  for (std::uint64_t i = 0; i < 20; ++i) {
    std::string bytes(random.below(5000, i), '\0');
    for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = char(random.bits(i * 10000 + k));
    send_to(l.port, bytes);
  }
  send_to(l.port, "GET / HTTP/1.1\r\n\r\n");
  send_to(l.port, std::string(4096, '\xff'));
  send_to(l.port, "");
  l.check_unharmed();
}

TEST_CASE("a result that cannot be printed is told") {
  job::scratch const dir;
  auto const run = [&](std::string const& line) {
    return WEXITSTATUS(std::system(("'" EDL_TINY "' " + line + " 2>" + dir / "said").c_str()));
  };
  for (char const* command :
       {"--help", "train --help", "train --training_data=synthetic:test --explain_plan"})
    for (char const* to : {" >/dev/full", " >&-"}) {
      CAPTURE(command);
      CAPTURE(to);
      CHECK(run(std::string(command) + to) == 1);
      std::string const said = slurp(dir / "said");
      CAPTURE(said);  // the library's words for a long text
      CHECK(
          (has(said, "tiny: standard output cannot be written") || has(said, "tiny: cannot write to file")));
    }
}

}  // namespace bad_input_test
