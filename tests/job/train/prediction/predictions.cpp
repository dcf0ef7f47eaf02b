// SPDX-License-Identifier: Apache-2.0
#include "edl/job/train/prediction/predictions.hpp"

#include <cmath>
#include <limits>

#include "app/job.hpp"
#include "edl/compute/data/format/record_file.hpp"
#include "edl/core/error.hpp"
#include "job/train/files.hpp"

namespace predictions_test {

using job::count, job::has, job::lines, job::model, job::names_in, job::scratch, job::slurp, job::with;
using namespace std::chrono_literals;

namespace {

/// Two shards of people; what one of them is called has to be quoted.
struct people final : edl::data::source {
  std::vector<edl::data::shard> all{{"a", 2}, {"b", 2}};

  struct one final : edl::data::reader {
    void read(std::size_t shard, std::uint64_t record, edl::example& into) override {
      edl::example_builder to(into);
      to.integer("id", std::int64_t(100 * shard + record));
      std::string_view const names[]{"Ann", "Bob, \"the\nrest\"", "Cat", "Dan"};
      if (shard == 0 || record == 0) to.bytes("name", names[2 * shard + record]);
      float const x[]{0.5f, float(record)};
      to.floats("x", x);
    }
  };
  std::vector<edl::data::shard> const& shards() const override { return all; }
  std::unique_ptr<edl::data::reader> open() const override { return std::make_unique<one>(); }
};

edl::train::program two_heads() {
  edl::train::program p;
  p.outputs = 4;
  p.heads = {{"kind", {1, 1, 2}, 0, edl::output_meaning::classes},
             {"paid", {1, 1, 1}, 2, edl::output_meaning::probabilities},
             {"sum", {1, 1, 1}, 3, edl::output_meaning::numbers}};
  return p;
}

edl::job into(scratch const& dir, edl::prediction_format format, std::string columns = "id,name") {
  edl::job j{.command = edl::command::predict};
  j.outputs.prediction_outputs = dir / "";
  j.outputs.prediction_format = format;
  j.outputs.prediction_columns = std::move(columns);
  return j;
}

/// The second task first; a record of the first is left out.
std::string written(edl::job const& j, edl::train::program const& p) {
  people const from;
  edl::train::prediction_parts parts(j, p, from);
  float const nan = std::numeric_limits<float>::quiet_NaN();
  parts.write(1, 1, std::vector<std::uint64_t>{0, 1}, std::vector<float>{1, 1, 0, 7, 0, 3, -1000, nan});
  parts.write(0, 0, std::vector<std::uint64_t>{1}, std::vector<float>{0, -100, 1000, 0.25f});
  return edl::train::join_predictions(j, 2);
}

template <class Act>
std::string complaint(Act&& act) {
  try {
    act();
  } catch (edl::error const& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a table has a header, the numbers of the records, their columns, and what the losses say") {
  scratch const dir;
  auto const j = into(dir, edl::prediction_format::csv);
  CHECK(written(j, two_heads()) == "the predictions are in " + dir / "/predictions.csv");
  CHECK(slurp(dir / "predictions.csv") ==
        "record,id,name,kind_class,kind_probability,kind_0,kind_1,paid_probability,paid,sum\n"
        "1,1,\"Bob, \"\"the\nrest\"\"\",0,1,0,-100,1,1000,0.25\n"
        "2,100,Cat,0,0.5,1,1,0.5,0,7\n"
        "3,101,,1,0.95257413,0,3,0,-1000,nan\n");
  CHECK(names_in(dir / "") == lines{"predictions.csv"});
}

TEST_CASE("JSON lines have lists, and null for what is no number") {
  scratch const dir;
  written(into(dir, edl::prediction_format::jsonl, "name,x"), two_heads());
  CHECK(
      slurp(dir / "predictions.jsonl") ==
      R"({"record":1,"name":"Bob, \"the\nrest\"","x":[0.5,1],"kind_class":0,"kind_probability":1,"kind":[0,-100],"paid_probability":1,"paid":1000,"sum":0.25}
{"record":2,"name":"Cat","x":[0.5,0],"kind_class":0,"kind_probability":0.5,"kind":[1,1],"paid_probability":0.5,"paid":0,"sum":7}
{"record":3,"name":null,"x":[0.5,1],"kind_class":1,"kind_probability":0.95257413,"kind":[0,3],"paid_probability":0,"paid":-1000,"sum":null}
)");
}

TEST_CASE("an array of NumPy has a field for each, and as many structures as all parts together") {
  scratch const dir;
  written(into(dir, edl::prediction_format::npy, ""), two_heads());
  std::string const all = slurp(dir / "predictions.npy");
  REQUIRE(all.starts_with(std::string_view("\x93NUMPY\x02\x00", 8)));
  CHECK(
      has(all,
          "{'descr': [('record', '<u8'), ('kind_class', '<u8'), ('kind_probability', '<f4'), ('kind', '<f4', "
          "(2,)), ('paid_probability', '<f4'), ('paid', '<f4'), ('sum', '<f4')], 'fortran_order': False, "
          "'shape': (3,), }"));
  std::uint32_t header = 0;
  std::memcpy(&header, all.data() + 8, 4);
  CHECK((12 + header) % 64 == 0);
  CHECK(all[12 + header - 1] == '\n');
  constexpr std::size_t each = 8 + 8 + 4 * 6;
  REQUIRE(all.size() == 12 + header + 3 * each);
  std::uint64_t record = 0;
  std::memcpy(&record, all.data() + 12 + header + 2 * each, 8);
  CHECK(record == 3);
  float sum = 0;
  std::memcpy(&sum, all.data() + 12 + header + 2 * each - 4, 4);
  CHECK(sum == 7);
}

TEST_CASE("RecordIO has records with the same features") {
  scratch const dir;
  written(into(dir, edl::prediction_format::recordio), two_heads());
  edl::data::recordio_reader from(dir / "predictions.recordio");
  REQUIRE(from.records() == 3);
  edl::example last;
  last.parse(from.read(2));
  CHECK(last.integer("record") == 3);
  CHECK(last.integer("id") == 101);
  CHECK_FALSE(last.contains("name"));
  CHECK(last.integer("kind_class") == 1);
  CHECK(last.float_values("kind")[1] == 3);
  CHECK(last.floating("paid_probability") == 0);
}

TEST_CASE("parts that are not all here stay parts, and a column that records lack is told") {
  scratch const dir;
  auto const p = two_heads();
  auto const j = into(dir, edl::prediction_format::csv);
  people const from;
  edl::train::prediction_parts(j, p, from).write(1, 0, {}, {});
  CHECK(has(edl::train::join_predictions(j, 2), "this process does not see " + dir / "/part-00000.csv"));
  CHECK(names_in(dir / "") == lines{"part-00001.csv"});
  CHECK(complaint([&] {
          edl::train::prediction_parts(into(dir, edl::prediction_format::csv, "idd"), p, from);
        }) == "--prediction_columns=idd: the records have no 'idd'; they have id, name, x");
  CHECK(complaint([&] {
          edl::train::prediction_parts(into(dir, edl::prediction_format::csv, "id,record"), p, from);
        }) ==
        "--prediction_columns=id,record: the predictions have a column 'record' of their own; give that of "
        "the records another name");
  CHECK(complaint([&] {
          edl::train::prediction_parts(into(dir, edl::prediction_format::csv, "id,x,id"), p, from);
        }) == "--prediction_columns=id,x,id: 'id' occurs twice");
}

TEST_CASE("a column that the first record lacks, and a later one has, is written") {
  struct late final : edl::data::source {
    std::vector<edl::data::shard> all{{"empty", 0}, {"a", 1}, {"b", 2}};
    struct one final : edl::data::reader {
      void read(std::size_t shard, std::uint64_t record, edl::example& into) override {
        edl::example_builder to(into);
        to.integer("id", std::int64_t(record));
        if (shard == 2 && record == 1) to.integer("built", 1990);
      }
    };
    std::vector<edl::data::shard> const& shards() const override { return all; }
    std::unique_ptr<edl::data::reader> open() const override { return std::make_unique<one>(); }
  } const from;
  scratch const dir;
  auto const p = two_heads();
  CHECK_NOTHROW(edl::train::prediction_parts(into(dir, edl::prediction_format::csv, "built"), p, from));
  CHECK(complaint([&] {
          edl::train::prediction_parts(into(dir, edl::prediction_format::csv, "Built"), p, from);
        }) == "--prediction_columns=Built: the records have no 'Built'; they have id, built");
}

TEST_CASE("a damaged record hides no column that all others lack") {
  struct damaged final : edl::data::source {
    std::vector<edl::data::shard> all{{"a", 3}};
    struct one final : edl::data::reader {
      void read(std::size_t, std::uint64_t record, edl::example& into) override {
        if (record == 0) throw edl::data_error("record 0 of a is damaged");
        edl::example_builder(into).integer("id", std::int64_t(record));
      }
    };
    std::vector<edl::data::shard> const& shards() const override { return all; }
    std::unique_ptr<edl::data::reader> open() const override { return std::make_unique<one>(); }
  } const from;
  scratch const dir;
  auto const p = two_heads();
  CHECK_NOTHROW(edl::train::prediction_parts(into(dir, edl::prediction_format::csv, "id"), p, from));
  CHECK(complaint([&] {
          edl::train::prediction_parts(into(dir, edl::prediction_format::csv, "idd"), p, from);
        }) == "--prediction_columns=idd: the records have no 'idd'; they have id");
}

TEST_CASE("with several workers, one of which is killed, each record is predicted once, in order") {
  scratch const dir;
  lines const base{"predict",
                   "--prediction_data=" + job::data().training,
                   "--checkpoint_dir_for_init=" + model().output,
                   "--minibatch_size=32",
                   "--num_minibatches_per_task=2",
                   "--prediction_columns=label"};
  job::run alone(with(base, {"--prediction_outputs=" + dir / "alone"}));
  CHECK(alone.wait() == 0);
  CHECK(has(alone.log(), "the predictions are in " + dir / "alone/predictions.csv"));
  job::run j(with(base, {"--prediction_outputs=" + dir / "several", "--num_workers=2", "--num_ps_pods=1",
                         "--log_level=debug"}),
             {.env = {{"TINY_PREDICTION_DELAY_US", "20000"}}});
  REQUIRE(j.says(" completed, ", 2));
  ::kill(j.find("worker"), SIGKILL);
  REQUIRE(j.says("worker 2 joined"));
  j.open_gate();
  CHECK(j.wait() == 0);
  CAPTURE(j.log());
  std::string const found = slurp(dir / "several/predictions.csv");
  CHECK(found == slurp(dir / "alone/predictions.csv"));
  CHECK(found.starts_with("record,label,class,probability,output_0,output_1,output_2\n0,"));
  CHECK(count(found, "\n") == 1 + 2048);
  CHECK(has(found, "\n2047,"));
}

}  // namespace predictions_test
