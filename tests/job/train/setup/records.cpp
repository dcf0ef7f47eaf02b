// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/setup/records.hpp"

#include <sstream>

#include "app/job.hpp"
#include "base/bucket/unkind_store.hpp"
#include "compute/data/pictures.hpp"
#include "edl/compute/data/joined.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/data/split.hpp"
#include "edl/compute/optim/rule.hpp"
#include "edl/compute/optim/rules.hpp"
#include "edl/compute/optim/schedule.hpp"
#include "job/train/files.hpp"
#include "scratch_directory.hpp"
#include "variables.hpp"

namespace records_test {

using job::count, job::has, job::lines_in, job::model, job::train;
using namespace std::chrono_literals;

namespace {

using lines = std::vector<std::string>;

void write_points(std::string const& path, std::uint64_t records) {
  std::ofstream out(path, std::ios::binary);
  edl::random_stream const random(3, 0);
  for (std::uint64_t i = 0; i < records; ++i) {
    auto const label = std::int32_t(random.below(3, 9 * i));
    for (std::uint64_t k = 0; k < 8; ++k) {
      float const x = random.uniform(9 * i + k + 1) + (k % 3 == std::uint64_t(label) ? 0.8f : 0.0f);
      out.write(reinterpret_cast<char const*>(&x), sizeof x);
    }
    out.write(reinterpret_cast<char const*>(&label), sizeof label);
  }
}

void write_folder(std::string const& path, lines const& classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    std::filesystem::create_directories(path + "/" + classes[i]);
    std::ofstream(path + "/" + classes[i] + "/a.png", std::ios::binary)
        << edl::data::encode_png(support::plain({2, 2, 1}, std::uint8_t(i)));
  }
}

/// Of which nobody reads a record.
class counted_source final : public edl::data::source {
 public:
  explicit counted_source(std::vector<edl::data::shard> shards) : shards_(std::move(shards)) {}
  std::vector<edl::data::shard> const& shards() const override { return shards_; }
  std::unique_ptr<edl::data::reader> open() const override { return nullptr; }

 private:
  std::vector<edl::data::shard> shards_;
};

counted_source records_of(std::vector<std::uint64_t> const& counts) {
  std::vector<edl::data::shard> shards;
  for (std::uint64_t const n : counts) shards.push_back({std::to_string(shards.size()), n});
  return counted_source(std::move(shards));
}

}  // namespace

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
  CHECK(lines_in(dir / "p") == 1 + 100);
}

TEST_CASE("a share of the training data is evaluated on and not trained, the same after a restart") {
  job::scratch const dir;
  lines const base{"--validation_split=0.1", "--checkpoint_dir=" + dir / "c", "--checkpoint_steps=10"};
  std::string told;  // by the last evaluation
  auto const with = [&](lines more) {
    more.insert(more.end(), base.begin() + (more.back().starts_with("--validation_split") ? 1 : 0),
                base.end());
    return train(more);
  };
  {
    job::run j(with({"--num_epochs=1"}));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "204 of 2048 records are held out for evaluation"));
    CHECK(has(j.log(), "1844 records in the data set, 1844 counted once, 0 skipped as damaged, 0 left"));
    CHECK(count(j.log(), "Evaluation metrics[v=") == 1);
  }
  {
    job::run j(with({"--num_epochs=2"}));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(), "going on from "));
    auto const log = j.log();
    if (auto const at = log.rfind("Evaluation metrics[v="); at != log.npos)
      told = log.substr(at, log.find('}', at) - at);
    CHECK(has(j.log(),
              "Epoch 1: 1844 records in the data set, 1844 counted once, 0 skipped as damaged, 0 left"));
  }
  {
    job::run j({"evaluate", "--validation_data=" + job::data().training, "--validation_split=0.1", "--seed=7",
                "--checkpoint_dir_for_init=" + dir / "c"});
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK_FALSE(told.empty());
    CHECK(has(j.log(), told));
  }
  job::run j(with({"--num_epochs=3", "--validation_split=0.2"}));
  CHECK(j.wait() == 1);
  CHECK(has(j.log(), "holds checkpoints of --training_data with "));
}

