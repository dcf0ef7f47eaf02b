// SPDX-License-Identifier: Apache-2.0
// What a person sees of a job, on a terminal.
#include <regex>

#include "app/tiny_job.hpp"
#include "cli/pseudo_terminal.hpp"

namespace terminal_test {

using namespace tiny;
using terminal::pseudo_terminal;

namespace {

/// A job on a terminal, at a level of the log as a person has it.
struct shown {
  shown(lines flags, unsigned short columns, job::environment env = {})
      : at(columns), j(with_level(std::move(flags)), options(at, std::move(env))) {}

  /// Waits for a line, or for a number of them; false when it does not come, or the command ends first.
  bool says(std::string const& text, std::size_t times = 1) {
    bool const seen = job::eventually([&] { return at.count(text) >= times || j.ended(); });
    return seen && job::eventually([&] { return at.count(text) >= times; }, 1s);
  }

  /// The exit code, when everything has been read.
  int wait() {
    int const code = j.wait();
    at.hang_up();
    return code;
  }

  pseudo_terminal at;
  job::run j;

 private:
  static lines with_level(lines flags) {
    flags.push_back("--log_level=INFO");
    return train(flags);
  }
  static job::options options(pseudo_terminal const& at, job::environment env) {
    env.emplace_back("TERM", "xterm");
    return {.env = std::move(env), .terminal = at.there()};
  }
};

lines with_servers(int servers, int workers, lines more) {
  more.insert(more.end(),
              {"--num_ps_pods=" + std::to_string(servers), "--num_workers=" + std::to_string(workers)});
  return more;
}

std::regex const progress(
    R"((epoch [0-9]+/[0-9]+  )?[0-9]+ %(  (-- records/s|[0-9]+ records/s|loss [-+.e0-9]+|accuracy [-+.e0-9]+))*  (--:--|[0-9:]+) left)");

lines without_empty(lines all) {
  std::erase(all, "");
  std::sort(all.begin(), all.end());
  return all;
}

/// The commands that stand below a line.
lines commands_below(pseudo_terminal const& at, std::string const& title) {
  lines const all = at.screen().lines();
  lines found;
  for (auto it = std::ranges::find(all, title);
       it != all.end() && ++it != all.end() && it->starts_with("  ");)
    found.push_back(it->substr(2));
  return found;
}

/// What a shell makes of a command that a program has printed.
job::options const by_shell{.program = "/bin/sh"};

}  // namespace

TEST_CASE("the progress line is whole and alone while processes come, are killed and go, on any terminal") {
  for (unsigned short const columns : {80, 40}) {
    for (char const* no_colours : {"", "1"}) {
      if (columns == 40 && !*no_colours) continue;
      job::scratch const dir;
      shown s(with_servers(2, 2,
                           {"--use_async", "--num_epochs=3", "--log_loss_steps=1", "--evaluation_steps=20",
                            "--validation_data=" + job::data().validation, "--log_file_path=" + dir / "log"}),
              columns, {{"TINY_DELAY_US", "3000"}, {"NO_COLOR", no_colours}});
      REQUIRE(s.says("Loss = ", 4));
      REQUIRE(s.says("[worker-0] Loss = "));
      ::kill(s.j.find("worker", 0), SIGKILL);
      REQUIRE(s.says("worker 2 joined"));
      REQUIRE(s.says("[worker-2] Loss = "));
      auto const drawn = [&](char const* text) {
        terminal::emulator const now = s.at.screen();
        return std::ranges::any_of(now.erased(), [&](auto const& line) { return has(line, text); });
      };
      for (char const* text : {"loss ", "epoch 2/3", columns == 80 ? "accuracy " : "loss "})
        REQUIRE(job::eventually([&] { return drawn(text); }));
      s.j.open_gate();
      CHECK(s.wait() == 0);
      CHECK(s.j.nothing_left());
      auto const screen = s.at.screen();
      CAPTURE(s.at.text());
      // Each line of each process is there once, as it stands in the file that all of them write as well.
      lines const in_file = sorted_lines(slurp(dir / "log"));
      CHECK(without_empty(screen.lines()) == without_empty(in_file));
      CHECK(has(slurp(dir / "log"), "worker 0 is lost: "));
      CHECK(has(slurp(dir / "log"), "[master] worker-0 was killed by signal 9 (Killed)"));
      CHECK(screen.lines().back().empty());
      CHECK(screen.erased().size() > 10);
      for (std::string const& line : screen.erased()) {
        CAPTURE(line);
        CHECK(std::regex_match(line, progress));
        CHECK(line.size() < columns);
      }
      CHECK_FALSE(screen.erased_a_rest());
      CHECK(screen.not_understood().empty());
      CHECK((screen.colours() > 0) == !*no_colours);
      CHECK(drawn("--:-- left"));
      CHECK(drawn("accuracy ") == (columns == 80));
    }
  }
}

TEST_CASE("where nothing can be redrawn there is no progress line, and no escape") {
  shown s(with_servers(1, 2, {}), 80, {{"TERM", "dumb"}});
  CHECK(s.wait() == 0);
  CHECK(s.at.screen().erased().empty());
  CHECK(s.at.screen().colours() == 0);
  CHECK(s.at.count("job 'tiny' is finished") == 1);
}

TEST_CASE("what nobody has to know is logged with --verbose only") {
  for (bool const verbose : {false, true}) {
    lines flags = with_servers(1, 1, {"--log_level=INFO"});
    if (verbose) flags.emplace_back("--verbose");
    job::run j(train(flags));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "minibatch_size = 32") == verbose);
    CHECK(has(j.log(), "listens at ") == verbose);
    CHECK(has(j.log(), ".ipp:") == verbose);
    CHECK(has(j.log(), "[worker-0] joined the job (process "));
  }
}

