// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/local/local.hpp"

#include "app/job.hpp"
#include "edl/base/checkpoint/directory.hpp"

namespace local_test {

using job::count, job::has, job::slurp, job::train;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

std::string last_accuracy(std::string const& log) {
  auto const at = log.rfind("{'accuracy': ");
  return at == std::string::npos ? "" : log.substr(at + 13, log.find('}', at) - at - 13);
}

}  // namespace

TEST_CASE("a local run trains, evaluates, accounts for every record and leaves a model") {
  job::scratch const dir;
  job::run j(train({"--validation_data=" + job::data().validation, "--num_epochs=3", "--evaluation_steps=64",
                    "--log_loss_steps=50", "--output=" + dir / "model",
                    "--checkpoint_dir=" + dir / "checkpoints", "--log_file_path=" + dir / "log"}));
  CHECK(j.wait() == 0);
  std::string const log = j.log();
  CAPTURE(log);
  CHECK(count(log, "Evaluation metrics[v=64]: {'accuracy': ") == 1);
  CHECK(count(log, "Evaluation metrics[v=128]: {'accuracy': ") == 1);
  CHECK(count(log, "Evaluation metrics[v=192]: {'accuracy': ") == 1);
  REQUIRE_FALSE(last_accuracy(log).empty());
  CHECK(std::stod(last_accuracy(log)) > 0.8);  // three classes: a guess is right in a third
  for (char const* steps : {"steps = 1\n", "steps = 50\n", "steps = 100\n", "steps = 150\n"})
    CHECK(count(log, steps) == 1);
  CHECK(has(log, "Loss = "));
  for (char const* epoch : {"Epoch 0: ", "Epoch 1: ", "Epoch 2: "})
    CHECK(
        has(log, epoch + std::string("2048 records in the data set, 2048 counted once, 0 skipped as damaged, "
                                     "0 left")));
  CHECK(std::filesystem::exists(dir / "model/model.safetensors"));
  CHECK(edl::checkpoint::newest_valid(dir / "checkpoints") == dir / "checkpoints/version-192");
  CHECK(slurp(dir / "log") == log);
}

TEST_CASE("with validation data and no steps, the end is evaluated and nothing else") {
  for (std::vector<std::string> const& how :
       {std::vector<std::string>{}, {"--num_workers=1", "--num_ps_pods=2"}}) {
    std::vector<std::string> more{"--validation_data=" + job::data().validation};
    more.insert(more.end(), how.begin(), how.end());
    job::run j(train(more));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(count(j.log(), "Evaluation metrics[v=") == 1);
    CHECK(count(j.log(), "Evaluation metrics[v=64]: {'accuracy': ") == 1);
  }
}

TEST_CASE("the same seed gives the same model, another seed another") {
  job::scratch const dir;
  for (char const* name : {"a", "b"}) CHECK(job::run(train({"--output=" + dir / name})).wait() == 0);
  CHECK(job::run(train({"--output=" + dir / "c", "--seed=8"})).wait() == 0);
  std::string const a = slurp(dir / "a/model.safetensors");
  CHECK(a.size() > 259 * sizeof(float));
  CHECK(a == slurp(dir / "b/model.safetensors"));
  CHECK(a != slurp(dir / "c/model.safetensors"));
}

TEST_CASE("a run goes on where its checkpoints left off: the second epoch only, to the same bits") {
  job::scratch const dir;
  std::string const checkpoints = "--checkpoint_dir=" + dir / "checkpoints";
  CHECK(job::run(train({checkpoints, "--num_epochs=1"})).wait() == 0);
  job::run second(train({checkpoints, "--num_epochs=2", "--output=" + dir / "resumed"}));
  CHECK(second.wait() == 0);
  std::string const log = second.log();
  CAPTURE(log);
  CHECK(has(log, "going on from " + dir / "checkpoints/version-64"));
  CHECK(count(log, " completed, ") == 16);
  CHECK_FALSE(has(log, "Starting epoch 0"));
  CHECK(has(log, "Epoch 1: 2048 records in the data set, 2048 counted once"));
  CHECK(job::run(train({"--num_epochs=2", "--output=" + dir / "whole"})).wait() == 0);
  CHECK(slurp(dir / "resumed/model.safetensors") == slurp(dir / "whole/model.safetensors"));

  job::run third(train({checkpoints, "--num_epochs=2"}));
  CHECK(third.wait() == 0);
  CHECK_FALSE(has(third.log(), " completed, "));
}

