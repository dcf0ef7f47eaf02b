// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/prediction/hard_records.hpp"

#include <fmt/format.h>

#include <sstream>

#include "app/job.hpp"
#include "edl/compute/data/format/picture.hpp"
#include "edl/core/error.hpp"
#include "edl/job/train/setup/outputs.hpp"
#include "job/train/files.hpp"

namespace hard_records_test {

using job::count, job::has, job::lines, job::model, job::names_in, job::scratch, job::slurp, job::with;

namespace {

struct pictures final : edl::data::source {
  std::vector<edl::data::shard> all{{"a", 3}, {"b", 3}};
  bool apart = false;  // each record is a file of its own

  struct one final : edl::data::reader {
    void read(std::size_t shard, std::uint64_t record, edl::example& into) override {
      edl::example_builder(into).integer("id", std::int64_t(100 * shard + record));
    }
  };
  std::vector<edl::data::shard> const& shards() const override { return all; }
  std::unique_ptr<edl::data::reader> open() const override { return std::make_unique<one>(); }
  std::string own_file(std::size_t shard, std::uint64_t record) const override {
    return apart ? fmt::format("/{}/{}.png", all[shard].name, record) : "";
  }
};

/// Says what a test has told it, and its loss is the number of the record in its file.
struct told final : edl::worker::trainer {
  std::vector<float> outputs;

  edl::data::batch make_batch() const override { return {}; }
  void feed(edl::example const&, edl::data::batch&, int, edl::mode) const override {}
  std::span<float> variables() override { return {}; }
  edl::view<float> gradients() const override { return {}; }
  double train(edl::data::batch const&, std::uint64_t, edl::worker::gradients_ready const&) override {
    return 0;
  }
  void evaluate(edl::data::batch const&, std::span<double>) override {}
  edl::view<float> predict(edl::data::batch const&) override { return outputs; }
  std::size_t totals() const override { return 0; }
  void inspect(edl::data::batch const& b, visit_row const& visit) override {
    std::size_t const n = outputs.size() / std::size_t(b.rows);
    for (int i = 0; i < b.rows; ++i)
      visit(i, double(b.records[std::size_t(i)]), edl::view<float>(outputs).subspan(std::size_t(i) * n, n));
  }
};

/// All records of a shard, with pictures of 2 × 2 and three classes.
edl::data::batch batch_of(std::size_t shard, std::vector<std::int32_t> const& labels) {
  auto b = edl::data::make_batch(3, 4, 0, 1);
  b.rows = 3;
  b.shard = shard == 0 ? "a" : "b";
  b.shard_number = shard;
  b.first_place = 3 * shard;
  b.records = {0, 1, 2};
  b.classes = labels;
  for (std::size_t i = 0; i < b.features.size(); ++i) b.features[i] = float(i % 4) - 1;
  return b;
}

edl::train::program of_classes(edl::shape input) {
  edl::train::program p;
  p.input = input;
  p.outputs = 3;
  p.heads = {{"output", {1, 1, 3}, 0, edl::output_meaning::classes}};
  return p;
}

}  // namespace

TEST_CASE("the records with the highest loss are told, the highest first") {
  pictures const from;
  auto const p = of_classes({2, 2, 1});
  for (bool const json : {false, true}) {
    edl::job j{.command = edl::command::evaluate, .evaluation = {.worst = 3}};
    j.evaluation.format = json ? edl::result_format::json : edl::result_format::text;
    CHECK(edl::train::hard_records::wanted(j));
    edl::train::hard_records hard(j, p, from);
    told by;
    by.outputs = {9, 0, 0, 0, 9, 0, 0, 0, 9};
    hard.look(by, batch_of(0, {0, 1, 2}));
    hard.look(by, batch_of(1, {2, 1, 0}));
    std::ostringstream out;
    hard.tell(out, edl::logger(edl::severity::critical));
    CHECK(
        out.str() ==
        (json
             ? R"({"worst":[{"record":2,"file":"a","in_file":2,"loss":2,"label":2,"class":2,"probability":0.99975324},{"record":5,"file":"b","in_file":2,"loss":2,"label":0,"class":2,"probability":0.99975324},{"record":1,"file":"a","in_file":1,"loss":1,"label":1,"class":1,"probability":0.99975324}]}
)"
             : "loss 2.0000, record 2 of a: label 2, predicted 2 (probability 1.000)\n"
               "loss 2.0000, record 2 of b: label 0, predicted 2 (probability 1.000)\n"
               "loss 1.0000, record 1 of a: label 1, predicted 1 (probability 1.000)\n"));
  }
}