TEST_CASE("the model's own format is read by all processes, and a part of it is held out") {
  job::scratch const dir;
  write_points(dir / "a.points", 1500);
  write_points(dir / "b.points", 500);
  for (lines const& how : {lines{"--num_workers=2", "--num_ps_pods=1"},
                           lines{"--num_workers=2", "--distribution_strategy=AllreduceStrategy"}}) {
    lines flags{"--training_data=" + (dir / "a.points") + "," + (dir / "b.points"), "--validation_split=0.1",
                "--num_epochs=2"};
    flags.insert(flags.end(), how.begin(), how.end());
    job::run j(train(flags));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    CHECK(has(j.log(),
              "Epoch 1: 1800 records in the data set, 1800 counted once, 0 skipped as damaged, 0 left"));
    CHECK(count(j.log(), "Evaluation metrics[v=") == 1);
    CHECK(count(j.log(), "200 of 2000 records are held out for evaluation") == 1);
  }
}

TEST_CASE("pictures whose classes differ are refused, and one class more or less is told") {
  job::scratch const dir;
  write_folder(dir / "train", {"bird", "cat", "dog"});
  write_folder(dir / "test", {"bird", "dog"});
  job::run j(train({"--training_data=" + dir / "train", "--validation_data=" + dir / "test"}));
  CHECK(j.wait() == 1);
  CAPTURE(j.log());
  CHECK(
      has(j.log(), "--validation_data has other classes than --training_data (0 bird, 1 dog; 0 bird, 1 cat"));
}

TEST_CASE("a cell that makes a column a text is told once, in the log") {
  job::scratch const dir;
  std::ofstream out(dir / "a.csv");
  out << "x,label\n";
  for (int i = 0; i < 50; ++i) out << (i == 30 ? "1o" : "1") << ",0\n";
  out.close();
  job::run j(train({"--training_data=" + dir / "a.csv"}));
  CHECK(j.wait() == 1);
  CAPTURE(j.log());
  CHECK(count(j.log(), "a.csv:32: '1o' makes column 'x' a text; 49 of its cells are numbers, 1 are not") ==
        1);
}

TEST_CASE("a misspelt column is told once, with the columns that there are") {
  job::scratch const dir;
  std::ofstream(dir / "a.csv") << "X,label\n0.5,0\n1.5,1\n";
  job::run j(train({"--training_data=" + dir / "a.csv"}));
  CHECK(j.wait() == 1);
  CAPTURE(j.log());
  CHECK(count(j.log(),
              "worker 0: record 0 of a.csv, line 2: the record has no floats as feature 'x'; it has X (1 "
              "floats), "
              "label (1 integers); 'X' looks like 'x' and is another name") == 1);
}

TEST_CASE("words that count as missing are told once, unless the user has said them") {
  job::scratch const dir;
  for (char const* const name : {"a.csv", "b.csv"}) std::ofstream(dir / name) << "x,label\n1,0\nNA,1\n";
  for (char const* const said : {"auto", "NA,?"}) {
    job::run j(train({"--training_data=" + dir / "a.csv", "--validation_data=" + dir / "b.csv",
                      std::string("--missing=") + said}));
    CHECK(j.wait() == 1);
    CAPTURE(j.log());
    CHECK(count(j.log(), "'NA' in column 'x' of numbers counts as missing") == (said[0] == 'a'));
  }
}

TEST_CASE("a record that nobody takes is named once, by one process or by two workers") {
  job::scratch const dir;
  job::write_shard(dir / "data/part-0", 640, 5, [](std::uint64_t record, edl::example& e) {
    if (record != 300) return;
    auto const x = e.float_values("x");
    std::vector<float> const copy(x.begin(), x.end());
    edl::example_builder to(e);
    to.floats("x", copy);
    to.integer("label", 77);
  });
  for (lines const& processes : {lines{}, lines{"--num_ps_pods=1", "--num_workers=2"}}) {
    job::run j(train(job::with(processes, {"--training_data=" + dir / "data", "--num_epochs=3"})));
    CHECK(j.wait() == 1);
    CAPTURE(j.log());
    int named = 0, failed = 0;  // but for what --verbose adds
    std::istringstream log(j.log());
    for (std::string line; std::getline(log, line);) {
      if (has(line, "[DEBUG]")) continue;
      named += has(line, "record 300 of part-0");
      failed += has(line, " failed ");
    }
    CHECK(named == 1);
    CHECK(failed <= 3 + 1);  // a task of each epoch may fail on a fast worker before the other one decides
  }
}