TEST_CASE("the last version is written once where a checkpoint was due at it, whatever keeps the model") {
  job::scratch const dir;
  for (std::vector<std::string> const& how :
       {std::vector<std::string>{}, {"--num_workers=1", "--num_ps_pods=1"}}) {
    std::string const name = how.empty() ? "one" : "many";
    auto flags = how;
    flags.insert(flags.end(), {"--checkpoint_dir=" + dir / name, "--checkpoint_steps=32"});
    job::run j(train(flags));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(count(j.log(), "Checkpoint of version 64 written") == 1);
    CHECK(edl::checkpoint::newest_valid(dir / name) == dir / name + "/version-64");
  }
}

TEST_CASE("of the checkpoints of one process only the newest stay, where that is asked for") {
  job::scratch const dir;
  CHECK(job::run(train({"--checkpoint_dir=" + dir / "c", "--checkpoint_steps=4", "--keep_checkpoint_max=2"}))
            .wait() == 0);
  std::size_t kept = 0;
  for (auto const& entry : std::filesystem::directory_iterator(dir / "c")) {
    CAPTURE(entry.path().string());
    kept += entry.path().filename().string().starts_with("version-");
  }
  CHECK(kept == 2);
  CHECK(edl::checkpoint::newest_valid(dir / "c") == dir / "c/version-64");
}

TEST_CASE("another job's checkpoints are refused") {
  job::scratch const dir;
  std::string const checkpoints = "--checkpoint_dir=" + dir / "checkpoints";
  CHECK(job::run(train({checkpoints})).wait() == 0);
  for (std::vector<std::string> const& more : {std::vector<std::string>{"--job_name=other"},
                                               {"--num_workers=1", "--num_ps_pods=1", "--job_name=other"},
                                               {"--training_data=" + job::data().validation},
                                               {"--missing=nil"},
                                               {"--minibatch_size=16"}}) {
    std::vector<std::string> line = more;
    line.push_back(checkpoints);
    job::run j(train(line));
    CHECK(j.wait() == 1);
    CAPTURE(j.log());
    CHECK(has(j.log(), "holds checkpoints of "));
    CHECK(has(j.log(), "name another directory"));
    CHECK(has(j.log(), "with --checkpoint_dir_for_init=" + dir / "checkpoints/version-64") ==
          more.front().starts_with("--training_data"));
    CHECK(edl::checkpoint::newest_valid(dir / "checkpoints") == dir / "checkpoints/version-64");
  }
}

TEST_CASE("an interrupted run writes a checkpoint and goes on from it") {
  job::scratch const dir;
  std::string const checkpoints = "--checkpoint_dir=" + dir / "checkpoints";
  for (int signal : {SIGTERM, SIGINT}) {
    job::run j(train({checkpoints, "--num_epochs=2"}), {.env = {{"TINY_DELAY_US", "300"}}});
    REQUIRE(j.says(" completed, ", 3));
    ::kill(j.pid(), signal);
    CHECK(j.wait() == 128 + signal);
    CHECK(edl::checkpoint::newest_valid(dir / "checkpoints").has_value());
    CHECK(j.nothing_left());
  }
  job::run rest(train({checkpoints, "--num_epochs=2", "--output=" + dir / "resumed"}));
  CHECK(rest.wait() == 0);
  CHECK(has(rest.log(), "going on from "));
  CHECK(has(rest.log(), "Epoch 1: 2048 records in the data set, 2048 counted once"));
  CHECK(job::run(train({"--num_epochs=2", "--output=" + dir / "whole"})).wait() == 0);
  CHECK(slurp(dir / "resumed/model.safetensors").size() == slurp(dir / "whole/model.safetensors").size());
}

