// SPDX-License-Identifier: Apache-2.0
// What stands in a summary is looked at in tests/app/terminal.cpp.
#include "edl/job/train/observe/summary.hpp"

#include "edl/base/checkpoint/checkpoint.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/core/printable.hpp"
#include "job/train/files.hpp"

namespace summary_test {

using edl::shell_line, edl::train::with_flag;
using job::lines;

TEST_CASE("a shell reads a command as it was") {
  CHECK(shell_line({"mnist", "train", "--seed=1", "--data=a/b-c_d.e,f:g@h%i+"}) ==
        "mnist train --seed=1 --data=a/b-c_d.e,f:g@h%i+");
  lines const hard{"a b", "it's", "$HOME", "", "*", "\"", "~", "back\\slash", "ö",
                   // what a log would change
                   "new\nline", "it's\ttwo", "\x1b[31m\\n'",
                   "\x01"
                   "7",
                   "\xff\xfe", "\xc2\x9b"};
  lines words{"printf", "%s|"};
  words.insert(words.end(), hard.begin(), hard.end());
  CHECK(edl::printable(shell_line(words)) == shell_line(words));
  job::run j({"-c", shell_line(words)}, {.program = "/bin/bash"});
  CHECK(j.wait() == 0);
  std::string expected;
  for (std::string const& w : hard) expected += w + "|";
  CHECK(j.log() == expected);
}

TEST_CASE("a flag of a command gets another value, wherever it stands") {
  CHECK(with_flag({"m", "train", "--num_epochs=1", "--seed=2"}, "num_epochs", "2") ==
        lines{"m", "train", "--num_epochs=2", "--seed=2"});
  CHECK(with_flag({"m", "train", "--num_epochs", "1"}, "num_epochs", "2") ==
        lines{"m", "train", "--num_epochs", "2"});
  CHECK(with_flag({"m", "train"}, "num_epochs", "2") == lines{"m", "train", "--num_epochs=2"});
}

TEST_CASE("a job that keeps nothing says what would") {
  // The version is known without a checkpoint, and without an evaluation.
  for (lines const& how :
       {lines{}, job::several, lines{"--num_workers=1", "--distribution_strategy=AllreduceStrategy"}}) {
    job::run j(job::train(how));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(job::has(j.log(), "trained 2048 records in "));
    CHECK(job::has(j.log(), "model: version 64"));
    CHECK(
        job::has(j.log(),
                 "nothing is kept: --checkpoint_dir=DIR keeps checkpoints and the history, --output=DIR the "
                 "model"));
    CHECK_FALSE(job::has(j.log(), "next:"));
  }
}

TEST_CASE("a job that keeps its model alone says that its history is not kept") {
  job::scratch const dir;
  job::run j(job::train({"--output=" + dir / "o"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(job::has(
      j.log(),
      "no checkpoint and no history is kept: --checkpoint_dir=DIR keeps checkpoints and the history"));
  CHECK_FALSE(job::has(j.log(), "nothing is kept"));
}

TEST_CASE("the commands that come next run as they are shown, whatever a path holds") {
  job::scratch const dir;
  std::string const place = dir / "it's\n a \x1b[31mred $HOME";
  job::run j(job::train({"--checkpoint_dir=" + place}));
  REQUIRE(j.wait() == 0);
  std::string log = j.log();
  CAPTURE(log);
  std::size_t commands = 0;
  for (auto at = log.find("] next:"); (at = log.find("]   ", at)) != log.npos; ++commands) {
    at += 4;
    std::string const command = log.substr(at, log.find('\n', at) - at);
    CAPTURE(command);
    job::run next({"-c", command}, {.program = "/bin/bash"});
    CHECK(next.wait() == 0);
    CAPTURE(next.log());
  }
  CHECK(commands == 3);
  CHECK(edl::checkpoint::newest_valid(place).value_or("").ends_with("/version-128"));
}

TEST_CASE("of steps and epochs, which both end a job, the one that did is told") {
  for (auto const& [steps, told] :
       {std::pair{"--max_step=40", "--max_step=40 is reached: 768 records of --num_epochs=1 are not trained"},
        {"--max_step=65", "--max_step=65 is not reached: --num_epochs=1 ends at version 64"},
        {"--max_step=64", ""}}) {
    job::run j(job::train({"--num_epochs=1", steps}));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(job::has(j.log(), told));
    CHECK(job::has(j.log(), "reached") == (*told != '\0'));
  }
}

TEST_CASE("a command that comes next goes on from what there is, however little its job asked for") {
  job::scratch const dir;
  for (auto const& [flag, most, less, next] : {std::tuple{"--max_step=", "40", "10", " --max_step=80"},
                                               {"--num_epochs=", "2", "1", " --num_epochs=4"}})
    for (char const* many : {most, less}) {
      job::run j(job::train({"--checkpoint_dir=" + dir / flag, flag + std::string(many)}));
      CHECK(j.wait() == 0);
      CAPTURE(j.log());
      CHECK(job::has(j.log(), next));
    }
}

TEST_CASE("what is left out of damaged records is so in the commands that come next") {
  job::scratch const dir;
  job::run j(job::train({"--skip_damaged", "--max_damaged=0.5", "--output=" + dir / "o"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  for (char const* command : {" evaluate ", " predict "}) CHECK(job::has(j.log(), command));
  CHECK(job::count(j.log(), "/model.safetensors --skip_damaged --max_damaged=0.5\n") == 2);
}

TEST_CASE("a job that goes on counts its own records only") {
  job::scratch const dir;
  for (lines const& how : {lines{}, job::several}) {
    std::string const checkpoints = "--checkpoint_dir=" + dir / "c" + std::to_string(how.size());
    CHECK(job::run(job::train(job::with({checkpoints}, how))).wait() == 0);
    job::run j(job::train(job::with({checkpoints, "--num_epochs=3"}, how)));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(job::has(j.log(), "trained 4096 records in "));
    CHECK(job::has(j.log(), "records: 6144 counted once, 0 skipped as damaged, 0 left"));
  }
}

TEST_CASE("what comes next is of the model and the records that the summary speaks of") {
  job::scratch const dir;
  for (lines const& how : {lines{}, job::several}) {
    std::string const own = std::to_string(how.size()), best = dir / "c" + own, average = dir / "o" + own;
    job::run j(job::train(job::with({"--validation_split=0.25", "--seed=3", "--save_best=accuracy",
                                     "--evaluation_steps=16", "--set=rate=0.01", "--checkpoint_dir=" + best},
                                    how)));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(job::has(j.log(), " evaluate --validation_data=" + job::data().training +
                                " --validation_split=0.25 --seed=3 --checkpoint_dir_for_init=" + best +
                                "/best --set=rate=0.01"));
    job::run averaged(job::train(job::with(
        {"--moving_average=0.9", "--output=" + average, "--checkpoint_dir=" + dir / "a" + own}, how)));
    CHECK(averaged.wait() == 0);
    CAPTURE(averaged.log());
    CHECK(job::has(averaged.log(), " predict --prediction_data=" + job::data().training +
                                       " --checkpoint_dir_for_init=" + average + "/model.safetensors"));
  }
}

TEST_CASE("after an early end no command comes next that would end at once") {
  job::scratch const dir;
  for (lines const& how : {lines{}, job::several})
    for (bool const early : {false, true}) {
      std::string const checkpoints = dir / "c" + std::to_string(how.size()) + (early ? "-early" : "");
      // Accuracy rises, so that the lowest is an early one.
      job::run j(job::train(job::with(
          {"--validation_data=" + job::data().validation, "--evaluation_steps=16", "--num_epochs=2",
           "--checkpoint_dir=" + checkpoints,
           early ? "--early_stopping=accuracy:min,patience=1" : "--early_stopping=accuracy:min,patience=100"},
          how)));
      CHECK(j.wait() == 0);
      CAPTURE(j.log());
      CHECK(job::has(j.log(), "Early stopping: ") == early);
      for (char const* command : {" evaluate ", " predict "})
        CHECK(job::count(j.log(), EDL_TINY + std::string(command)) == 1);
      CHECK(job::count(j.log(), EDL_TINY + std::string(" train ")) == (early ? 0 : 1));
    }
}

TEST_CASE("the loss of training and that of an evaluation are told apart") {
  for (bool const measured : {false, true}) {
    job::run j(job::train({"--validation_data=" + job::data().validation}),
               {.env = measured ? job::environment{{"TINY_SLOPE", "1"}} : job::environment{}});
    CHECK(j.wait() == 0);
    std::string const log = j.log(), begin = "model: version 64, loss ";
    CAPTURE(log);
    auto const at = log.find(begin);
    REQUIRE(at != log.npos);
    std::string const line = log.substr(at, log.find('\n', at) - at);
    CAPTURE(line);
    CHECK(line.starts_with(begin + "in training ") == measured);
    CHECK(job::has(line, ", accuracy "));
    CHECK(job::count(line, ", loss ") == (measured ? 2 : 1));
  }
}

}  // namespace summary_test