TEST_CASE("the end says what was reached, where it lies, and commands that work as they are") {
  for (lines const& how : {lines{}, lines{"--num_workers=2", "--num_ps_pods=1"}}) {
    job::scratch const dir;
    lines flags{"--validation_data=" + job::data().validation, "--checkpoint_dir=" + dir / "it's here",
                "--output=" + dir / "model"};
    flags.insert(flags.end(), how.begin(), how.end());
    shown s(flags, 80);
    CHECK(s.wait() == 0);
    CAPTURE(s.at.text());
    CHECK(s.at.count("trained 2048 records in 0:") == 1);
    CHECK(s.at.count("records: 2048 counted once, 0 skipped as damaged, 0 left") == 1);
    CHECK(s.at.count("model: version 64") == 1);
    CHECK(s.at.count(", accuracy 0.") == 1);
    CHECK(s.at.count("checkpoint: " + dir / "it's here/version-64") == 1);
    CHECK(s.at.count("exported model: " + dir / "model/model.safetensors") == 1);
    lines const next = commands_below(s.at, "next:");
    REQUIRE(next.size() == 3);
    lines const expected{"Evaluation metrics[v=64]: ", "predictions are in ",
                         "Epoch 1: 2048 records in the data "
                         "set, 2048 counted once"};
    for (std::size_t i = 0; i < next.size(); ++i) {
      CAPTURE(next[i]);
      job::run j({"-c", "cd '" + dir / "" + "' && " + next[i]}, by_shell);
      CHECK(j.wait() == 0);
      CAPTURE(j.log());
      CHECK(has(j.log(), expected[i]));
    }
  }
}

TEST_CASE("Ctrl-C writes a checkpoint and says how to go on, in every strategy; the rest counts once") {
  for (lines const& how : {lines{}, lines{"--num_workers=2", "--num_ps_pods=2"},
                           lines{"--distribution_strategy=AllreduceStrategy", "--num_workers=2"}}) {
    job::scratch const dir;
    lines flags{"--checkpoint_dir=" + dir / "c", "--num_epochs=2", "--log_loss_steps=1"};
    flags.insert(flags.end(), how.begin(), how.end());
    std::string go_on;
    {
      shown s(flags, 80, {{"TINY_DELAY_US", "3000"}});
      REQUIRE(s.says("Loss = ", 4));
      s.at.type("\x03");
      CHECK(s.wait() == 128 + SIGINT);
      CHECK(s.j.nothing_left());
      CAPTURE(s.at.text());
      CHECK(s.at.count("stopping: a checkpoint is written first") == 1);
      auto const newest = edl::checkpoint::newest_valid(dir / "c");
      REQUIRE(newest);
      CHECK(s.at.count("stopped; the same command goes on from " + *newest) == 1);
      for (char const* wrong : {"Going on at version", "is finished", "Terminated"})
        CHECK(s.at.count(wrong) == 0);
      lines const commands = commands_below(s.at, "go on with:");
      REQUIRE(commands.size() == 1);
      go_on = commands.front();
    }
    job::run rest({"-c", go_on}, by_shell);
    CHECK(rest.wait() == 0);
    CAPTURE(rest.log());
    CHECK(has(rest.log(), "going on from " + dir / "c/version-"));
    check_account(rest.log(), 2);
  }
}

TEST_CASE("a second Ctrl-C ends everything at once, and so does SIGTERM that is sent again and again") {
  // A minibatch that takes seconds, and servers that do not answer: nobody can write a checkpoint.
  for (auto const& [processes, signal] :
       {std::pair{false, SIGINT}, {true, SIGINT}, {false, SIGTERM}, {true, SIGTERM}}) {
    job::scratch const dir;
    lines flags{"--checkpoint_dir=" + dir / "c", "--num_epochs=0", "--log_loss_steps=1"};
    if (processes) flags.insert(flags.end(), {"--num_workers=1", "--num_ps_pods=1"});
    job::environment const slow{{"TINY_DELAY_US", "20000"}, {"TINY_SLOWER_AFTER", "96"}};
    shown s(flags, 80, processes ? job::environment{{"TINY_DELAY_US", "3000"}} : slow);
    REQUIRE(s.says("Loss = ", processes ? 1 : 3));
    if (processes) ::kill(s.j.find("ps", 0), SIGSTOP);
    s.at.type("\x03");
    REQUIRE(s.says("stopping: "));
    if (signal == SIGINT)
      s.at.type("\x03");
    else
      CHECK(job::eventually([&] { return ::kill(s.j.pid(), SIGTERM), s.j.ended(); }));
    CHECK(s.wait() == 128 + signal);
    CHECK(s.j.nothing_left());
    CAPTURE(s.at.text());
    CHECK(s.at.count("every process of the job ends at once") == (processes ? 1 : 0));
    CHECK_FALSE(edl::checkpoint::newest_valid(dir / "c").has_value());
  }
}

}  // namespace terminal_test