TEST_CASE("a table of one row is evaluated as the training's table was read") {
  job::scratch const dir;
  std::ofstream(dir / "all.csv") << "x,label\n1,0\nNA,1\n";
  std::ofstream(dir / "one.csv") << "x,label\nNA,1\n";
  edl::job j{.data = {.training_data = dir / "all.csv", .validation_data = dir / "one.csv"}};
  edl::logger const quiet(edl::severity::critical);
  auto const lacks_x = [](edl::train::records const& of) {
    edl::example e;
    of.evaluation->open()->read(0, 0, e);
    CHECK_FALSE(e.contains("x"));
  };
  lacks_x(edl::train::open_records(j, {}, quiet));
  // A model says what it was trained with.
  j.command = edl::command::evaluate;
  j.data.training_data = {};
  lacks_x(edl::train::open_records(j, {}, quiet,
                                   {.columns = {{.name = "x", .kind = edl::example::kind::floats}}}));
}

TEST_CASE("what a damaged file hides is told to be in no count") {
  job::scratch const dir;
  for (char const* part : {"/part-0", "/part-1"}) job::write_shard(dir / "data" + part, 256, 5);
  std::filesystem::resize_file(dir / "data/part-1", 100);
  job::run j(train({"--training_data=" + dir / "data", "--skip_damaged", "--max_damaged=0"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(has(j.log(), "100 of the file's 100 bytes are left out"));
  CHECK(count(j.log(),
              "the content of a file from its damaged place on is left out as a whole; --max_damaged=0 does "
              "not count those records, because their number is unknown") == 1);
}

TEST_CASE("a schedule that ends long before the job is told, one that ends with it is not") {
  auto const told = [](std::uint64_t steps, edl::job const& j) {
    edl::rule const rule(edl::sgd{}, edl::cosine_decay{.rate = 0.1f, .steps = steps});
    return edl::train::unused_steps(j, records_of({64'000}), rule);
  };
  edl::job j;
  j.data.num_epochs = 47;
  j.data.minibatch_size = 64;
  CHECK(told(4'000, j) ==
        "the learning rate is 0 in about 91 % of this job's 47000 steps, first at about step 4112, and such "
        "steps train nothing: give the schedule the steps of the whole job, or train for fewer");
  CHECK(told(47'000, j).empty());
  j.data.max_step = 4'000;
  CHECK(told(4'000, j).empty());
  j.data.max_step = 0;
  j.data.num_epochs = 0;  // without end
  CHECK(told(4'000, j).empty());
  j.data.num_epochs = 47;
  j.strategy = edl::strategy::allreduce;
  j.processes.num_workers = 10;
  CHECK(told(4'000, j).empty());
  j.command = edl::command::evaluate;
  CHECK(told(1, j).empty());
}

TEST_CASE("a schedule that depends on the training's steps is told them, as far as there are any") {
  edl::train::records r;
  r.training = std::make_unique<counted_source>(records_of({100, 30, 64}));
  edl::job j;
  j.data.minibatch_size = 64;
  j.data.num_epochs = 5;
  CHECK(edl::train::training_steps(j, *r.training) == 5 * (2 + 1 + 1));
  j.training.grads_to_wait = 3;
  CHECK(edl::train::training_steps(j, *r.training) == 7);
  j.data.max_step = 6;
  CHECK(edl::train::training_steps(j, *r.training) == 6);
  j.data.max_step = 0, j.training.grads_to_wait = 1;

  edl::rule rule(edl::sgd{}, edl::cosine_decay{.rate = 1, .steps = edl::share_of_training(1)});
  edl::train::plan_training(rule, j, r);
  CHECK(rule.learning_rate(0) == 1);
  CHECK(rule.learning_rate(10) == doctest::Approx(0.5));
  CHECK(rule.learning_rate(20) == 0);
  j.data.num_epochs = 0;
  CHECK_THROWS_WITH_AS(edl::train::plan_training(rule, j, r), doctest::Contains("this training has no end"),
                       edl::usage_error);
  j.data.num_epochs = 5, j.processes.num_workers = 4;
  j.strategy = edl::strategy::allreduce;
  CHECK_THROWS_WITH_AS(edl::train::plan_training(rule, j, r), doctest::Contains("add --fixed_global_batch"),
                       edl::usage_error);
  j.training.fixed_global_batch = true;
  edl::train::plan_training(rule, j, r);
  CHECK(rule.learning_rate(5) == 0);
}

TEST_CASE("records that are sorted by a feature are told, where tasks are smaller and are to be shuffled") {
  job::scratch const dir;
  for (int part : {0, 1})  // each file has one label
    job::write_shard(dir / ("data/part-" + std::to_string(part)), 512, 1,
                     [&](std::uint64_t, edl::example& e) {
                       auto const x = e.float_values("x");
                       std::vector<float> const copy(x.begin(), x.end());
                       edl::example_builder b(e);
                       b.floats("x", copy);
                       b.integer("label", part);
                     });
  lines const flags{"--training_data=" + dir / "data"};
  auto const told = [&](lines more) {
    more.push_back(flags[0]);
    job::run j(train(more));
    CHECK(j.wait() == 0);
    return count(j.log(), "/data is sorted by 'label', and --shuffle mixes records within tasks of ");
  };
  CHECK(told({"--num_minibatches_per_task=2"}) == 1);
  CHECK(told({"--num_minibatches_per_task=2", "--num_workers=2", "--num_ps_pods=1"}) == 1);
  CHECK(told({"--num_minibatches_per_task=1000"}) == 0);
  CHECK(told({"--num_minibatches_per_task=2", "--shuffle=false"}) == 0);
}

TEST_CASE("records in a bucket are those of the same file") {
  scratch const dir;
  test::unkind_store store;
  std::string table = "x,label\n";
  for (int i = 0; i < 100; ++i) table += std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  store.objects = {{"a/1.csv", table}, {"a/2.csv", table}};
  test::variables const account({{"AWS_ACCESS_KEY_ID", "A"},
                                 {"AWS_SECRET_ACCESS_KEY", "B"},
                                 {"AWS_ENDPOINT_URL", store.url()},
                                 {"HOME", dir.path()}});
  edl::job j;
  j.data.data_cache = dir / "cache";
  edl::logger const quiet(edl::severity::critical);
  for (auto const& [path, records] : {std::pair{"s3://box/a/1.csv", 100u},
                                      {"s3://box/a/*.csv", 200u},
                                      {"s3://box/a/1.csv,s3://box/a/2.csv", 200u}}) {
    CAPTURE(path);
    j.data.training_data = path;
    auto const r = edl::train::open_records(j, {}, quiet, {});
    REQUIRE(r.training);
    CHECK(edl::data::records(*r.training) == records);
    edl::example last;
    auto const& shards = r.training->shards();
    r.training->open()->read(shards.size() - 1, shards.back().records - 1, last);
    CHECK(last.integer("x") == 99);
  }
  // Tables in a list are one set, and those of the validation are read like them.
  store.objects["b/1.csv"] = "x,label\nseven,1\n";
  store.objects["b/2.txt"] = "abcdefgh";
  for (char const* const path : {"s3://box/a/1.csv,s3://box/b/1.csv", "s3://box/a/*.csv,s3://box/b/1.csv"}) {
    CAPTURE(path);
    j.data.training_data = path;
    j.data.validation_data = "s3://box/a/2.csv";
    auto const r = edl::train::open_records(j, {}, quiet, {});
    edl::example first;
    for (auto const* const of : {r.training.get(), r.evaluation.get()}) {
      of->open()->read(0, 7, first);
      CHECK(first.bytes("x") == "7");
    }
    auto const columns = edl::data::columns_of(*r.training);
    REQUIRE(columns.size() == 2);
    CHECK(columns[0].kind == edl::example::kind::strings);
    CHECK(columns[1].kind == edl::example::kind::integers);
  }
  j.data.validation_data = "";
  j.data.training_data = "text:3:s3://box/b/2.txt";
  CHECK(edl::data::records(*edl::train::open_records(j, {}, quiet, {}).training) == 2);
  // What the model opens by itself stays its own.
  int asked = 0;
  j.data.training_data = "s3://box/a/1.csv";
  edl::data::opener const own = [&](std::string const& path, edl::data::source_options const& how) {
    asked += path == j.data.training_data;
    std::ofstream(dir / "own.csv") << "x,label\n1,2\n";
    return edl::data::open_source(dir / "own.csv", how);
  };
  CHECK(edl::data::records(*edl::train::open_records(j, own, quiet, {}).training) == 1);
  CHECK(asked == 1);
}

}  // namespace records_test
