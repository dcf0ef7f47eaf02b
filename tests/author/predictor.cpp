// SPDX-License-Identifier: Apache-2.0
#include "edl/author/predictor.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <edl/edl.hpp>
#include <map>
#include <memory>
#include <thread>

#include "app/job.hpp"
#include "counted_allocations.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/job/train/local/local.hpp"
#include "edl/job/train/setup/start.hpp"

namespace predictor_test {

namespace nn = edl::nn;
using job::has, job::scratch, job::slurp;

/// Its outputs depend on a hyperparameter.
struct dense {
  struct hyperparameters {
    edl::hyperparameter<float> slope{0.5f, "of what is below 0", 0, 1};
  };
  static constexpr auto network =
      nn::sequential(nn::image{.height = 2, .width = 4, .channels = 1}, nn::dense{.units = 16},
                     nn::leaky_relu{.slope = edl::set_by<&hyperparameters::slope>}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<dense>& into, edl::mode m) {
    auto const x = record.floats("x", {2, 4, 1});
    into.features = x * float(record.integer("sign"));
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

/// A table's columns of numbers and of words, where cells may be missing.
struct driven {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static constexpr edl::features::string_lookup classes{{"no, thanks", "yes"}, 0};
  static constexpr auto class_names = classes.words();
  static void feed(edl::example const& record, edl::sample<driven>& into, edl::mode m) {
    into.features(0) = record.contains("km") ? record.floating("km") / 64 : 0.5f;
    into.features(1) = float(record.bytes("town").size());
    if (record.bytes("town") == "nowhere") throw edl::data_error("'nowhere' is no town");
    if (m != edl::mode::prediction) into.label = record.integer("dear");
  }
};

/// What it knows is in rows of a table.
struct tabled {
  static constexpr auto in = nn::inputs(nn::input<"words">(nn::served_embedding_bag{.most = 3, .width = 4}),
                                        nn::input<"x">(nn::features{.count = 8}));
  static constexpr auto network =
      nn::sequential(in, nn::concat(in.from<"words">(nn::flatten{}), in.from<"x">(nn::dense{.units = 4})),
                     nn::dense{.units = 4});
  static constexpr auto loss = nn::heads(nn::head<"kind", 3>(nn::softmax_cross_entropy{}),
                                         nn::head<"first", 1>(nn::sigmoid_cross_entropy{}));
  static constexpr edl::adam optimizer{.learning_rate = 0.05f};
  static void feed(edl::example const& record, edl::sample<tabled>& into, edl::mode m) {
    auto const x = record.float_values("x");
    into.input<"x">() = record.floats("x");
    auto words = into.input<"words">();
    for (std::size_t i = 0; i < 2; ++i) words.add(std::uint64_t(std::abs(x[i]) * 1000));
    if (m == edl::mode::prediction) return;
    into.head<"kind">() = float(record.integer("label"));
    into.head<"first">() = record.integer("label") == 0;
  }
};

/// What zeros and empty texts tell nothing of.
struct dated {
  static constexpr auto network = nn::sequential(nn::features{.count = 4}, nn::dense{.units = 2});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<dated>& into, edl::mode m) {
    auto const day = std::string(record.bytes("day"));
    into.features(0) = std::stof(day.substr(5, 2));
    into.features(1) = record.floating("price");
    into.features(2) = record.contains("area") ? float(record.integer("area")) : -1;
    into.features(3) = 0;
    for (float const x : record.float_values("tags")) into.features(3) += x;
    for (float const x : record.floats("box", {2, 3})) into.features(3) += x;
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

/// Records that `fill` makes.
class made_source final : public edl::data::source {
 public:
  using filler = void (*)(std::uint64_t record, edl::example_builder& to);
  made_source(std::uint64_t records, filler fill) : shards_{{"made", records}}, fill_(fill) {}
  std::vector<edl::data::shard> const& shards() const override { return shards_; }
  std::unique_ptr<edl::data::reader> open() const override {
    struct one final : edl::data::reader {
      explicit one(filler f) : fill(f) {}
      void read(std::size_t, std::uint64_t record, edl::example& into) override {
        edl::example_builder to(into);
        fill(record, to);
      }
      filler fill;
    };
    return std::make_unique<one>(fill_);
  }
  std::span<std::string const> classes() const override { return classes_; }

 private:
  std::vector<edl::data::shard> shards_;
  std::vector<std::string> classes_{"cheap", "dear"};
  filler fill_;
};

void fill_dated(std::uint64_t record, edl::example_builder& to) {
  to.bytes("day", record == 0 ? "no date" : "2026-11-28");  // one that is damaged
  to.integer("price", 7);
  if (record % 2 == 0) to.integer("area", 50);
  to.floats("tags", std::vector<float>(record % 3, 1.0f));
  to.floats("box", 6);
  to.extents(std::vector<std::size_t>{2, 3});
  to.integer("label", 1);
  to.bytes("nobody asks for", "x");
}

namespace {

edl::example record_of(std::vector<float> const& x, std::int64_t sign = 1) {
  edl::example made;
  edl::example_builder to(made);
  to.floats("x", x);
  to.integer("sign", sign);
  return made;
}

std::vector<edl::example> some(int n) {
  std::vector<edl::example> all;
  for (int i = 0; i < n; ++i) {
    std::vector<float> x(8);
    for (std::size_t k = 0; k < 8; ++k) x[k] = std::sin(float(i * 8) + float(k));
    all.push_back(record_of(x, i % 2 ? 1 : -1));
  }
  return all;
}

std::string exported(scratch const& dir) {
  using network = edl::model<dense::network, edl::cpu>;
  auto const layout = network::layout();
  std::vector<float> values(layout.size());
  network::initialise(3, 0, values);
  std::string const path = dir / "model.safetensors";
  edl::checkpoint::export_model(path, layout, values, {}, 17, {.hyperparameters = "slope=0.25"});
  return path;
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

std::vector<float> copy(edl::view<float> of) { return {of.begin(), of.end()}; }

/// A model, trained for an epoch and predicted with by the commands' own functions.
struct trained {
  scratch dir;
  std::vector<edl::example> records;
  std::string predictions;

  trained() {
    auto p = edl::author::make_program<tabled>();
    edl::job j{.name = "words", .data = {.training_data = job::data().training, .minibatch_size = 32}};
    j.checkpoints.checkpoint_dir = dir / "checkpoints";
    j.outputs.output = dir / "exported";
    edl::logger const log(edl::severity::critical);
    edl::train::local_context const around{.interrupted = [] { return false; }};
    REQUIRE(edl::train::run_local(p, j, log, around) == 0);
    edl::job k{
        .command = edl::command::predict, .name = "words", .data = {.prediction_data = job::data().training}};
    k.data.minibatch_size = 32;
    k.compute.kernels = edl::kernels::fixed;
    k.compute.num_threads = 1;
    k.checkpoints.checkpoint_dir_for_init = dir / "checkpoints";
    k.outputs.prediction_outputs = dir / "predictions";
    k.outputs.prediction_format = edl::prediction_format::jsonl;
    REQUIRE(edl::train::run_local(p, k, log, around) == 0);
    predictions = slurp(dir / "predictions/predictions.jsonl");
    auto const from = edl::data::open_source(job::data().training);
    auto const reader = from->open();
    records.resize(32);
    for (std::size_t i = 0; i < records.size(); ++i) reader->read(0, i, records[i]);
  }
};

}  // namespace

TEST_CASE("the words that a table had for missing cells are kept with its model") {
  scratch const dir;
  std::string rows = "km,town,dear\n";
  for (int i = 0; i < 64; ++i)
    rows += fmt::format("{},{},{}\n", i % 4 ? std::to_string(i) : "nil", i % 5 ? "Ulm" : "nil", i % 2);
  std::ofstream(dir / "a.csv") << rows;
  auto p = edl::author::make_program<driven>();
  edl::logger const log(edl::severity::critical);
  edl::train::local_context const around{.interrupted = [] { return false; }};
  edl::job j{.name = "missing", .data = {.training_data = dir / "a.csv", .minibatch_size = 8}};
  j.checkpoints.checkpoint_dir = dir / "c";
  CHECK(has(complaint([&] { edl::train::run_local(p, j, log, around); }), "'km', but 'nil'"));
  j.data.missing = "nil,NA";
  REQUIRE(edl::train::run_local(p, j, log, around) == 0);

  edl::job k{.command = edl::command::predict, .name = "missing", .data = {.prediction_data = dir / "a.csv"}};
  k.data.minibatch_size = 8;
  k.checkpoints.checkpoint_dir_for_init = dir / "c";
  auto const predicted = [&](std::string const& to) {
    k.outputs.prediction_outputs = dir / to;
    REQUIRE(edl::train::run_local(p, k, log, around) == 0);
    return slurp(dir / to + "/predictions.csv");
  };
  std::string const as_trained = predicted("1");
  CHECK(as_trained.starts_with("record,class,probability,output_0,output_1,class_name\n0,"));
  CHECK((has(as_trained, ",\"no, thanks\"\n") || has(as_trained, ",yes\n")));
  k.data.missing = "NA,nil";
  CHECK(predicted("2") == as_trained);
  k.data.missing = "auto";
  k.outputs.prediction_outputs = dir / "3";
  CHECK(has(complaint([&] { edl::train::run_local(p, k, log, around); }), "'km', but 'nil'"));

  // Records from elsewhere: `feed` sees no such word.
  edl::predictor<driven> const served(dir / "c");
  CHECK(served.classes() == std::vector<std::string>{"no, thanks", "yes"});
  edl::example with, without;
  {
    edl::example_builder to(with);
    to.bytes("km", "nil");
    to.bytes("town", "nil");
  }
  edl::example_builder(without).bytes("town", "");
  CHECK(served(with).outputs()[0] == served(without).outputs()[0]);
  edl::example odd;
  edl::example_builder(odd).bytes("town", "nowhere");
  CHECK(complaint([&] { served(odd); }) == "'town': 'nowhere' is no town");

  j.data.num_epochs = 2;
  j.data.missing = std::nullopt;
  CHECK(
      has(complaint([&] { edl::train::run_local(p, j, log, around); }),
          "holds checkpoints of --missing=nil,NA, but this command has auto; give the same to continue it"));
  j.data.missing = "nil,NA";
  CHECK(edl::train::run_local(p, j, log, around) == 0);
}

TEST_CASE(
    "a model that was exported predicts as its network does, with the hyperparameters of its training") {
  scratch const dir;
  edl::predictor<dense> const p(exported(dir));
  CHECK(p.version() == 17);
  CHECK(p.path() == dir / "model.safetensors");
  CHECK(p.hyperparameters() == edl::train::settings{{"slope", "0.25"}});
  CHECK(p.output_size() == 3);
  REQUIRE(p.outputs().size() == 1);
  CHECK(p.outputs()[0].name == "output");
  CHECK(p.outputs()[0].meaning == edl::output_meaning::classes);
  CHECK(edl::predictor<dense>(dir / "").version() == 17);  // the directory that it lies in

  dense::hyperparameters const set{.slope = {0.25f}};
  edl::model<dense::network, edl::cpu> network({.max_batch = 5, .set = edl::hyperparameter_view(set)});
  network.initialise(3);
  for (int n = 1; n <= 5; ++n) {
    auto const records = some(n);
    std::vector<float> x;
    for (auto const& r : records)
      for (float const v : r.float_values("x")) x.push_back(v * float(r.integer("sign")));
    auto const wanted = copy(network.forward(x, n, edl::mode::prediction));
    auto const y = p(records);
    CHECK(y.rows() == n);
    CHECK(copy(y.outputs()) == wanted);
    CHECK(copy(y.output("output", n - 1)) == copy(edl::view<float>(wanted).last(3)));
    CHECK(copy(y.outputs(n - 1)) == copy(edl::view<float>(wanted).last(3)));
    CHECK(complaint([&] { y.outputs(n); }) == "the batch has predictions of " + std::to_string(n) +
                                                  " records, but not of record " + std::to_string(n));
    CHECK(complaint([&] { y.output("kind"); }) == "the model has no output 'kind'; it has output");
  }
}

TEST_CASE("a record that cannot be used is refused by name, and leaves the others of its batch alone") {
  scratch const dir;
  edl::predictor<dense> const p(exported(dir));
  auto good = some(2);
  auto const wanted = copy(p(good).outputs());
  edl::example none;
  CHECK(has(complaint([&] { p(none); }), "the record has no floats as feature 'x'"));
  CHECK(complaint([&] { p(record_of({1, 2})); }) == "'x' has 2 values, the network takes 8 (2 × 4 × 1)");
  std::vector<float> odd(8, 1);
  odd[3] = NAN;
  CHECK(has(complaint([&] { p(record_of(odd)); }), "value 3 of 'x' is nan"));
  std::vector<edl::example> const several{good[0], record_of(odd)};
  CHECK(has(complaint([&] { p(several); }), "record 1: value 3 of 'x' is nan"));
  CHECK(has(complaint([&] { p(std::span<edl::example const>()); }), "a batch for 0 records"));

  auto batch = p.take(2);
  batch.add(good[0]);
  CHECK_THROWS_AS(batch.add(record_of(odd)), edl::data_error);
  CHECK_THROWS_AS(batch.add(none), edl::feature_error);
  batch.add(good[1]);
  CHECK(has(complaint([&] { batch.add(good[1]); }), "a batch for 2 records is full"));
  CHECK(batch.outputs().empty());
  batch.run();
  CHECK(copy(batch.outputs()) == wanted);
  batch.clear();
  batch.run();
  CHECK(batch.rows() == 0);
}

TEST_CASE("what is no model, or another one's, is refused by its path") {
  scratch const dir;
  std::string const path = exported(dir);
  auto const opened = [](std::string const& at) {
    return complaint([&] { edl::predictor<dense> const p(at); });
  };
  CHECK(opened(dir / "none") == dir / "none: no such file or directory");
  CHECK(has(complaint([&] { edl::predictor<tabled> const p(path); }),
            path + " does not belong to this model: "));
  std::string content = slurp(path);
  content.back() ^= 1;
  std::ofstream(path, std::ios::binary) << content;
  CHECK(has(opened(path), path));
  CHECK_NOTHROW(edl::predictor<dense>(path, {.verify = false}));
  std::ofstream(path, std::ios::binary) << content.substr(0, 100);
  CHECK(has(opened(path), path));
}

TEST_CASE("what feed asks for is found out, with names, kinds and extents") {
  scratch const dir;
  edl::predictor<dense> const p(exported(dir));
  auto const& in = p.inputs();
  REQUIRE(in.size() == 2);
  CHECK(in[0].name == "x");
  CHECK(in[0].kind == edl::example::kind::floats);
  CHECK(in[0].extents == std::vector<std::size_t>{2, 4, 1});
  CHECK(in[1].name == "sign");
  CHECK(in[1].kind == edl::example::kind::integers);
  CHECK(in[1].extents.empty());
  auto const found = edl::features_read_by(
      [](edl::example const& r) {
        r.bytes("a");
        if (r.float_values("b").size() != 5) throw edl::data_error("five");
        r.integer_values("c")[3];
        r.bytes("d", 2);
        if (r.floating("e") == 0) throw edl::data_error("a zero");
      },
      5);
  CHECK(found.unknown == "a zero");
  auto const& told = found.all;
  REQUIRE(told.size() == 5);
  CHECK(told[0].kind == edl::example::kind::strings);
  CHECK(told[1].extents == std::vector<std::size_t>{5});
  CHECK(told[2].extents == std::vector<std::size_t>{4});
  CHECK(told[3].extents == std::vector<std::size_t>{3});
  CHECK(told[4].extents.empty());
}

TEST_CASE("what a model takes is seen by the records that it is trained with, and kept") {
  using kind = edl::example::kind;
  auto const p = edl::author::make_program<dated>();
  made_source const from(20, fill_dated);
  auto const facts = edl::train::facts_of(p, from);
  std::map<std::string, edl::record_feature> by;
  for (auto const& f : facts.inputs) by[f.name] = f;
  CHECK(by.size() == 5);
  CHECK(by["day"].kind == kind::strings);
  CHECK(by["day"].text == "1111-11-11");
  CHECK(by["price"].kind == kind::floats);  // which whole numbers happened to be
  CHECK(by["price"].needed);
  CHECK(by["area"].kind == kind::integers);
  CHECK_FALSE(by["area"].needed);
  CHECK(by["tags"].extents == std::vector<std::size_t>{0});  // any number
  CHECK(by["box"].extents == std::vector<std::size_t>{2, 3});
  CHECK(facts.inputs.back().name == "area");
  CHECK(facts.classes == std::vector<std::string>{"cheap", "dear"});

  // Records in other extents are refused before anything is computed, whatever feed asks for.
  edl::check_records(facts, from);
  edl::check_records(facts,
                     made_source(1, [](std::uint64_t, edl::example_builder& to) { to.floats("box", 6); }));
  CHECK_THROWS_WITH_AS(
      edl::check_records(facts, made_source(3,
                                            [](std::uint64_t, edl::example_builder& to) {
                                              to.floats("box", 6);
                                              to.extents(std::vector<std::size_t>{3, 2});
                                            })),
      doctest::Contains("record 0 of made: 'box' is 3 × 2 of a record, and the model takes 2 × 3"),
      edl::data_error);

  // A table without a column of the model's is refused or told, by what is known of it.
  struct table final : edl::data::source {
    explicit table(std::vector<std::string> names) : all(std::move(names)) {}
    std::vector<edl::data::shard> const& shards() const override { return none; }
    std::unique_ptr<edl::data::reader> open() const override { return nullptr; }
    std::vector<std::string> features() const override { return all; }
    std::vector<edl::data::shard> none;
    std::vector<std::string> all;
  };
  auto const missing = [&](std::vector<std::string> names) {
    return edl::missing_features(facts, table(std::move(names)), "--x=t.csv");
  };
  CHECK(missing({}).empty());
  CHECK(missing({"id", "day", "price", "area", "tags", "box"}).empty());
  CHECK(missing({"id", "day", "price", "tags", "box"}) ==
        "--x=t.csv has no column 'area', which the model takes: all its records lack it");
  CHECK_THROWS_WITH_AS(missing({"day", "price", "aera", "tags", "box"}),
                       doctest::Contains("has no column 'area', which the model takes, but 'aera', which it"),
                       edl::data_error);
  CHECK_THROWS_WITH_AS(missing({"id", "day", "price", "AREA", "tags", "box"}),
                       doctest::Contains("has no column 'area', which the model takes, but 'AREA', which it"),
                       edl::data_error);
  CHECK_THROWS_WITH_AS(missing({"day", "area", "tags", "box"}),
                       "--x=t.csv has no column 'price', which the model needs", edl::data_error);

  std::string const text = edl::to_text(facts);
  CHECK(edl::to_text(edl::read_facts(text)) == text);
  CHECK_FALSE(has(text, "2026"));
  for (char const* const wrong : {"", "[]", "{}", "{\"inputs\":[{\"name\":\"x\"}]}", "{\"inputs\":5}",
                                  R"({"inputs":[{"name":"x","kind":9,"extents":[]}]})",
                                  R"({"inputs":[{"name":"x","kind":2,"extents":[4294967296,4294967296]}]})"})
    CHECK(edl::read_facts(wrong).inputs.empty());
  CHECK(edl::facts_of([](edl::example const&) { throw edl::data_error("no"); }, from).inputs.empty());

  // A session has them of the file, and asks its feed for no more.
  scratch const dir;
  using network = edl::model<dated::network, edl::cpu>;
  auto const layout = network::layout();
  edl::checkpoint::export_model(dir / "model.safetensors", layout, std::vector<float>(layout.size()), {}, 1,
                                {.record = text});
  edl::checkpoint::export_model(dir / "old.safetensors", layout, std::vector<float>(layout.size()), {}, 1);
  edl::predictor<dated> const kept(dir / "model.safetensors"), old(dir / "old.safetensors");
  CHECK(kept.inputs().size() == 5);
  CHECK(kept.inputs_unknown().empty());
  CHECK(kept.classes() == facts.classes);
  CHECK(has(old.inputs_unknown(), "`feed` failed: "));
  kept.warm_up(4);
  old.warm_up(1);

  // Values in other extents are refused, also where `feed` reads them flat.
  edl::example e;
  auto const put = [&](std::vector<std::size_t> const& extents) {
    edl::example_builder to(e);
    to.bytes("day", "2026-11-28");
    to.floating("price", 1.5f);
    to.floats("tags", 0);
    to.floats("box", 6);
    to.extents(extents);
  };
  for (auto const& good : std::vector<std::vector<std::size_t>>{{}, {6}, {2, 3}, {2, 1, 3}, {6, 1}}) {
    put(good);
    CHECK(complaint([&] { kept(e); }) == "nothing");
  }
  put({3, 2});
  CHECK(has(complaint([&] { kept(e); }), "'box' is 3 × 2 of a record, and the model takes 2 × 3"));
  CHECK(has(complaint([&] { old(e); }), "'box' is 3 × 2, the network takes 2 × 3"));
}

TEST_CASE("what feed takes where it is there, and does without, is found out behind what it needs") {
  auto const found = edl::features_read_by(
      [](edl::example const& r) {
        if (r.contains("year")) r.floating("year");
        if (r.contains("city")) r.bytes("city");
        if (r.contains("ids")) r.integer_values("ids");
        if (r.contains("box")) r.floats("box", {2, 2});
        if (r.contains("odd")) throw edl::data_error("zeros are no odd");
        r.floating("area");
      },
      5);
  CHECK(found.unknown.empty());
  auto const& told = found.all;
  using kind = edl::example::kind;
  std::vector<std::pair<std::string, kind>> all;
  for (auto const& f : told) all.emplace_back(f.name, f.kind);
  CHECK(all == std::vector<std::pair<std::string, kind>>{{"area", kind::floats},
                                                         {"box", kind::floats},
                                                         {"city", kind::strings},
                                                         {"ids", kind::integers},
                                                         {"odd", kind::floats},
                                                         {"year", kind::floats}});
  CHECK(told[1].extents == std::vector<std::size_t>{2, 2});
  CHECK(told[2].extents.empty());
}

TEST_CASE("rows of tables, of a checkpoint and mapped from an exported model, are those that `predict` has") {
  trained const t;
  edl::predictor<tabled> const of_checkpoint(t.dir / "checkpoints"), of_file(t.dir / "exported");
  CHECK(of_checkpoint.version() == 64);
  CHECK(of_file.version() == 64);
  CHECK(of_file.path() == t.dir / "exported/model.safetensors");
  auto const y = of_checkpoint(t.records);
  CHECK(copy(y.outputs()) == copy(of_file(t.records).outputs()));
  std::string lines;
  for (int i = 0; i < y.rows(); ++i) {
    auto const kind = y.output("kind", i), first = y.output("first", i);
    edl::likeliest_class const c(kind);
    lines += fmt::format(
        R"({{"record":{},"kind_class":{},"kind_probability":{},"kind":[{}],"first_probability":{},"first":{}}})",
        i, c.number, c.probability, fmt::join(kind, ","), edl::probability_of(first[0]), first[0]);
    lines += "\n";
  }
  CHECK(t.predictions.substr(0, lines.size()) == lines);
  REQUIRE(of_file.outputs().size() == 2);
  CHECK(of_file.outputs()[1].name == "first");
  CHECK(of_file.outputs()[1].first == 3);
  CHECK(of_file.outputs()[1].meaning == edl::output_meaning::probabilities);
  CHECK(copy(y.output("first", 4)) == std::vector{y.outputs(4)[3]});
  // Ids that nobody has trained have what their rows would have begun with.
  auto const unseen = record_of({1e6f, 2e6f, 0, 0, 0, 0, 0, 0});
  CHECK(copy(of_checkpoint(unseen).outputs()) == copy(of_file(unseen).outputs()));
}

TEST_CASE("several threads predict at once, each with memory of its own, which may outlive the session") {
  scratch const dir;
  auto const records = some(7);
  auto p = std::make_unique<edl::predictor<dense>>(exported(dir));
  auto const wanted = copy((*p)(records).outputs());
  std::vector<std::thread> all;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < 50; ++i) wrong += copy((*p)(records).outputs()) != wanted;
    });
  for (auto& t : all) t.join();
  CHECK(wrong == 0);
  auto const kept = (*p)(records);
  p.reset();
  CHECK(copy(kept.outputs()) == wanted);
}

TEST_CASE("the class of the largest output, and probabilities, are said without overflow") {
  std::vector<float> const far{1000, 1002, -1000};
  edl::likeliest_class const c(far);
  CHECK(c.number == 1);
  CHECK(c.probability == doctest::Approx(0.880797f));
  CHECK(edl::probability_of(0) == 0.5f);
  CHECK(edl::probability_of(-1000) == 0);
  CHECK(edl::probability_of(1000) == 1);
}

TEST_CASE("once a batch of a size has been done, another allocates nothing") {
#ifdef EDL_TEST_COUNTS_ALLOCATIONS
  scratch const dir;
  edl::predictor<dense> const p(exported(dir), {.kernels = edl::kernels::own});
  trained const t;
  edl::predictor<tabled> const of_checkpoint(t.dir / "checkpoints", {.kernels = edl::kernels::own}),
      of_file(t.dir / "exported", {.kernels = edl::kernels::own});
  auto const records = some(8);
  for (std::size_t n : {std::size_t(1), std::size_t(8)}) {
    CAPTURE(n);
    auto const count = [&](auto const& by, std::vector<edl::example> const& from) {
      by(std::span(from).first(n));
      long const before = allocations;
      by(std::span(from).first(n));
      return allocations - before;
    };
    CHECK(count(p, records) == 0);
    CHECK(count(of_checkpoint, t.records) == 0);
    CHECK(count(of_file, t.records) == 0);
  }
#endif
}

}  // namespace predictor_test