TEST_CASE("what a run ends with is written again where its storage fails, as a master does it") {
  job::scratch const dir;
  std::string const obstacle = dir / "model/model.safetensors";
  std::filesystem::create_directories(obstacle + "/in the way");
  job::run j(train({"--num_epochs=1", "--output=" + dir / "model"}));
  CHECK(j.says("the model cannot be written yet, retrying: "));
  std::filesystem::remove_all(obstacle);
  CAPTURE(j.log());
  CHECK(j.wait() == 0);
  CHECK(count(j.log(), "retrying: ") == 1);
  CHECK(std::filesystem::is_regular_file(obstacle));
}

TEST_CASE("a step that was reached already is told, and nothing is trained") {
  for (lines const& how : {lines{}, lines{"--num_ps_pods=1", "--num_workers=1"}}) {
    job::scratch const dir;
    lines flags{"--checkpoint_dir=" + dir / "c", "--max_step=3"};
    flags.insert(flags.end(), how.begin(), how.end());
    CHECK(job::run(train(flags)).wait() == 0);
    job::run again(train(flags));
    CHECK(again.wait() == 0);
    CAPTURE(again.log());
    CHECK(count(again.log(), "--max_step=3 is reached already: ") == 1);
    CHECK(has(again.log(), dir / "c/version-3 is at version 3, and nothing is trained"));
  }
}

