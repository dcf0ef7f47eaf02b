// SPDX-License-Identifier: Apache-2.0
// Where a job begins: checkpoints of the past, good, damaged and of other jobs.
#include "edl/job/train/setup/start.hpp"

#include <sys/stat.h>

#include "app/job.hpp"
#include "edl/app/arguments.hpp"
#include "edl/base/checkpoint/directory.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/base/checkpoint/model_reader.hpp"
#include "edl/base/checkpoint/safetensors.hpp"
#include "edl/core/durable_file.hpp"
#include "job/train/files.hpp"

namespace start_test {

using job::count, job::has, job::slurp, job::train;
using job::damage, job::trained, job::lines, job::lines_in, job::model, job::names_in, job::part_of,
    job::several, job::with;
using namespace std::chrono_literals;

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
    CHECK(has(j.log(), dir / "c/version-32 instead"));
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
  CHECK(has(anew.log(), "no older one exists"));
  CHECK(has(anew.log(), "Epoch 0: 2048 records in the data set, 2048 counted once"));
  CHECK(edl::checkpoint::newest_valid(dir / "c") == dir / "c/version-64");
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
      CHECK(has(j.log(),
                "no checkpoint in " +
                    dir / "c is usable; add --ignore_damaged_checkpoints to start from the beginning"));
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
  CHECK(has(refused.log(), "run the command again when it can be read, or skip it"));
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
  CHECK(count(j.log(),
              "/version-7 has no manifest.json, so its writer did not finish it: no older one exists") == 1);
  CHECK(names_in(dir / "c") == lines{".edl-epoch", ".edl-lock", "history.jsonl", "version-64"});
}

TEST_CASE("a shard that was rewritten with as many records is noticed and named") {
  job::scratch const dir;
  for (int i : {0, 1}) job::write_shard(dir / "data/part-" + std::to_string(i), 256, std::uint64_t(i + 1));
  lines const flags{"--training_data=" + dir / "data", "--checkpoint_dir=" + dir / "c"};
  CHECK(job::run(train(flags)).wait() == 0);
  std::string const checkpoint = dir / "c/version-16";
  auto manifest = edl::checkpoint::read_manifest(checkpoint);
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
  std::ofstream(checkpoint + "/manifest.json") << edl::checkpoint::to_json(manifest);
  job::run j(train(with(flags, {"--num_epochs=2"})));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "going on from " + checkpoint));
}

TEST_CASE(
    "a job does not go on in another order, in which it would train some records twice and others never") {
  for (lines const& processes : {lines{}, several}) {
    job::scratch const dir;
    lines const flags = with({"--checkpoint_dir=" + dir / "c"}, processes);
    CHECK(job::run(train(with(flags, {"--shuffle=false"}))).wait() == 0);
    job::run j(train(with(flags, {"--num_epochs=2"})));
    CHECK(j.wait() == 1);
    CAPTURE(j.log());
    CHECK(has(j.log(), "holds checkpoints of --shuffle=false, but this command has true"));
  }
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
  job::run records({"audit", job::data().training});
  CHECK(records.wait() == 1);
  CHECK(has(records.log(), "no valid checkpoint in " + job::data().training));
}