TEST_CASE("the probability of a yes or no is that of predictions, whatever was said") {
  pictures const from;
  auto p = of_classes({2, 2, 1});
  p.outputs = 1;
  p.heads = {{"output", {1, 1, 1}, 0, edl::output_meaning::probabilities}};
  edl::job const j{.command = edl::command::evaluate, .evaluation = {.worst = 3}};
  edl::train::hard_records hard(j, p, from);
  told by;
  by.outputs = {-2, 0, 2};
  hard.look(by, batch_of(0, {0, 1, 1}));
  std::ostringstream out;
  hard.tell(out, edl::logger(edl::severity::critical));
  CHECK(out.str() ==
        "loss 2.0000, record 2 of a: label 1, predicted 1 (probability 0.881)\n"
        "loss 1.0000, record 1 of a: label 1, predicted 0 (probability 0.500)\n"
        "loss 0.0000, record 0 of a: label 0, predicted 0 (probability 0.119)\n");
}

TEST_CASE("classes are told with the names that the model gives them") {
  pictures from;
  auto p = of_classes({2, 2, 1});
  p.class_names = {"cat", "d\"og", "owl"};
  edl::logger const quiet(edl::severity::critical);
  for (bool const parts : {false, true}) {
    scratch const dir;
    edl::job j{.command = edl::command::evaluate, .evaluation = {.worst = 1}};
    j.evaluation.wrong = dir / "";
    if (parts) j.strategy = edl::strategy::parameter_server;
    edl::train::hard_records hard(j, p, from);
    told by;
    by.outputs = {9, 0, 0, 0, 9, 0, 0, 0, 9};
    hard.look(by, batch_of(0, {0, 1, 1}));
    std::ostringstream out;
    if (parts)
      hard.end_task({}), edl::train::hard_records::join(j, 3, out, quiet);
    else
      hard.tell(out, quiet);
    CHECK(out.str() ==
          "loss 2.0000, record 2 of a: label 1 (d\"og), predicted 2 (owl) (probability 1.000)\n");
    CHECK(has(slurp(dir / "wrong.jsonl"), R"(,"label_name":"d\"og","class_name":"owl")"));
  }
}

TEST_CASE("of a number the label and the prediction are told, and the line of a table") {
  scratch const dir;
  std::ofstream(dir / "t.csv") << "x\n1\n2\n3\n";
  auto const from = edl::data::open_source(dir / "t.csv");
  auto p = of_classes({2, 2, 1});
  p.outputs = 1;
  p.heads = {{"output", {1, 1, 1}, 0, edl::output_meaning::numbers}};
  edl::logger const quiet(edl::severity::critical);
  for (auto const format : {edl::result_format::text, edl::result_format::json})
    for (bool const parts : {false, true}) {
      edl::job j{.command = edl::command::evaluate, .evaluation = {.worst = 1}};
      j.evaluation.format = format;
      if (parts) j.strategy = edl::strategy::parameter_server, j.evaluation.wrong = dir / "";
      edl::train::hard_records hard(j, p, *from);
      told by;
      by.outputs = {-2, 0, 2.25f};
      auto b = batch_of(0, {});
      b.class_size = 0, b.target_size = 1, b.targets = {1, 2, 3.5f};
      hard.look(by, b);
      std::ostringstream out;
      if (parts)
        hard.end_task({}), edl::train::hard_records::join(j, 3, out, quiet);
      else
        hard.tell(out, quiet);
      CHECK(
          out.str() ==
          (format == edl::result_format::text
               ? "loss 2.0000, record 2 of a, line 4: label 3.5, predicted 2.25\n"
               : "{\"worst\":[{\"record\":2,\"file\":\"a\",\"in_file\":2,\"line\":4,\"loss\":2,\"label\":3.5,"
                 "\"prediction\":2.25}]}\n"));
    }
}

TEST_CASE("records that are files of their own are told by their names") {
  pictures from;
  from.apart = true;
  auto const p = of_classes({2, 2, 1});
  edl::logger const quiet(edl::severity::critical);
  for (bool const parts : {false, true}) {
    scratch const dir;
    edl::job j{.command = edl::command::evaluate, .evaluation = {.worst = 1}};
    j.evaluation.wrong = dir / "";
    if (parts) j.strategy = edl::strategy::parameter_server;
    edl::train::hard_records hard(j, p, from);
    told by;
    by.outputs = {9, 0, 0, 0, 9, 0, 0, 0, 9};
    hard.look(by, batch_of(1, {2, 1, 2}));
    std::ostringstream out;
    if (parts)
      hard.end_task({}), edl::train::hard_records::join(j, 3, out, quiet);
    else
      hard.tell(out, quiet);
    CHECK(out.str() == "loss 2.0000, /b/2.png: label 2, predicted 2 (probability 1.000)\n");
    CHECK(has(slurp(dir / "wrong.jsonl"), R"({"record":3,"file":"/b/0.png","label":2,"class":0,)"));
  }
}

TEST_CASE("what workers find in an evaluation's tasks is put together, each task's last word once") {
  pictures const from;
  auto const p = of_classes({2, 2, 1});
  edl::job j{.command = edl::command::train, .evaluation = {.worst = 2}};
  j.strategy = edl::strategy::parameter_server;
  auto const found_in = [&](std::size_t shard) {
    edl::train::hard_records hard(j, p, from);
    told by;
    by.outputs = {9, 0, 0, 0, 9, 0, 0, 0, 9};
    hard.look(by, batch_of(shard, {0, 1, 2}));
    return hard.end_task({});
  };
  edl::train::hard_records::worst_of_tasks all(2);
  CHECK(all.take() == "[]");
  std::string const first = found_in(0), second = found_in(1);
  CHECK(count(first, "\"record\":") == 2);
  all.add(1, second);
  all.add(0, first);
  all.add(1, second);
  all.add(7, "no list");
  all.add(8, "[{}]");
  std::string const worst = all.take();
  CHECK(count(worst, "\"record\":") == 2);
  CHECK(worst.find("\"record\":2,") < worst.find("\"record\":5,"));
  CHECK(all.take() == "[]");
}

TEST_CASE("records of which a wrong class is said are written, pictures as PNG") {
  pictures const from;
  for (bool const picture : {true, false}) {
    scratch const dir;
    auto const p = of_classes(picture ? edl::shape{2, 2, 1} : edl::shape{1, 1, 4});
    edl::job j{.command = edl::command::evaluate};
    j.evaluation.wrong = dir / "";
    std::ofstream(dir / "17-is-1-said-2.png") << "old";
    std::ofstream(dir / "mine.png") << "mine";
    edl::train::clean_outputs(j, false, edl::logger(edl::severity::critical));
    edl::train::hard_records hard(j, p, from);
    told by;
    by.outputs = {9, 0, 0, 0, 9, 0, 0, 0, 9};
    hard.look(by, batch_of(0, {0, 1, 2}));
    hard.look(by, batch_of(1, {2, 1, 2}));
    std::ostringstream out;
    hard.tell(out, edl::logger(edl::severity::critical));
    CHECK(out.str().empty());
    std::string const line = R"({"record":3,"file":"b","label":2,"class":0,"probability":0.99975324,)";
    if (picture) {
      CHECK(names_in(dir / "") == lines{"3-is-2-said-0.png", "mine.png", "wrong.jsonl"});
      CHECK(slurp(dir / "wrong.jsonl") == line + "\"picture\":\"3-is-2-said-0.png\"}\n");
      edl::data::pixels made;
      edl::data::decode_picture(slurp(dir / "3-is-2-said-0.png"), made);
      CHECK(made.extents == edl::shape{2, 2, 1});
      CHECK(made.values == std::vector<std::uint8_t>{0, 85, 170, 255});
    } else {
      CHECK(names_in(dir / "") == lines{"mine.png", "wrong.jsonl"});
      CHECK(slurp(dir / "wrong.jsonl") == line + "\"features\":{\"id\":100}}\n");
    }
  }
}

TEST_CASE("a model that says no class has none that is wrong") {
  scratch const dir;
  pictures const from;
  auto p = of_classes({1, 1, 4});
  p.heads[0].meaning = edl::output_meaning::numbers;
  edl::job j{.command = edl::command::evaluate};
  j.evaluation.wrong = dir / "";
  CHECK_THROWS_WITH_AS(edl::train::hard_records(j, p, from),
                       doctest::Contains("--wrong works for models that predict"), edl::usage_error);
}

TEST_CASE("an evaluation tells the worst records and writes the wrong ones") {
  scratch const dir;
  lines const evaluate{"evaluate", "--validation_data=" + job::data().validation,
                       "--checkpoint_dir_for_init=" + model().output};
  job::run j(with(evaluate, {"--worst=5", "--wrong=" + dir / "wrong"}));
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  CHECK(count(j.log(), "\nloss ") + j.log().starts_with("loss ") == 5);
  CHECK(has(j.log(), "they are in " + dir / "wrong/wrong.jsonl"));
  std::size_t const wrong = count(slurp(dir / "wrong/wrong.jsonl"), "\n");
  CHECK(has(j.log(), std::to_string(wrong) + " record"));
  CHECK(wrong < 100);
  CHECK(count(slurp(dir / "wrong/wrong.jsonl"), "\"features\":{\"") == wrong);
  job::run alone(with(evaluate, {"--worst=5", "--num_workers=2"}));
  CHECK(alone.wait() != 0);
  CHECK(has(alone.log(), "--worst in several processes needs --wrong=DIR"));
}

TEST_CASE("parts of several processes are joined to what one process tells and writes") {
  pictures const from;
  auto const p = of_classes({2, 2, 1});
  edl::logger const quiet(edl::severity::critical);
  scratch const one, many;
  edl::job j{.command = edl::command::evaluate, .evaluation = {.worst = 3}};
  auto const run = [&](std::string const& directory, bool parts) {
    j.evaluation.wrong = directory;
    j.strategy = parts ? edl::strategy::parameter_server : edl::strategy::local;
    std::ostringstream out;
    told by;
    by.outputs = {9, 0, 0, 0, 9, 0, 0, 0, 9};
    edl::train::hard_records first(j, p, from), second(j, p, from);
    auto const task = [&](edl::train::hard_records& of, std::uint32_t number) {
      auto b = batch_of(number, {2, 1, 1});
      b.identity.key.task.index = number;
      of.look(by, b);
      if (parts) of.end_task(b.identity.key.task);
    };
    if (parts) {
      task(second, 1);  // the later records first, by another process
      task(first, 0);
      first.end_task({0, 7});  // of which it has seen nothing
      edl::train::hard_records::join(j, 5, out, quiet);
      CHECK(out.str().empty());  // a part is not seen, so that all stay
      CHECK(names_in(directory).size() == 6);
      edl::train::hard_records::join(j, 6, out, quiet);
    } else {
      task(first, 0);
      task(first, 1);
      first.tell(out, quiet);
    }
    return out.str();
  };
  for (auto const format : {edl::result_format::text, edl::result_format::json}) {
    j.evaluation.format = format;
    CHECK(run(one / "", false) == run(many / "", true));
    CHECK(names_in(one / "") == names_in(many / ""));
    for (std::string const& name : names_in(one / "")) CHECK(slurp(one / name) == slurp(many / name));
    for (scratch const* of : {&one, &many}) {
      j.evaluation.wrong = *of / "";
      edl::train::clean_outputs(j, false, quiet);
      CHECK(names_in(*of / "").empty());
    }
  }
}

TEST_CASE("a job of several processes tells and writes the same records as one process") {
  scratch const dir;
  auto const evaluate = [&](char const* name, lines const& more) {
    job::run j(with({"evaluate", "--validation_data=" + job::data().validation,
                     "--checkpoint_dir_for_init=" + model().output, "--worst=5", "--wrong=" + dir / name},
                    more));
    CHECK(j.wait() == 0);
    CAPTURE(j.log());
    lines worst;
    std::istringstream in(j.log());
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("loss ")) worst.push_back(line);
    CHECK(worst.size() == 5);
    return worst;
  };
  CHECK(evaluate("one", {}) ==
        evaluate("several", {"--num_workers=2", "--num_ps_pods=1", "--num_minibatches_per_task=1"}));
  CHECK(names_in(dir / "one") == names_in(dir / "several"));
  CHECK(slurp(dir / "one/wrong.jsonl") == slurp(dir / "several/wrong.jsonl"));
}

}  // namespace hard_records_test