TEST_CASE("epochs in which the same was counted are one line where there are many") {
  job::run j(train({"--num_epochs=10", "--minibatch_size=512", "--num_minibatches_per_task=1"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "Epochs 0 to 8: each 2048 records in the data set, 2048 counted once, 0 skipped"));
  CHECK(has(j.log(), "Epoch 9: 2048 records in the data set, 2048 counted once, 0 skipped"));
  CHECK(count(j.log(), "counted once, 0 skipped as damaged, 0 left") == 3);  // with the summary
}

TEST_CASE("the result of evaluate is what standard output has, at any level of the log") {
  job::scratch const dir;
  CHECK(job::run(train({"--output=" + dir / "m", "--max_step=3"})).wait() == 0);
  for (lines const& how : {lines{}, lines{"--num_ps_pods=1", "--num_workers=1"}}) {
    lines words{"-c",
                "exec \"$0\" \"$@\" 2>/dev/null",
                EDL_TINY,
                "evaluate",
                "--log_level=WARNING",
                "--validation_data=" + job::data().validation,
                "--checkpoint_dir_for_init=" + dir / "m"};
    words.insert(words.end(), how.begin(), how.end());
    job::run j(words, {.program = "/bin/sh"});
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(j.log().starts_with("Evaluation metrics[v=3]: {'accuracy': "));
    CHECK(std::ranges::count(j.log(), '\n') == 1);
  }
}

TEST_CASE("where the time goes is written for every worker that was asked") {
  job::scratch const dir;
  for (lines const& processes : {lines{}, lines{"--num_ps_pods=1", "--num_workers=2", "--use_async"}}) {
    lines flags{"--profile=" + dir / "profile", "--num_threads=1"};
    flags.insert(flags.end(), processes.begin(), processes.end());
    // Slow enough that both workers get something to do.
    job::run j(train(flags), {.env = {{"TINY_DELAY_US", "300"}}});
    CHECK(j.wait() == 0);
    for (std::string const& name : processes.empty() ? lines{"local"} : lines{"worker-0", "worker-1"}) {
      CAPTURE(j.log());
      CHECK(has(slurp(dir / "profile/" + name + ".txt"), "dense "));
      CHECK(has(slurp(dir / "profile/" + name + ".txt"), "backward"));
      for (char const* part : {"waiting for records ", "training: layers ", "training: loss ", "\nall "})
        CHECK(has(slurp(dir / "profile/" + name + ".txt"), part));
      CHECK(has(slurp(dir / "profile/" + name + ".json"), "\"(loss)\""));
      CHECK(has(slurp(dir / "profile/" + name + ".json"), "\"traceEvents\":["));
    }
  }
}

TEST_CASE("--max_step ends a job at exactly that step, and a longer one goes on from there") {
  job::scratch const dir;
  auto const last = [](std::string const& log) {
    auto const at = log.rfind("[v=");
    return at == std::string::npos ? 0 : std::stoi(log.substr(at + 3));
  };
  for (lines const& how : {lines{}, lines{"--num_workers=2", "--num_ps_pods=2"},
                           lines{"--num_workers=2", "--num_ps_pods=1", "--grads_to_wait=2"}}) {
    std::string const checkpoints = dir / "c" + std::to_string(how.size());
    for (int const steps : {9, 60, 61}) {
      lines more{"--num_epochs=0", "--max_step=" + std::to_string(steps), "--checkpoint_dir=" + checkpoints,
                 "--validation_data=" + job::data().validation};
      more.insert(more.end(), how.begin(), how.end());
      job::run j(job::train(more));
      CHECK(j.wait() == 0);
      CAPTURE(j.log());
      CHECK(last(j.log()) == steps);
      CHECK(has(j.log(), "model: version " + std::to_string(steps)));
      job::run audit({"audit", checkpoints});
      CHECK(audit.wait() == 0);
    }
  }
}

TEST_CASE("with one worker, several minibatches make one step, and none is refused") {
  job::scratch const dir;
  job::run j(job::train({"--num_workers=1", "--num_ps_pods=1", "--grads_to_wait=4", "--num_epochs=1",
                         "--checkpoint_dir=" + dir / "c"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "2048 records in the data set, 2048 counted once"));
  CHECK(has(j.log(), "model: version 16"));  // of 64 minibatches
  CHECK_FALSE(has(j.log(), "again"));
}

TEST_CASE("one process makes a step of several minibatches, as one worker and a server do") {
  job::scratch const dir;
  auto const model = [&](std::string const& name, lines const& how, lines const& more) {
    lines flags{"--grads_to_wait=5", "--output=" + dir / name, "--deterministic", "--num_threads=1"};
    flags.insert(flags.end(), how.begin(), how.end());
    flags.insert(flags.end(), more.begin(), more.end());
    job::run j(job::train(flags));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK_FALSE(has(j.log(), "[WARNING]"));
    CHECK(has(j.log(), "2048 records in the data set, 2048 counted once"));
    CHECK(has(j.log(), "model: version 13"));  // of 64 minibatches, the last 4 of which are one step
    return slurp(dir / name + "/model.safetensors");
  };
  lines const servers{"--num_workers=1", "--num_ps_pods=1"};
  std::string const one = model("one", {}, {"--num_epochs=1"});
  CHECK(one.size() > 259 * sizeof(float));
  CHECK(one == model("server", servers, {"--num_epochs=1"}));
  job::run stopped(
      job::train({"--grads_to_wait=5", "--num_epochs=0", "--max_step=3", "--checkpoint_dir=" + dir / "c"}));
  CHECK(stopped.wait() == 0);
  CHECK(has(stopped.log(), "model: version 3"));
  CHECK(has(stopped.log(), "trained 480 records"));
}

TEST_CASE("--max_step counts steps, also where earlier ones had other numbers of minibatches") {
  struct course {
    lines first, then;
    std::string last;
  };
  job::scratch const dir;
  int number = 0;
  for (course const& c :
       {course{{"--max_step=4"}, {"--max_step=6", "--grads_to_wait=2"}, "6"},
        course{{"--max_step=4", "--grads_to_wait=4"}, {"--max_step=10"}, "10"},
        course{{"--num_epochs=1", "--grads_to_wait=5"}, {"--max_step=15", "--grads_to_wait=5"}, "15"}})
    for (lines const& how : {lines{}, lines{"--num_workers=1", "--num_ps_pods=1"}}) {
      std::string const checkpoints = dir / "c" + std::to_string(number++);
      for (lines const* flags : {&c.first, &c.then}) {
        lines all{"--checkpoint_dir=" + checkpoints};
        if (flags->front() != "--num_epochs=1") all.push_back("--num_epochs=0");
        all.insert(all.end(), flags->begin(), flags->end());
        all.insert(all.end(), how.begin(), how.end());
        job::run j(job::train(all));
        CHECK(j.wait() == 0);
        CAPTURE(j.log());
        if (flags == &c.then) CHECK(has(j.log(), "model: version " + c.last));
      }
    }
}

TEST_CASE("the best version is the same after a kill as without one") {
  job::scratch const dir;
  auto const in = [&](char const* name, lines const& more) {
    lines all{"--validation_data=" + job::data().validation,
              "--num_epochs=3",
              "--evaluation_steps=16",
              "--checkpoint_steps=24",
              "--save_best=accuracy",
              "--checkpoint_dir=" + dir / name};
    all.insert(all.end(), more.begin(), more.end());
    return train(all);
  };
  lines const stopping{"--early_stopping=accuracy,patience=3"};
  CHECK(job::run(in("whole", stopping)).wait() == 0);
  // Killed while it evaluates, and amid a task.
  for (std::string const& at :
       lines{"Evaluation metrics[v=32]", "Checkpoint of version 72", "Evaluation metrics[v=96]"}) {
    job::run j(in("killed", stopping), {.env = {{"TINY_DELAY_US", "100"}}});
    if (!j.says(at)) break;  // it has ended early
    ::kill(j.pid(), SIGKILL);
    CHECK(j.wait() == 128 + SIGKILL);
  }
  job::run last(in("killed", stopping));
  CHECK(last.wait() == 0);
  CAPTURE(last.log());
  CHECK(has(last.log(), "Best accuracy: "));
  CHECK(slurp(dir / "killed/evaluations.json") == slurp(dir / "whole/evaluations.json"));
  CHECK(slurp(dir / "killed/best/model.safetensors") == slurp(dir / "whole/best/model.safetensors"));
  // The same command has nothing to do any more.
  job::run again(in("killed", stopping));
  CHECK(again.wait() == 0);
  CHECK(slurp(dir / "killed/evaluations.json") == slurp(dir / "whole/evaluations.json"));
  // The best is a model.
  job::run evaluate({"evaluate", "--validation_data=" + job::data().validation,
                     "--checkpoint_dir_for_init=" + dir / "killed/best"});
  CHECK(evaluate.wait() == 0);
  job::run refused(in("c", {"--early_stopping=loss:min"}));
  CHECK(refused.wait() == 1);
  CHECK(has(refused.log(), "--early_stopping=loss: the model's metrics are accuracy"));
}

TEST_CASE("gradients are clipped, and by the same amount wherever they go") {
  job::scratch const dir;
  auto const model = [&](std::string const& name, lines const& more) {
    lines all{"--output=" + dir / name, "--deterministic", "--num_threads=1"};
    all.insert(all.end(), more.begin(), more.end());
    CHECK(job::run(train(all)).wait() == 0);
    return slurp(dir / name + "/model.safetensors");
  };
  std::string const free = model("free", {}), bound = model("bound", {"--clip_norm=0.05"});
  CHECK(free != bound);
  CHECK(free == model("wide", {"--clip_norm=1e6", "--clip_value=1e6"}));
  CHECK(bound == model("served", {"--clip_norm=0.05", "--num_workers=1", "--num_ps_pods=2"}));
  CHECK(bound == model("copied",
                       {"--clip_norm=0.05", "--num_workers=1", "--distribution_strategy=AllreduceStrategy"}));
}

}  // namespace local_test