TEST_CASE("a model in which a bit has flipped is neither evaluated nor begun with") {
  job::scratch const dir;
  std::string const path = dir / "model.safetensors";
  std::string bytes = slurp(model().output + "/model.safetensors");
  bytes.back() = char(bytes.back() ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
  for (lines const& command : {lines{"evaluate", "--validation_data=synthetic:test"}, train({})}) {
    job::run j(with(command, {"--checkpoint_dir_for_init=" + path}));
    CHECK(j.wait() == 1);
    CAPTURE(j.log());
    CHECK(has(j.log(), path + " is damaged: its CRC-32 is "));
  }
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
  refused(dir / "nothing", "no such file or directory");
  refused(dir / "empty", "holds neither a complete checkpoint");
  refused(dir / "cut", "holds neither a complete checkpoint");
  refused(dir / "cut/version-5", "holds neither a complete checkpoint");
  refused(dir / "text",
          "is neither a directory nor a file that ends in .safetensors, .safetensors.index.json or .onnx");
  refused(part_of(m.checkpoints + "/version-64"), "is one server's part of a checkpoint");
}

TEST_CASE("a model in several files is found by its index") {
  job::scratch const dir;
  std::string const part = "model-00001-of-00001.safetensors", index = dir / "model.safetensors.index.json";
  std::filesystem::copy_file(model().output + "/model.safetensors", dir / part);
  std::string map;
  edl::checkpoint::safetensors_file const file(dir / part);
  for (auto const& t : file.tensors())
    map += (map.empty() ? "" : ", ") + ("\"" + t.name + "\": \"" + part + "\"");
  std::ofstream(index) << R"({"metadata": {}, "weight_map": {)" << map << "}}";
  auto const evaluated = [](std::string const& from) {
    job::run j(
        {"evaluate", "--validation_data=" + job::data().validation, "--checkpoint_dir_for_init=" + from});
    CHECK(j.wait() == 0);
    auto const log = j.log();
    auto const at = log.find("{'accuracy': ");
    return at == log.npos ? log : log.substr(at, log.find('}', at) - at);
  };
  std::string const as_one = evaluated(model().output);
  CHECK(has(as_one, "accuracy"));
  CHECK(evaluated(dir / ".") == as_one);
  CHECK(evaluated(index) == as_one);
}

TEST_CASE("training that begins with another job's values counts from their version, and its own goes on") {
  trained const& m = model();
  for (lines const& processes : {lines{}, several}) {
    job::scratch const dir;
    lines const flags =
        with({"--checkpoint_dir_for_init=" + m.checkpoints, "--checkpoint_dir=" + dir / "c"}, processes);
    CHECK(job::run(train(flags)).wait() == 0);
    CHECK(edl::checkpoint::newest_valid(dir / "c") == dir / "c/version-128");
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
    CHECK(edl::checkpoint::newest_valid(dir / "e") == dir / "e/version-64");
  }
}

TEST_CASE("a stopped job says what there is to go on from") {
  auto const stopped = [](lines const& more) {
    job::run j(train(with(several, more)), {.env = {{"TINY_DELAY_US", "5000"}}});
    CHECK(j.says(" completed, "));
    ::kill(j.pid(), SIGTERM);
    CHECK(j.wait() == 128 + SIGTERM);
    return j.log();
  };
  job::scratch const dir;
  CHECK(has(stopped({}), "nothing was kept, because --checkpoint_dir is not given"));
  std::string const log = stopped({"--checkpoint_dir=" + dir / "a"});
  CAPTURE(log);
  auto const newest = edl::checkpoint::newest_valid(dir / "a");
  REQUIRE(newest);
  CHECK(has(log, "the same command goes on from " + *newest + "\n"));
  CHECK(has(log, "go on with:\n"));
  CHECK(has(log, "]   " + std::string(EDL_TINY) + " train --training_data="));
}

// A file in PyTorch's layout: the first layer's kernel (16, 8), and a last one of seven classes.
static std::vector<float> write_other_model(std::string const& path) {
  std::vector<float> first(128), kernel(128);
  for (std::size_t unit = 0; unit < 16; ++unit)
    for (std::size_t in = 0; in < 8; ++in)
      first[unit * 8 + in] = kernel[in * 16 + unit] = 0.01f * (float(unit) - float(in));
  std::vector<float> const last(16 * 7);
  std::vector<edl::checkpoint::tensor_source> const tensors{
      {.name = "first.weight", .dims = {16, 8}, .data = std::as_bytes(std::span(first))},
      {.name = "dense_1/kernel", .dims = {16, 7}, .data = std::as_bytes(std::span(last))}};
  edl::durable_file file(path);
  edl::checkpoint::write_safetensors(file, tensors);
  file.commit();
  return kernel;
}

TEST_CASE("training begins with what fits of another model, and what is frozen stays as it is") {
  job::scratch const dir;
  std::string const other = dir / "other.safetensors";
  auto const kernel = write_other_model(other);
  lines const begin{"--checkpoint_dir_for_init=" + other, "--skip_mismatch"};
  for (lines const& how :
       {lines{}, lines{"--get_model_steps=3"}, several,
        lines{"--num_ps_pods=2", "--num_workers=2", "--use_async", "--get_model_steps=3", "--clip_norm=1"},
        lines{"--num_workers=2", "--distribution_strategy=AllreduceStrategy"}}) {
    std::string const out = dir / "out";
    job::run j(
        train(with(with(begin, how), {"--freeze=dense/k*,batch_normalization/gamma", "--output=" + out})));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(count(j.log(), "beginning with the variables that fit from --checkpoint_dir_for_init=" + other +
                             ": found: 1 (dense/kernel); not found: ") == 1);
    CHECK(has(j.log(), "of another shape: 1 (dense_1/kernel (F32 [16, 7] there, F32 [16, 3] here))"));
    edl::checkpoint::model_reader const trained(out + "/model.safetensors");
    CHECK(trained.read("dense/kernel").values == kernel);
    CHECK(trained.read("batch_normalization/gamma").values == std::vector<float>(16, 1));
    CHECK(trained.read("dense/bias").values != std::vector<float>(16, 0));
  }
  // What is not frozen is trained from there.
  job::run j(train(with(begin, {"--output=" + dir / "all"})));
  CHECK(j.wait() == 0);
  CHECK(edl::checkpoint::model_reader(dir / "all/model.safetensors").read("dense/kernel").values != kernel);
}

TEST_CASE("parts have rates of their own in every strategy, and the model's are the user's to change") {
  job::scratch const dir;
  auto const variables = [&](lines const& how, std::string const& rates = {}) {
    std::string const out = dir / "out";
    lines const with_rates = rates.empty() ? how : with(how, {"--rates=" + rates});
    job::run j(train(with(with_rates, {"--output=" + out})));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    edl::checkpoint::model_reader const trained(out + "/model.safetensors");
    return std::pair(trained.read("dense/kernel").values, trained.read("dense_1/kernel").values);
  };
  auto const [first, last] = variables({});
  auto const [slow, after] = variables({}, "dense/*=1e-30");
  CHECK(variables({}, "dense/*=1e-30,dense/kernel=1,dense/bias=1").first == first);
  auto const initial = [&](std::string const& name) {
    job::run j(train({"--freeze=" + name, "--output=" + dir / "frozen"}));
    CHECK(j.wait() == 0);
    return edl::checkpoint::model_reader(dir / "frozen/model.safetensors").read(name).values;
  };
  auto const begin = initial("dense/kernel"), last_begin = initial("dense_1/kernel");
  CHECK(slow == begin);
  CHECK(slow != first);
  CHECK(after != last);
  for (lines const& how :
       {several, lines{"--num_ps_pods=2", "--num_workers=2", "--use_async", "--get_model_steps=3"},
        lines{"--num_workers=2", "--distribution_strategy=AllreduceStrategy"}}) {
    auto const [kernel, other] = variables(how, "dense/*=1e-30");
    CHECK(kernel == begin);
    CHECK(other != last_begin);
  }
}

TEST_CASE("a job that began with another model goes on from its own checkpoints") {
  job::scratch const dir;
  write_other_model(dir / "other.safetensors");
  lines const flags{"--checkpoint_dir_for_init=" + dir / "other.safetensors", "--skip_mismatch",
                    "--freeze=dense/bias", "--checkpoint_dir=" + dir / "c"};
  for (lines const& processes : {lines{}, several}) {
    CHECK(job::run(train(with(flags, processes))).wait() == 0);
    job::run more(train(with(with(flags, {"--num_epochs=2"}), processes)));
    CHECK(more.wait() == 0);
    CAPTURE(more.log());
    CHECK(has(more.log(), "going on from " + dir / "c/version-64"));
    CHECK_FALSE(has(more.log(), "beginning with the variables that fit"));
    std::filesystem::remove_all(dir / "c");
  }
}

TEST_CASE("a checkpoint gives what fits, and a job that begins so counts from nothing") {
  job::scratch const dir;
  job::run j(train({"--checkpoint_dir_for_init=" + model().checkpoints, "--skip_mismatch",
                    "--checkpoint_dir=" + dir / "c", "--freeze=dense/kernel", "--output=" + dir / "out"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "not found: none; of another shape: none"));
  CHECK(edl::checkpoint::newest_valid(dir / "c") == dir / "c/version-64");
  auto const kernel = [](std::string const& directory) {
    return edl::checkpoint::model_reader(directory + "/model.safetensors").read("dense/kernel").values;
  };
  CHECK(kernel(dir / "out") == kernel(model().output));
}

TEST_CASE("what fits in part is refused without the flag, which the error names") {
  job::scratch const dir;
  std::string const other = dir / "other.safetensors";
  write_other_model(other);
  auto const refused = [&](lines const& flags, std::string const& why) {
    for (lines const& processes : {lines{}, several}) {
      job::run j(train(with(flags, processes)));
      CHECK(j.wait() == 1);
      CAPTURE(j.log());
      CHECK(has(j.log(), why));
    }
  };
  refused(
      {"--checkpoint_dir_for_init=" + other},
      "here)); --skip_mismatch takes the variables that fit, and leaves the others at their initial values");
  float const one = 1;
  edl::checkpoint::tensor_source const alien{
      .name = "fc.weight", .dims = {1}, .data = std::as_bytes(std::span(&one, 1))};
  edl::durable_file file(dir / "alien.safetensors");
  edl::checkpoint::write_safetensors(file, {&alien, 1});
  file.commit();
  refused({"--checkpoint_dir_for_init=" + dir / "alien.safetensors", "--skip_mismatch"},
          "a file of another program needs weight_names in the model");
  refused({"--freeze=dense/kernl"}, "'dense/kernl' matches no variable that is trained; did you mean");
  refused({"--rates=dense/kernl=2"},
          "'dense/kernl' matches no variable or table that is trained; did you mean");
}

TEST_CASE("rows of tables come from an exported model, and a line says where there are none") {
  job::scratch const dir;
  auto const run = [&](lines const& flags) {
    job::run j(train(with(flags, {"--max_step=8"})), {.env = {{"TINY_TABLES", "1"}}});
    CHECK(j.wait() == 0);
    return j.log();
  };
  run({"--output=" + dir / "a", "--checkpoint_dir=" + dir / "c"});
  auto const rows = [](std::string const& directory) {
    edl::checkpoint::model_reader const m(directory + "/model.safetensors");
    return std::pair(m.find_table("coarse").rows, m.find_table("coarse").width);
  };
  REQUIRE(rows(dir / "a").first > 0);
  for (lines const& processes : {lines{}, several}) {
    lines const skip = with({"--skip_mismatch", "--output=" + dir / "b"}, processes);
    std::string const log = run(with(skip, {"--checkpoint_dir_for_init=" + dir / "a"}));
    CAPTURE(log);
    CHECK(has(log, "not found: none; of another shape: none"));
    CHECK_FALSE(has(log, "begins without rows"));
    CHECK(rows(dir / "b") == rows(dir / "a"));
    CHECK(has(run(with(skip, {"--checkpoint_dir_for_init=" + dir / "c"})),
              "table 'coarse' begins without rows"));
  }
  run({"--output=" + dir / "a", "--export_onnx=" + dir / "a.onnx"});
  job::run j(train({"--checkpoint_dir_for_init=" + dir / "a.onnx"}), {.env = {{"TINY_TABLES", "1"}}});
  CHECK(j.wait() == 1);
  CHECK(has(j.log(), "a.onnx: edl reads no rows from an ONNX file for table 'coarse': give a checkpoint"));
  CHECK(has(j.log(), "or add --skip_mismatch, with which the table begins without rows"));
}

TEST_CASE("evaluation and prediction take the hyperparameters of the training, in every strategy") {
  job::scratch const dir;
  job::options const sloped{.env = {{"TINY_SLOPE", "1"}}};
  CHECK(job::run(train({"--checkpoint_dir=" + dir / "c", "--output=" + dir / "m", "--set=slope=4"}), sloped)
            .wait() == 0);
  auto const evaluated = [&](lines const& more) {
    job::run j(with({"evaluate", "--validation_data=" + job::data().validation}, more), sloped);
    CHECK(j.wait() == 0);
    return j.log();
  };
  auto const metrics_in = [](std::string const& log) {
    auto const at = log.find("{'accuracy': ");
    REQUIRE(at != log.npos);
    return log.substr(at, log.find_first_of(",}", at) - at);
  };
  std::string const newest = "--checkpoint_dir_for_init=" + dir / "c",
                    zero = evaluated({newest, "--set=slope=0"}), same = evaluated({newest, "--set=slope=4"});
  CHECK(has(zero, "WARNING"));
  CHECK(has(zero, "hyperparameter slope is 0 here, and was 4 in the training of " + dir / "c" +
                      ": --set slope=4 takes that"));
  CHECK_FALSE(has(same, "hyperparameter slope"));
  REQUIRE(metrics_in(zero) != metrics_in(same));
  job::run plan({"evaluate", "--validation_data=" + job::data().validation, newest, "--explain_plan"},
                sloped);
  CHECK(plan.wait() == 0);
  CHECK(has(plan.log(), "hyperparameter slope is 4, as in the training of " + dir / "c"));
  for (lines const& how : {lines{}, several, lines{"--num_workers=2"}})
    for (std::string const& model : {dir / "c", dir / "c/version-64", dir / "m"}) {
      std::string const log = evaluated(with(how, {"--checkpoint_dir_for_init=" + model}));
      CAPTURE(log);
      CHECK(metrics_in(log) == metrics_in(same));
      CHECK(count(log, "hyperparameter slope is 4, as in the training of " + model +
                           ": --set slope=VALUE changes it") == 1);
    }
}

TEST_CASE("the plan lists the names of variables, by which a user freezes them") {
  job::run j(train({"--explain_plan", "--freeze=dense/*"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(count(j.log(), ", frozen\n") == 2);
  CHECK(has(j.log(), "variables\n  dense/kernel "));
  for (char const* line : {"  batch_normalization/gamma ", "  dense_1/bias "})
    CHECK(count(j.log(), line) == 1);
  CHECK(count(j.log(), ", not trained\n") == 2);
}

}  // namespace start_test
