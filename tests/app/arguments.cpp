// SPDX-License-Identifier: Apache-2.0
#include "edl/app/arguments.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/refusal.hpp"

namespace arguments_test {

using edl::app::parse;

namespace {

edl::job job(std::vector<std::string> line) { return parse("mnist", line).run.value().job; }

}  // namespace

TEST_CASE("a boolean flag stands alone or has a value") {
  CHECK(job({"train", "--training_data=d", "--use_async"}).training.use_async);
  CHECK(job({"train", "--use_async", "--training_data=d"}).training.use_async);
  CHECK(job({"train", "--training_data=d", "--use_async=Yes"}).training.use_async);
  CHECK_FALSE(job({"train", "--training_data=d", "--use_async=false"}).training.use_async);
  CHECK(contains(refusal({"train", "--training_data=d", "--use_async=maybe"}), "--use_async"));
}

TEST_CASE("what cannot be is refused by name, with the way out") {
  CHECK(contains(refusal({"train", "--training_data=d", "--minibach_size=3"}),
                 "did you mean --minibatch_size?"));
  CHECK(contains(refusal({"train", "--training_data=d", "--minibatch_size=zero"}), "--minibatch_size"));
  CHECK(contains(refusal({"train", "--training_data=d", "--minibatch_size=0"}), "--minibatch_size"));
  CHECK(contains(refusal({"train", "--training_data=d", "--minibatch_size=99999999999999999999"}),
                 "--minibatch_size"));
  CHECK(contains(refusal({"train"}), "--training_data"));
  CHECK(contains(refusal({"train", "--trainig_data=d"}), "did you mean --training_data?"));
  CHECK(contains(refusal({"trian"}), "did you mean train?"));
  CHECK(contains(refusal({}), "a command is missing: train, evaluate, predict"));
  CHECK(contains(refusal({}), "--help"));
  CHECK(contains(refusal({"train", "--training_data=d", "--use_async=maybe"}),
                 "--use_async=maybe: expected true or false"));
  CHECK(contains(refusal({"train", "--training_data=d", "--seed=1", "--seed=2"}), "--seed is given twice"));
  CHECK(contains(refusal({"train", "--training_data=d", "--image_name=x"}), "--image_name"));
  CHECK(contains(refusal({"train", "--training_data=d", "--model_def=x"}), "this binary is the model"));
  CHECK(contains(refusal({"train", "--training_data=d", "--checkpoint_steps=5"}), "--checkpoint_dir"));
  CHECK(contains(refusal({"train", "--training_data=d", "--evaluation_steps=5"}), "--validation_data"));
  CHECK(contains(refusal({"train", "--training_data=d", "--records_per_task=65"}),
                 "multiple of --minibatch_size=64"));
  CHECK(contains(refusal({"evaluate", "--validation_data=d"}), "--checkpoint_dir_for_init"));
  CHECK(contains(refusal({"train", "--training_data=d", "--distribution_strategy=Ring"}), "Ring"));
}

TEST_CASE("a flag or an argument without a value is refused, as of a script whose variable is not set") {
  std::vector<std::string> const train{"train", "--training_data=d", "--validation_data=e"},
      predict{"predict", "--prediction_data=d", "--checkpoint_dir_for_init=c"};
  for (auto const& [line, flag] : {std::pair{train, "output"},
                                   {train, "checkpoint_dir"},
                                   {train, "checkpoint_dir_for_init"},
                                   {train, "tensorboard_log_dir"},
                                   {train, "profile"},
                                   {train, "save_best"},
                                   {train, "log_file_path"},
                                   {train, "job_name"},
                                   {train, "set"},
                                   {predict, "prediction_outputs"},
                                   {predict, "prediction_columns"},
                                   {{"history"}, "plot"}}) {
    auto all = line;
    all.push_back(fmt::format("--{}=", flag));
    CHECK(refusal(all) == fmt::format("--{}= has no value: give one, or leave the flag out", flag));
  }
  CHECK(refusal({"train", "--training_data="}) ==
        "--training_data= has no value: give one, or leave the flag out");
  for (char const* command : {"history", "audit"})
    CHECK(contains(refusal({command, ""}), "an argument is empty"));
}

TEST_CASE("a flag of another command is told as one") {
  CHECK(refusal({"evaluate", "--validation_data=d", "--memory_budget=100"}) ==
        "--memory_budget is a flag of train, not of evaluate: leave it out");
  CHECK(refusal({"predict", "--validation-data=d"}) ==
        "--validation-data is a flag of train and evaluate, not of predict: leave it out");
  CHECK(contains(refusal({"predict", "--num_epoch=1"}), "unknown flag --num_epoch"));
}

TEST_CASE("a hyperparameter that is given as a flag is told as one") {
  edl::train::hyperparameters const set{{.name = "dropout", .fallback = "0.25"}};
  for (char const* command : {"train", "evaluate", "sweep"}) {
    CAPTURE(command);
    std::string said;
    try {
      parse("mnist", {command, "--dropout=0.1"}, set);
    } catch (edl::usage_error const& e) {
      said = e.what();
    }
    CHECK(said == "--dropout is a hyperparameter of the model: --set dropout=VALUE");
  }
}

TEST_CASE("a sweep says which flags of training it sets itself") {
  auto const said = [](std::string const& flag) {
    return refusal({"sweep", "--training_data=d", "--validation_data=v", "--output=o", "--by=loss", flag});
  };
  for (std::string const name : {"--checkpoint_dir", "--save_best", "--keep_checkpoint_max"})
    CHECK(said(name + "=1") == name + " is set by the sweep, for each trial; leave it out");
  CHECK(contains(said("--early_stopping=loss"), "--early_stopping is not for a sweep"));
  CHECK(contains(said("--chekpoint_steps=1"), "did you mean --checkpoint_steps?"));
  CHECK(contains(said("--model_def=x"), "this binary is the model"));
}

TEST_CASE("help tells of the flags that most people use, and of how many others there are") {
  std::string const text = parse("mnist", {"train", "--help"}).text;
  for (char const* flag : {"--training_data", "--num_epochs", "--checkpoint_dir", "--save_best"})
    CHECK(contains(text, flag));
  CHECK_FALSE(contains(text, "--grads_to_wait"));
  CHECK(std::ranges::count(text, '\n') < 60);
  CHECK(contains(text, " more flags: mnist train --help=all\n"));
  CHECK(contains(parse("mnist", {"predict", "-h"}).text, "--prediction_data"));
}

TEST_CASE("help=all names every flag and exits 0") {
  auto const help = parse("mnist", {"train", "--help=all"});
  CHECK_FALSE(help.run);
  CHECK(help.code == 0);
  for (char const* flag : {"--training_data", "--grads_to_wait", "--checkpoint_dir", "--seed", "--log_level"})
    CHECK(contains(help.text, flag));
  CHECK(contains(parse("mnist", {"--version"}).text, "0.1.0"));
}

TEST_CASE("data is a command of its own") {
  auto const run = parse("mnist", {"data", "--from=a", "--to=b", "--records_per_shard=100"}).run.value();
  REQUIRE(run.data);
  CHECK(run.data->records_per_shard == 100);
  CHECK(run.data->compressor == edl::data::compressor::snappy);
}

TEST_CASE("export is a command of its own, and a flag of train beside the model that it is made of") {
  auto const run =
      parse("mnist", {"export", "--checkpoint=c", "--export_onnx=m.onnx", "--set", "rate=1"}).run.value();
  REQUIRE(run.exported);
  CHECK(run.job.outputs.export_onnx == "m.onnx");
  CHECK(!run.job.outputs.export_fold_batch_norm);
  CHECK(run.job.checkpoints.checkpoint_dir_for_init == "c");
  CHECK(run.job.set == "rate=1");
  CHECK(contains(refusal({"export", "--checkpoint=c"}), "--export_onnx"));
  CHECK(contains(refusal({"train", "--training_data=d", "--export_onnx=m.onnx"}), "needs --output"));
  CHECK(parse("mnist", {"train", "--training_data=d", "--output=o", "--export_onnx=m.onnx"})
            .run->job.outputs.export_onnx == "m.onnx");
  CHECK(contains(refusal({"sweep", "--training_data=d", "--export_onnx=m.onnx"}), "is for one model"));
}

TEST_CASE("what an ONNX file is to have are flags of export and of train, and mean nothing without a file") {
  for (std::vector<std::string> const& line : std::vector<std::vector<std::string>>{
           {"export", "--checkpoint=c", "--export_onnx=m.onnx"},
           {"train", "--training_data=d", "--output=o", "--export_onnx=m.onnx"}}) {
    auto all = line;
    all.insert(all.end(), {"--export_fold_batch_norm", "--export-preprocess", "--export_rows_as_inputs=yes"});
    auto const job = parse("mnist", all).run.value().job;
    CHECK(job.outputs.export_fold_batch_norm);
    CHECK(job.outputs.export_preprocess);
    CHECK(job.outputs.export_rows_as_inputs);
    all.push_back("--export_preprocess");
    CHECK(contains(refusal(all), "--export_preprocess is given twice"));
    all.back() = "--export_fold_batch_norms";
    CHECK(contains(refusal(all), "did you mean --export_fold_batch_norm?"));
    all = line;
    all.push_back("--export_rows_as_inputs=7");
    CHECK(contains(refusal(all), "--export_rows_as_inputs"));
    all = line;
    all.back() = "--export_onnx=";
    CHECK(contains(refusal(all), "--export_onnx= has no value: give one, or leave the flag out"));
    all.back() = "--export_onnx=m/model.safetensors";
    CHECK(contains(refusal(all), "a model in edl's own format, which must not be overwritten"));
  }
  for (std::string const flag : {"export_fold_batch_norm", "export_preprocess", "export_rows_as_inputs"}) {
    CHECK(contains(refusal({"train", "--training_data=d", "--" + flag}),
                   "--" + flag + " applies to the file that --export_onnx=FILE writes"));
    CHECK(!job({"train", "--training_data=d", "--" + flag + "=false"}).outputs.export_preprocess);
    CHECK(contains(refusal({"sweep", "--training_data=d", "--" + flag}), "is for one model"));
    CHECK(contains(refusal({"evaluate", "--validation_data=d", "--" + flag}), "--" + flag));
  }
}

TEST_CASE("a number out of bounds is refused with bounds that can be read") {
  for (std::string const flag : {"seed",
                                 "max_step",
                                 "sync_version_tolerance",
                                 "evaluation_steps",
                                 "checkpoint_steps",
                                 "log_loss_steps",
                                 "keep_checkpoint_max",
                                 "records_per_task",
                                 "num_workers",
                                 "num_ps_pods",
                                 "minibatch_size",
                                 "loader_threads",
                                 "num_threads",
                                 "port",
                                 "get_model_steps",
                                 "grads_to_wait",
                                 "max_task_retries",
                                 "ps_ranges",
                                 "ps_replicas",
                                 "num_minibatches_per_task",
                                 "relaunch_on_worker_failure"})
    for (std::string const value : {"-1", "1e3", "", "99999999999999999999999", "0x10", "3.5"}) {
      std::string const said = refusal({"train", "--training_data=d", "--" + flag + "=" + value});
      CAPTURE(said);
      CHECK(contains(said, "--" + flag));
      CHECK(said.size() < 200);
      if (!value.empty()) CHECK(contains(said, "expected a whole number"));
    }
  CHECK(job({"train", "--training_data=d", "--num_epochs=-1"}).data.num_epochs == -1);
  CHECK(job({"train", "--training_data=d", "--seed=18446744073709551615"}).seed == ~std::uint64_t{0});
  for (std::string const fraction : {"0", "-1", "1.5", "nan", "all"}) {
    std::string const said = refusal({"data", "--from=a", "--to=b", "--fraction=" + fraction});
    CAPTURE(said);
    CHECK(contains(said, "more than 0, and at most 1"));
  }
  CHECK(contains(refusal({"scale", "--num_workers=0"}), "from 1 to 10000"));
}

TEST_CASE("a misspelt metric is answered with those of the model, the nearest first") {
  auto const told = [](std::vector<std::string> line) {
    try {
      parse("mnist", line, {}, {"loss", "accuracy", "auc"});
    } catch (edl::usage_error const& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  std::vector<std::string> const base{"train", "--training_data=d", "--validation_data=v",
                                      "--evaluation_steps=5", "--checkpoint_dir=c"};
  auto const with = [&](std::string const& flag) {
    auto line = base;
    line.push_back(flag);
    return told(line);
  };
  CHECK(with("--save_best=acuracy") ==
        "--save_best=acuracy: the model's metrics are accuracy, loss, auc; did you mean accuracy?");
  CHECK(with("--early_stopping=acuracy:max,patience=2") ==
        "--early_stopping=acuracy: the model's metrics are accuracy, loss, auc; did you mean accuracy?");
  CHECK(with("--early_stopping=something,patience=2") ==
        "--early_stopping=something: the model's metrics are loss, accuracy, auc");
  CHECK(with("--save_best=auc") == "accepted");
  CHECK(told({"sweep", "--training_data=d", "--validation_data=v", "--by=los", "--grid=a=1", "--max_step=4",
              "--output=o"}) == "--by=los: the model's metrics are loss, accuracy, auc; did you mean loss?");
  CHECK(told({"evaluate", "--validation_data=v", "--checkpoint_dir_for_init=c"}) == "accepted");
}

}  // namespace arguments_test
