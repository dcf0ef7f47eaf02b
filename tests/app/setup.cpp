// SPDX-License-Identifier: Apache-2.0
// What jobs find in the directories that they read and write: files of the past, and of other jobs.
#include "edl/app/setup.hpp"

#include <sys/stat.h>

#include "app/job.hpp"
#include "edl/app/flags.hpp"
#include "edl/wire/checkpoint_directory.hpp"
#include "edl/wire/manifest.hpp"
#include "edl/wire/model_file.hpp"

using job::count, job::has, job::slurp, job::train;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

lines const several{"--num_ps_pods=1", "--num_workers=1"};

lines with(lines line, lines const& more) {
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

std::string part_of(std::string const& checkpoint) {
  return checkpoint + "/" + edl::wire::read_manifest(checkpoint).files.at(0).name;
}

void damage(std::string const& checkpoint) {
  std::string const file = part_of(checkpoint);
  std::string content = slurp(file);
  content[content.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << content;
}

std::vector<std::string> names_in(std::string const& directory) {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::size_t lines_in(std::string const& directory) {
  std::size_t n = 0;
  for (std::string const& name : names_in(directory))
    if (!name.starts_with('.')) n += count(slurp(directory + "/" + name), "\n");
  return n;
}

/// A model that was trained, with checkpoints of versions 32 and 64: made once, read by all.
struct trained {
  job::scratch dir;
  std::string checkpoints = dir / "checkpoints", output = dir / "output";

  trained() {
    CHECK(job::run(train({"--checkpoint_dir=" + checkpoints, "--checkpoint_steps=32", "--output=" + output}))
              .wait() == 0);
  }
};

trained const& model() {
  static trained const one;
  return one;
}

}  // namespace

TEST_CASE("a damaged newest checkpoint is passed over, and one line tells it") {
  for (lines const& processes : {lines{}, several}) {
    job::scratch const dir;
    lines const flags = with({"--checkpoint_dir=" + dir / "c", "--checkpoint_steps=32"}, processes);
    CHECK(job::run(train(flags)).wait() == 0);
    std::string const newest = dir / "c/version-64", file = part_of(newest);
    damage(newest);
    job::run j(train(with(flags, {"--num_epochs=2"})));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(count(j.log(), "checkpoint " + newest + " is passed over (" + file + " is damaged") == 1);
    CHECK(has(j.log(), dir / "c/version-32 is taken instead"));
    CHECK(has(j.log(), "going on from " + dir / "c/version-32"));
    CHECK(has(j.log(), "Epoch 1: 2048 records in the data set, 2048 counted once"));
  }
}

TEST_CASE("damaged checkpoints alone are no reason to begin anew without a word") {
  job::scratch const dir;
  lines const flags{"--checkpoint_dir=" + dir / "c", "--checkpoint_steps=32"};
  CHECK(job::run(train(flags)).wait() == 0);
  damage(dir / "c/version-64");
  std::filesystem::remove(part_of(dir / "c/version-32"));
  for (lines const& processes : {lines{}, several}) {
    job::run j(train(with(flags, processes)));
    CHECK(j.wait() == 1);
    CAPTURE(j.log());
    CHECK(has(j.log(), "--checkpoint_dir=" + dir / "c holds no checkpoint that can be used"));
    CHECK(has(j.log(), dir / "c/version-64"));
    CHECK(has(j.log(), "name another directory, or start anew with --ignore_damaged_checkpoints"));
    CHECK_FALSE(has(j.log(), "Starting epoch"));
  }
  job::run anew(train(with(flags, {"--ignore_damaged_checkpoints"})));
  CHECK(anew.wait() == 0);
  CAPTURE(anew.log());
  CHECK(has(anew.log(), "there is no older one"));
  CHECK(has(anew.log(), "Epoch 0: 2048 records in the data set, 2048 counted once"));
  CHECK(edl::wire::newest_valid(dir / "c") == dir / "c/version-64");
}

TEST_CASE(
    "checkpoints that are damaged while a job runs are no reason to go back to the seed without a word") {
  for (bool const tolerant : {false, true}) {
    job::scratch const dir;
    lines flags = with({"--checkpoint_dir=" + dir / "c"}, several);
    CHECK(job::run(train(flags)).wait() == 0);
    if (tolerant) flags.push_back("--ignore_damaged_checkpoints");
    job::run j(train(with(flags, {"--num_epochs=3"})), {.env = {{"TINY_DELAY_US", "300"}}});
    REQUIRE(j.says(" completed, "));
    damage(dir / "c/version-64");
    ::kill(j.find("ps"), SIGKILL);
    int const code = j.wait();
    CAPTURE(j.log());
    CHECK(code == (tolerant ? 0 : 1));
    CHECK(has(j.log(), "checkpoint " + dir / "c/version-64 is passed over ("));
    if (tolerant)
      CHECK(has(j.log(), "Epoch 0: 2048 records in the data set, 2048 counted once"));
    else
      CHECK(has(j.log(), "no checkpoint in " + dir / "c can be used to go on from; the same command with "
                                                     "--ignore_damaged_checkpoints starts anew"));
  }
}

TEST_CASE("a checkpoint that cannot be read now is not damaged") {
  job::scratch const dir;
  lines const flags{"--checkpoint_dir=" + dir / "c", "--checkpoint_steps=32"};
  CHECK(job::run(train(flags)).wait() == 0);
  std::string const file = part_of(dir / "c/version-64");
  std::filesystem::remove(file);
  REQUIRE(::mknod(file.c_str(), S_IFSOCK | 0600, 0) == 0);  // is there, and cannot be opened
  job::run refused(train(flags));
  CHECK(refused.wait() == 1);
  CAPTURE(refused.log());
  CHECK(has(refused.log(), "cannot open " + file + ": "));
  CHECK(has(refused.log(), "give the command again when it can be read, or pass it over"));
  job::run allowed(train(with(flags, {"--ignore_damaged_checkpoints"})));
  CHECK(allowed.wait() == 0);
  CHECK(has(allowed.log(), "going on from " + dir / "c/version-32"));
}

TEST_CASE("an attempt that was never complete is no damage") {
  job::scratch const dir;
  std::filesystem::create_directories(dir / "c/version-7");
  std::ofstream(dir / "c/version-7/variables-0-of-1-0123456789abcdef.safetensors") << "half";
  std::ofstream(dir / "c/version-7/.manifest.json.tmp-0123456789abcdef") << "half";
  std::ofstream(dir / "c/.master.json.tmp-0123456789abcdef") << "half";
  job::run j(train({"--checkpoint_dir=" + dir / "c"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK_FALSE(has(j.log(), "is passed over"));
  CHECK(names_in(dir / "c") == lines{".edl-lock", "version-64"});
}

TEST_CASE("two identical commands notice each other, and a killed one is nobody") {
  for (lines const& processes : {lines{}, several}) {
    job::scratch const dir;
    lines const command = train(with({"--checkpoint_dir=" + dir / "c", "--checkpoint_steps=8"}, processes));
    job::run first(command, {.env = {{"TINY_DELAY_US", "5000"}}});
    REQUIRE(first.says("Checkpoint of version "));
    job::run second(command);
    CHECK(second.wait() == 1);
    CAPTURE(second.log());
    CHECK(has(second.log(), "--checkpoint_dir=" + dir / "c is in use by job 'tiny' (process " +
                                std::to_string(first.pid()) + " on "));
    CHECK(has(second.log(), "wait for its end, stop it, or name another directory"));
    CHECK_FALSE(first.ended());
    ::kill(first.pid(), SIGKILL);
    CHECK(first.wait() == 128 + SIGKILL);
    job::run third(command);
    CHECK(third.wait() == 0);
    CAPTURE(third.log());
    CHECK(has(third.log(), "going on from " + dir / "c/version-"));
    CHECK(has(third.log(), "Epoch 0: 2048 records in the data set, 2048 counted once"));
  }
}

TEST_CASE("a killed master's successor is not locked out") {
  job::scratch const dir;
  job::run j(train(with({"--checkpoint_dir=" + dir / "c", "--checkpoint_steps=8"}, several)),
             {.env = {{"TINY_DELAY_US", "1000"}}});
  REQUIRE(j.says("Checkpoint of version "));
  ::kill(j.find("master"), SIGKILL);
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "this one takes its place"));
  CHECK_FALSE(has(j.log(), "is in use by"));
  CHECK(job::run({"audit", dir / "c"}).wait() == 0);
}

TEST_CASE("predictions of an earlier, longer run do not lie beside the new ones") {
  for (lines const& processes : {lines{}, several}) {
    job::scratch const dir;
    auto const predict = [&](std::string const& data, std::string const& minibatch) {
      job::run j(with({"predict", "--prediction_data=" + data, "--prediction_outputs=" + dir / "p",
                       "--checkpoint_dir_for_init=" + model().output, "--minibatch_size=" + minibatch},
                      processes));
      CHECK(j.wait() == 0);
      return j.log();
    };
    predict(job::data().training, "32");
    CHECK(lines_in(dir / "p") == 2048);
    std::ofstream(dir / "p/notes.txt") << "mine";
    std::ofstream(dir / "p/.part-00000.csv.tmp-0123456789abcdef") << "half";
    std::string const log = predict(job::data().validation, "64");
    CAPTURE(log);
    CHECK(has(log, "removed 8 files of an earlier run from " + dir / "p"));
    CHECK(lines_in(dir / "p") == 512);
    CHECK(names_in(dir / "p") == lines{".edl-lock", "notes.txt", "part-00000.csv"});
  }
}

TEST_CASE("profiles of an earlier run with more workers do not lie beside the new ones") {
  job::scratch const dir;
  std::filesystem::create_directories(dir / "p");
  for (char const* name : {"worker-0.txt", "worker-3.txt", "worker-3.json", "local.json", "worker-x.txt"})
    std::ofstream(dir / "p/" + name) << "old";
  CHECK(job::run(train(with({"--profile=" + dir / "p"}, several))).wait() == 0);
  CHECK(names_in(dir / "p") == lines{"worker-0.json", "worker-0.txt", "worker-x.txt"});
  CHECK(slurp(dir / "p/worker-0.txt") != "old");
}

TEST_CASE("one gradient for a step: none is too old, unless a tolerance is given; N are for N workers") {
  auto const old_by = [](lines const& flags, std::uint64_t behind) {
    auto const j = edl::app::parse("tiny", with({"train", "--training_data=d", "--num_workers=4"}, flags))
                       .run.value()
                       .job;
    auto const when = edl::app::policy_of(j);
    CHECK(when->group() == std::uint32_t(j.grads_to_wait));
    return when->stale(1000, 1000 - behind);
  };
  for (lines const& one : {lines{}, lines{"--grads_to_wait=1"}}) CHECK_FALSE(old_by(one, 900));
  CHECK(old_by({"--grads_to_wait=1", "--sync_version_tolerance=3"}, 4));
  CHECK_FALSE(old_by({"--grads_to_wait=1", "--sync_version_tolerance=3"}, 3));
  CHECK(old_by({"--grads_to_wait=4"}, 1));
  CHECK_FALSE(old_by({"--grads_to_wait=4"}, 0));
}

TEST_CASE("records without labels are predicted") {
  job::scratch const dir;
  job::write_shard(dir / "data/part-0", 100, 5, [](std::uint64_t, edl::example& e) {
    auto const x = e.float_values("x");
    std::vector<float> const copy(x.begin(), x.end());
    edl::example_builder(e).floats("x", copy);
  });
  job::run j({"predict", "--prediction_data=" + dir / "data", "--prediction_outputs=" + dir / "p",
              "--checkpoint_dir_for_init=" + model().output});
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(lines_in(dir / "p") == 100);
}

TEST_CASE("a shard that was rewritten with as many records is noticed and named") {
  job::scratch const dir;
  for (int i : {0, 1}) job::write_shard(dir / "data/part-" + std::to_string(i), 256, std::uint64_t(i + 1));
  lines const flags{"--training_data=" + dir / "data", "--checkpoint_dir=" + dir / "c"};
  CHECK(job::run(train(flags)).wait() == 0);
  std::string const checkpoint = dir / "c/version-16";
  auto manifest = edl::wire::read_manifest(checkpoint);
  for (auto const& shard : manifest.shards) CHECK(shard.digest != 0);
  job::write_shard(dir / "data/part-1", 256, 77);
  for (lines const& processes : {lines{}, several}) {
    job::run j(train(with(with(flags, {"--num_epochs=2"}), processes)));
    CHECK(j.wait() == 1);
    CAPTURE(j.log());
    CHECK(has(j.log(), "shard part-1 of --training_data=" + dir / "data has as many records as when " +
                           checkpoint + " was written, but other ones"));
    CHECK(has(j.log(), "--checkpoint_dir_for_init=" + checkpoint));
  }
  // A manifest of before there were digests knows nothing of it, and is read.
  for (auto& shard : manifest.shards) shard.digest = 0;
  std::ofstream(checkpoint + "/manifest.json") << edl::wire::to_json(manifest);
  job::run j(train(with(flags, {"--num_epochs=2"})));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "going on from " + checkpoint));
}

TEST_CASE("a model is read from whatever a program prints, and its version is told") {
  trained const& m = model();
  auto const evaluate = [&](std::string const& from, lines const& processes = {}) {
    job::run j(
        with({"evaluate", "--validation_data=" + job::data().validation, "--checkpoint_dir_for_init=" + from},
             processes));
    int const code = j.wait();
    CAPTURE(j.log());
    CHECK(code == 0);
    return j.log();
  };
  for (std::string const& from :
       {m.checkpoints, m.checkpoints + "/", m.checkpoints + "/version-64", m.checkpoints + "/version-64/",
        m.checkpoints + "/version-64/manifest.json", m.output, m.output + "/model.safetensors"})
    CHECK(has(evaluate(from), "Evaluation metrics[v=64]: {'accuracy': "));
  CHECK(has(evaluate(m.checkpoints), m.checkpoints + "/version-64 is the newest checkpoint in "));
  CHECK(has(evaluate(m.checkpoints + "/version-32"), "Evaluation metrics[v=32]: "));
  for (std::string const& from : {m.checkpoints, m.output})
    CHECK(has(evaluate(from, several), "Evaluation metrics[v=64]: "));
  for (std::string const& path : {m.checkpoints, m.checkpoints + "/", m.checkpoints + "/version-64/",
                                  m.checkpoints + "/version-64/manifest.json"})
    CHECK(job::run({"audit", path}).wait() == 0);
  job::run none({"audit", m.output});
  CHECK(none.wait() == 1);
  CHECK(has(none.log(), "holds a model but no account of records; name its job's --checkpoint_dir"));
}

TEST_CASE("what is no model says what it is") {
  trained const& m = model();
  job::scratch const dir;
  std::filesystem::create_directories(dir / "empty");
  std::filesystem::create_directories(dir / "cut/version-5");
  std::ofstream(dir / "text") << "text";
  auto const refused = [&](std::string const& from, std::string const& why) {
    job::run j(
        {"evaluate", "--validation_data=" + job::data().validation, "--checkpoint_dir_for_init=" + from});
    CHECK(j.wait() == 1);
    CAPTURE(j.log());
    CHECK(has(j.log(), "--checkpoint_dir_for_init=" + from + ": " + why));
  };
  refused(dir / "nothing", "there is no such file or directory");
  refused(dir / "empty", "holds neither a complete checkpoint");
  refused(dir / "cut", "holds neither a complete checkpoint");
  refused(dir / "cut/version-5", "holds neither a complete checkpoint");
  refused(dir / "text", "is neither a directory nor a file that ends in .safetensors");
  refused(part_of(m.checkpoints + "/version-64"), "is one server's part of a checkpoint");
}

TEST_CASE("training that begins with another job's values counts from their version, and its own goes on") {
  trained const& m = model();
  for (lines const& processes : {lines{}, several}) {
    job::scratch const dir;
    lines const flags =
        with({"--checkpoint_dir_for_init=" + m.checkpoints, "--checkpoint_dir=" + dir / "c"}, processes);
    CHECK(job::run(train(flags)).wait() == 0);
    CHECK(edl::wire::newest_valid(dir / "c") == dir / "c/version-128");
    job::run more(train(with(flags, {"--num_epochs=2"})));
    CHECK(more.wait() == 0);
    CAPTURE(more.log());
    CHECK(has(more.log(), "going on from " + dir / "c/version-128"));
    CHECK(has(more.log(), "Epoch 1: 2048 records in the data set, 2048 counted once"));
    CHECK_FALSE(has(more.log(), "Starting epoch 0"));
    // Of an exported model the values are taken alone.
    job::run exported(
        train(with({"--checkpoint_dir_for_init=" + m.output, "--checkpoint_dir=" + dir / "e"}, processes)));
    CHECK(exported.wait() == 0);
    CHECK(edl::wire::newest_valid(dir / "e") == dir / "e/version-64");
  }
}

TEST_CASE("a stopped job says what there is to go on from") {
  auto const stopped = [](lines const& more) {
    job::run j(train(with(several, more)), {.env = {{"TINY_DELAY_US", "5000"}}});
    bool const steps = std::ranges::find(more, "--checkpoint_steps=8") != more.end();
    CHECK(j.says(steps ? "Checkpoint of version 8 written" : " completed, "));
    ::kill(j.pid(), SIGTERM);
    CHECK(j.wait() == 128 + SIGTERM);
    return j.log();
  };
  job::scratch const dir;
  CHECK(has(stopped({}), "nothing was kept, because there is no --checkpoint_dir"));
  CHECK(has(stopped({"--checkpoint_dir=" + dir / "a"}),
            "no checkpoint was complete, so that the same command begins anew; --checkpoint_steps=N"));
  CHECK(has(stopped({"--checkpoint_dir=" + dir / "b", "--checkpoint_steps=8"}),
            "the same command goes on from " + dir / "b/version-"));
}

// Sanitizers reserve more addresses than any limit that makes sense here.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("memory that is not to be had is told in bytes, with the way out") {
  job::run j({"-c", R"(ulimit -v 4000000; exec "$0" "$@")", EDL_TINY, "train",
              "--training_data=" + job::data().training, "--minibatch_size=1000000"},
             {.env = {{"TINY_WIDE", "1"}}, .program = "/bin/sh"});
  CHECK(j.wait() == 1);
  CAPTURE(j.log());
  auto const at = j.log().find("--minibatch_size=1000000 needs ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(j.log().substr(at + 31)) > 4e9);
  CHECK(has(j.log(), "one record needs "));
  CHECK(has(j.log(), "lower --minibatch_size"));
}
#endif
