// SPDX-License-Identifier: Apache-2.0
#include "edl/author/predictor_library.ipp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <edl/edl.hpp>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "edl/base/checkpoint/model_file.hpp"
#include "edl/compute/sparse/network_embeddings.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

namespace predictor_library_test {

namespace nn = edl::nn;

/// Pictures, and a number that may be missing.
struct pictures {
  struct hyperparameters {
    edl::hyperparameter<float> slope{0.5f, "of what is below 0", 0, 1};
  };
  static constexpr auto network =
      nn::sequential(nn::image{.height = 2, .width = 4, .channels = 1}, nn::dense{.units = 16},
                     nn::leaky_relu{.slope = edl::set_by<&hyperparameters::slope>}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<pictures>& into, edl::mode m) {
    into.features = record.floats("x", {2, 4, 1});
    if (record.contains("sign"))
      into.features = record.floats("x", {2, 4, 1}) * float(record.integer("sign"));
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

/// A text, ids of any number, and two heads.
struct words {
  static constexpr auto in = nn::inputs(nn::input<"ids">(nn::served_embedding_bag{.most = 40, .width = 4}),
                                        nn::input<"x">(nn::features{.count = 2}));
  static constexpr auto network =
      nn::sequential(in, nn::concat(in.from<"ids">(nn::flatten{}), in.from<"x">(nn::dense{.units = 4})),
                     nn::dense{.units = 4});
  static constexpr auto loss = nn::heads(nn::head<"kind", 3>(nn::softmax_cross_entropy{}),
                                         nn::head<"first", 1>(nn::sigmoid_cross_entropy{}));
  static void feed(edl::example const& record, edl::sample<words>& into, edl::mode m) {
    into.input<"x">() = record.floats("x");
    auto ids = into.input<"ids">();
    for (std::size_t i = 0; i < record.count("texts"); ++i)
      for (char const c : record.bytes("texts", i)) ids.add(1000 * i + std::uint64_t(std::uint8_t(c)));
    for (std::int64_t const id : record.integer_values("ids")) ids.add(std::uint64_t(id));
    if (m == edl::mode::prediction) return;
    into.head<"kind">() = float(record.integer("label"));
    into.head<"first">() = record.integer("label") == 0;
  }
};

/// A language model of bytes, in which each id is followed by the next one.
struct letters {
  static constexpr auto network =
      nn::sequential(nn::ids{.count = 8}, nn::embedding{.vocabulary = 256, .width = 256},
                     nn::dense{.units = 256, .each_place = true});
  static constexpr nn::sequence_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<letters>&, edl::mode) {}
};

// As `edl::run` does it.
[[maybe_unused]] auto const* const first = &edl::author::entered<pictures>;
[[maybe_unused]] auto const* const second = &edl::author::entered<words>;
[[maybe_unused]] auto const* const third = &edl::author::entered<letters>;

namespace {

using strings = std::vector<std::string>;

template <class Model>
std::string exported(scratch const& dir, std::string const& name, std::uint64_t version) {
  using network = edl::model<Model::network, edl::cpu>;
  auto layout = network::layout();
  layout.tables = edl::sparse::embedding_layout_of(Model::network.start).tables;
  std::vector<float> values(layout.size());
  network::initialise(3, 0, values);
  std::vector<edl::checkpoint::row_source> rows(layout.tables.size());
  std::uint64_t const id = 104;  // 'h'
  std::vector<float> const row{1, -2, 3, 0.5f};
  for (auto& source : rows)
    source = {.rows = 1, .each = [&](auto const& to) { to(edl::view<std::uint64_t>(&id, 1), row); }};
  edl::checkpoint::export_model(dir / name, layout, values, rows, version, {.seed = 7});
  return dir / name;
}

std::string said() { return edl_predictor_error(); }

edl_values floats(char const* name, std::vector<float> const& of) {
  return {.name = name, .values = of.data(), .count = of.size(), .kind = edl_floats};
}
edl_values integers(char const* name, std::vector<std::int64_t> const& of) {
  return {.name = name, .values = of.data(), .count = of.size(), .kind = edl_integers};
}

std::vector<float> drawn(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = std::sin(float(i));
  return x;
}

/// An open model, whose predictions are as many as its outputs.
struct opened {
  edl_predictor p;
  std::vector<float> outputs;

  explicit opened(std::string const& path) : p(edl_predictor_open(path.c_str(), 1)) {
    CAPTURE(said());
    REQUIRE(p != 0);
  }
  ~opened() { edl_predictor_close(p); }

  bool operator()(std::vector<edl_values> const& in, std::uint64_t records, std::size_t room) {
    outputs.assign(room, -77);
    return edl_predictor_predict(p, in.data(), in.size(), records, outputs.data(), room) == 0;
  }
};

}  // namespace

TEST_CASE("the functions of C say of numbers what C++ says, bit for bit, and describe the model") {
  scratch const dir;
  std::string const path = exported<pictures>(dir, "model.safetensors", 17);
  opened c(dir / "");
  edl_model about{};
  REQUIRE(edl_predictor_describe(c.p, &about) == 0);
  CHECK(about.path == path);
  CHECK(about.hyperparameters == std::string("slope=0.5"));
  CHECK(about.version == 17);
  CHECK(about.outputs_size == 3);
  REQUIRE(about.inputs == 2);  // and "sign", which `feed` does without
  REQUIRE(about.outputs == 1);
  edl_feature f{};
  REQUIRE(edl_predictor_input(c.p, 0, &f) == 0);
  CHECK(f.name == std::string("x"));
  CHECK(f.kind == edl_floats);
  CHECK(std::vector(f.extents, f.extents + f.rank) == std::vector<std::uint64_t>{2, 4, 1});
  REQUIRE(edl_predictor_output(c.p, 0, &f) == 0);
  CHECK(f.name == std::string("output"));
  CHECK(f.meaning == edl_classes);
  CHECK(std::vector(f.extents, f.extents + f.rank) == std::vector<std::uint64_t>{3});

  edl::predictor<pictures> const cpp(path);
  for (std::size_t n : {1, 2, 5}) {
    auto const x = drawn(8 * n);
    std::vector<std::int64_t> sign(n);
    std::vector<edl::example> records(n);
    for (std::size_t i = 0; i < n; ++i) {
      sign[i] = i % 2 ? 2 : -1;
      edl::example_builder to(records[i]);
      to.floats("x", edl::view<float>(x).subspan(8 * i, 8));
      to.integer("sign", sign[i]);
    }
    CAPTURE(said());
    REQUIRE(c({floats("x", x), integers("sign", sign)}, n, 3 * n));
    auto const y = cpp(records);
    CHECK(c.outputs == std::vector(y.outputs().begin(), y.outputs().end()));
  }
}

TEST_CASE("texts, lists of any length and rows of tables are what they are in C++") {
  scratch const dir;
  std::string const path = exported<words>(dir, "m.safetensors", 4);
  opened c(path);
  std::string const bytes("hi\0hé", 6);
  std::array<std::uint64_t, 5> const offsets{0, 2, 2, 3, 6}, text_starts{0, 1, 3, 4, 4};
  std::vector<std::int64_t> const ids{104, 5, 104, 104, -1};
  std::array<std::uint64_t, 5> const id_starts{0, 3, 3, 4, 5};
  auto const x = drawn(8);
  edl_values const texts{.name = "texts",
                         .values = bytes.data(),
                         .count = 4,
                         .starts = text_starts.data(),
                         .offsets = offsets.data(),
                         .bytes = bytes.size(),
                         .kind = edl_texts};
  edl_values list = integers("ids", ids);
  list.starts = id_starts.data();
  CAPTURE(said());
  REQUIRE(c({floats("x", x), texts, list}, 4, 16));

  std::vector<edl::example> records(4);
  std::vector<std::vector<std::string_view>> const written{{"hi"}, {"", {"\0", 1}}, {"hé"}, {}};
  for (std::size_t i = 0; i < 4; ++i) {
    edl::example_builder to(records[i]);
    to.floats("x", edl::view<float>(x).subspan(2 * i, 2));
    to.bytes("texts", written[i]);
    to.integers("ids", edl::view<std::int64_t>(ids).subspan(id_starts[i], id_starts[i + 1] - id_starts[i]));
  }
  edl::predictor<words> const cpp(path);
  auto const y = cpp(records);
  CHECK(c.outputs == std::vector(y.outputs().begin(), y.outputs().end()));
  edl_feature f{};
  REQUIRE(edl_predictor_output(c.p, 1, &f) == 0);
  CHECK(f.name == std::string("first"));
  CHECK(f.rank == 0);
  CHECK(f.first == 3);
  CHECK(f.meaning == edl_probabilities);
  REQUIRE(edl_predictor_input(c.p, 0, &f) == 0);
  CHECK(f.name == std::string("x"));
  CHECK(std::vector(f.extents, f.extents + f.rank) == std::vector<std::uint64_t>{2});
  REQUIRE(edl_predictor_input(c.p, 1, &f) == 0);
  CHECK(f.name == std::string("ids"));
  CHECK(f.kind == edl_integers);
}

TEST_CASE("a wrong name, kind or shape is told as C++ tells it, and nothing is written") {
  scratch const dir;
  opened c(exported<pictures>(dir, "m.safetensors", 1));
  edl::predictor<pictures> const cpp(dir / "m.safetensors");
  auto const complaint = [&](edl::example const& record) -> std::string {
    try {
      cpp(record);
    } catch (edl::error const& e) {
      return e.what();
    }
    return "nothing";
  };
  auto const one = [](auto&& fill) {
    edl::example made;
    edl::example_builder to(made);
    fill(to);
    return made;
  };
  auto x = drawn(8);
  REQUIRE(!c({floats("X", x)}, 1, 3));
  CHECK(said() == complaint(one([&](auto& to) { to.floats("X", x); })));
  CHECK(contains(said(), "'x'"));
  CHECK(c.outputs == std::vector<float>(3, -77));
  REQUIRE(!c({floats("x", {1, 2})}, 1, 3));
  CHECK(said() == complaint(one([&](auto& to) { to.floats("x", std::vector<float>{1, 2}); })));
  REQUIRE(!c({floats("x", x), floats("sign", {1})}, 1, 3));
  CHECK(said() == complaint(one([&](auto& to) {
          to.floats("x", x);
          to.floating("sign", 1);
        })));
  x[3] = std::numeric_limits<float>::quiet_NaN();
  REQUIRE(!c({floats("x", x)}, 1, 3));
  CHECK(said() == complaint(one([&](auto& to) { to.floats("x", x); })));
  auto two = drawn(16);
  two[9] = std::numeric_limits<float>::infinity();
  REQUIRE(!c({floats("x", two)}, 2, 6));
  CHECK(contains(said(), "record 1: value 1 of 'x' is inf"));
  CHECK(c.outputs == std::vector<float>(6, -77));
  REQUIRE(c({floats("x", drawn(8)), integers("sign", {1}), floats("unknown", {1})}, 1, 3));
  // What it does without is not given, and something else is: a name may be misspelt.
  REQUIRE(!c({floats("x", drawn(8)), integers("sing", {1})}, 1, 3));
  CHECK(contains(said(), "the model takes no input 'sing'; it takes x, sign"));
}

TEST_CASE("values come in extents, which are compared, and a record may lack a feature") {
  scratch const dir;
  opened c(exported<pictures>(dir, "m.safetensors", 1));
  auto const x = drawn(16);
  REQUIRE(c({floats("x", x)}, 2, 6));
  auto const wanted = c.outputs;
  auto const in = [&](std::vector<std::uint64_t> const& extents) {
    edl_values v = floats("x", x);
    v.rank = std::int32_t(extents.size());
    v.extents = extents.data();
    return c({v}, 2, 6);
  };
  for (auto const& good :
       std::vector<std::vector<std::uint64_t>>{{}, {8}, {2, 4}, {2, 4, 1}, {1, 2, 4}, {8, 1}}) {
    REQUIRE(in(good));
    CHECK(c.outputs == wanted);
  }
  for (auto const& [extents, told] : std::vector<std::pair<std::vector<std::uint64_t>, char const*>>{
           {{4, 2}, "record 0: 'x' is 4 × 2 of a record, and the model takes 2 × 4 × 1"},
           {{2, 2, 2}, "'x' is 2 × 2 × 2 of a record"},
           {{2, 3}, "'x' has 16 values, and its extents make 6 of each of 2 records"},
           {{std::uint64_t(1) << 40, std::uint64_t(1) << 40}, "'x' has more than memory holds"},
           {std::vector<std::uint64_t>(9, 1), "'x' has 9 extents: expected 0 to 8"}}) {
    CHECK_FALSE(in(extents));
    CAPTURE(said());
    CHECK(contains(said(), told));
  }
  edl_values none = floats("x", x);
  none.rank = 2;
  CHECK_FALSE(c({none}, 2, 6));
  CHECK(contains(said(), "no extent of an input is given"));
  float const nan = std::numeric_limits<float>::quiet_NaN();
  REQUIRE(c({floats("x", x), floats("sign", {nan, nan})}, 2, 6));  // which `feed` does without
  CHECK(c.outputs == wanted);
  CHECK_FALSE(c({floats("x", std::vector<float>(16, nan))}, 2, 6));
  CHECK(contains(said(), "the record has no floats as feature 'x'"));
}

TEST_CASE("whatever sizes and places a caller gives, it is told") {
  scratch const dir;
  opened c(exported<words>(dir, "m.safetensors", 1));
  auto const x = drawn(4);
  std::vector<std::int64_t> const ids{1, 2};
  std::string const bytes = "hello";
  std::array<std::uint64_t, 3> offsets{0, 2, 5};
  auto const texts = [&] {
    return edl_values{.name = "texts",
                      .values = bytes.data(),
                      .count = 2,
                      .offsets = offsets.data(),
                      .bytes = bytes.size(),
                      .kind = edl_texts};
  };
  auto const refused = [&](std::vector<edl_values> const& in, std::uint64_t records = 2,
                           std::size_t room = 8) { return c(in, records, room) ? "nothing" : said(); };
  REQUIRE(refused({floats("x", x), integers("ids", ids), texts()}) == "nothing");
  CHECK(contains(refused({}, 0), "a batch for 0 records"));
  CHECK(contains(refused({}, UINT64_MAX), "a batch for 18446744073709551615 records"));
  CHECK(contains(refused({floats("x", x)}, 2, 7), "the buffer has room for 7 numbers, but 2 records have 8"));
  CHECK(contains(refused({floats("x", x)}, 3), "'x' has 4 values, which 3 records cannot share"));
  CHECK(contains(refused({floats(nullptr, x)}), "no name of an input is given"));
  CHECK(contains(refused({floats("x", x), floats("x", x)}), "'x'"));

  edl_values v = floats("x", x);
  v.values = nullptr;
  CHECK(contains(refused({v}), "no value of an input is given"));
  v = floats("x", x), v.kind = 9;
  CHECK(contains(refused({v}), "'x' has kind 9"));
  v = floats("x", x), v.count = UINT64_MAX;
  CHECK(contains(refused({v}), "'x' has more than memory holds"));
  for (auto const& wrong :
       {std::array<std::uint64_t, 3>{1, 2, 4}, {0, 5, 4}, {0, 2, 3}, {0, 2, UINT64_MAX}}) {
    v = floats("x", x), v.starts = wrong.data();
    CHECK(contains(refused({v}), "'x': its starts do not rise from 0 to 4"));
  }
  v = texts(), v.offsets = nullptr;
  CHECK(contains(refused({v}), "no offset of a text is given"));
  v = texts(), v.bytes = 4;
  CHECK(contains(refused({v}), "'texts': its offsets do not rise from 0 to 4"));
  offsets = {0, 6, 5};
  CHECK(contains(refused({texts()}), "its offsets do not rise from 0 to 5"));

  float y = 0;
  CHECK(edl_predictor_predict(c.p, nullptr, 3, 1, &y, 1) == -1);
  CHECK(contains(said(), "no input is given"));
  edl_values const good = floats("x", x);
  CHECK(edl_predictor_predict(c.p, &good, 1, 2, nullptr, 8) == -1);
  CHECK(contains(said(), "no place for outputs is given"));
  edl_feature f{};
  CHECK(edl_predictor_input(c.p, -1, &f) == -1);
  CHECK(edl_predictor_input(c.p, 99, &f) == -1);
  CHECK(contains(said(), "no input 99"));
  CHECK(edl_predictor_output(c.p, 2, &f) == -1);
  CHECK(edl_predictor_output(c.p, 0, nullptr) == -1);
  CHECK(edl_predictor_input(c.p, 0, nullptr) == -1);
  CHECK(edl_predictor_describe(c.p, nullptr) == -1);
  CHECK(edl_predictor_abi_version() == edl_predictor_abi);
}

TEST_CASE("what cannot be opened, is closed or never was open is told") {
  scratch const dir;
  CHECK(edl_predictor_open((dir / "none").c_str(), 1) == 0);
  CHECK(said() == dir / "none: no such file or directory");
  CHECK(edl_predictor_open(nullptr, 1) == 0);
  CHECK(contains(said(), "no path is given"));
  std::string const path = exported<pictures>(dir, "m.safetensors", 1);
  for (int threads : {0, -1, 1025}) CHECK(edl_predictor_open(path.c_str(), threads) == 0);
  CHECK(contains(said(), "1025 threads"));
  edl_predictor const p = edl_predictor_open(path.c_str(), 2);
  REQUIRE(p != 0);
  CHECK(edl_predictor_close(p) == 0);
  CHECK(edl_predictor_close(p) == -1);
  CHECK(said() == "predictor " + std::to_string(p) + " is not open");
  CHECK(edl_predictor_close(0) == -1);
  edl_model about{};
  CHECK(edl_predictor_describe(p, &about) == -1);
  float y[3];
  auto const x = drawn(8);
  edl_values const in = floats("x", x);
  CHECK(edl_predictor_predict(p, &in, 1, 1, y, 3) == -1);
  CHECK(contains(said(), "is not open"));
}

TEST_CASE("the functions of C continue a text, piece by piece, until somebody wants no more") {
  scratch const dir;
  using network = edl::model<letters::network, edl::cpu>;
  auto const layout = network::layout();
  std::vector<float> values(layout.size(), 0.0f);
  for (std::size_t i = 0; i < 256; ++i) {
    values[i * 256 + i] = 1;                       // each id has a channel
    values[65536 + i * 256 + (i + 1) % 256] = 50;  // whose successor is likely
  }
  edl::checkpoint::export_model(dir / "m.safetensors", layout, values, {}, 5, {.seed = 7});
  std::string const path = dir / "m.safetensors";
  edl_predictor const p = edl_predictor_open_texts(path.c_str(), nullptr, 1);
  CAPTURE(said());
  REQUIRE(p != 0);
  struct heard {
    std::string text;
    std::size_t most = 100;
  } all;
  auto const hear = [](void* context, char const* piece, std::uint64_t bytes) -> std::int32_t {
    auto& to = *static_cast<heard*>(context);
    to.text.append(piece, bytes);
    return to.text.size() < to.most;
  };
  edl_generation how{.seed = 1,
                     .stop = nullptr,
                     .stop_count = 0,
                     .temperature = 0,
                     .top_p = 1,
                     .min_p = 0,
                     .repetition_penalty = 1,
                     .top_k = 0,
                     .max_tokens = 5,
                     .reserved = {}};
  edl_text made{};
  REQUIRE(edl_predictor_generate(p, "ab", 2, &how, hear, &all, &made) == 0);
  CHECK(all.text == "cdefg");
  CHECK(made.prompt_tokens == 2);
  CHECK(made.tokens == 5);
  CHECK(made.end == edl_max_tokens);
  CHECK(made.forgot == 0);
  all = {};
  char const* const ends[] = {"h", "ef"};
  how.stop = ends, how.stop_count = 2;
  REQUIRE(edl_predictor_generate(p, "b", 1, &how, hear, &all, &made) == 0);
  CHECK(all.text == "cd");
  CHECK(made.end == edl_end_of_text);
  all = {.text = {}, .most = 2};
  how.stop_count = 0;
  REQUIRE(edl_predictor_generate(p, "b", 1, &how, hear, &all, nullptr) == 0);
  CHECK(all.text == "cd");
  all = {};
  how.max_tokens = 20;
  REQUIRE(edl_predictor_generate(p, "b", 1, &how, hear, &all, &made) == 0);
  CHECK(all.text == "cdefghijklmnopqrstuv");
  CHECK(made.forgot == 1);  // of 8 places

  auto const refused = [&](char const* prompt, std::uint64_t bytes, auto change, std::string const& why) {
    edl_generation other = how;
    change(other);
    all = {};
    CHECK(edl_predictor_generate(p, prompt, bytes, &other, hear, &all, &made) == -1);
    CAPTURE(said());
    CHECK(contains(said(), why));
    CHECK(all.text.empty());
  };
  refused("b", 1, [](auto& o) { o.max_tokens = 0; }, "max_tokens=0");
  refused("b", 1, [](auto& o) { o.top_p = 0; }, "top_p=0");
  refused("b", 1, [](auto& o) { o.stop_count = 1, o.stop = nullptr; }, "null pointer");
  refused("123456789", 9, [](auto&) {}, "9 tokens");
  refused(nullptr, 3, [](auto&) {}, "null pointer");
  CHECK(edl_predictor_generate(p, "b", 1, &how, nullptr, nullptr, nullptr) == -1);
  CHECK(edl_predictor_generate(p, "b", 1, nullptr, hear, &all, nullptr) == -1);
  // What predicts is another thing.
  edl_model about{};
  CHECK(edl_predictor_describe(p, &about) == -1);
  CHECK(contains(said(), "continues texts"));
  opened const other(exported<pictures>(dir, "p.safetensors", 1));
  CHECK(edl_predictor_generate(other.p, "b", 1, &how, hear, &all, nullptr) == -1);
  CHECK(contains(said(), "edl_predictor_open_texts"));
  CHECK(edl_predictor_open_texts((dir / "p.safetensors").c_str(), nullptr, 1) == 0);
  CHECK(edl_predictor_open_texts(path.c_str(), (dir / "none.json").c_str(), 1) == 0);
  CHECK(contains(said(), "none.json"));
  CHECK(edl_predictor_close(p) == 0);
  CHECK(edl_predictor_close(p) == -1);
  CHECK(edl_predictor_generate(p, "b", 1, &how, hear, &all, nullptr) == -1);
  CHECK(contains(said(), "is not open"));
}

TEST_CASE("threads predict at once, errors are of each, and a model that is closed meanwhile ends well") {
  scratch const dir;
  opened kept(exported<pictures>(dir, "m.safetensors", 1));
  auto const x = drawn(24);
  REQUIRE(kept({floats("x", x)}, 3, 9));
  auto const wanted = kept.outputs;
  std::atomic<int> wrong{0}, closed{0};
  std::vector<std::thread> all;
  edl_predictor const shared = edl_predictor_open((dir / "m.safetensors").c_str(), 1);
  for (int t = 0; t < 3; ++t)
    all.emplace_back([&, t] {
      std::vector<float> y(9);
      edl_values const in = floats("x", x);
      for (int i = 0; i < 50; ++i) {
        if (edl_predictor_predict(kept.p, &in, 1, 3, y.data(), 9) != 0 || y != wanted) ++wrong;
        if (edl_predictor_predict(kept.p, &in, 1, 3, y.data(), unsigned(t)) == 0) ++wrong;
        wrong += said() !=
                 "the buffer has room for " + std::to_string(t) + " numbers, but 3 records have 9 outputs";
        y.assign(9, 0);
        if (edl_predictor_predict(shared, &in, 1, 3, y.data(), 9) == 0 && y != wanted) ++wrong;
        if (i == 25) closed += edl_predictor_close(shared) == 0;
      }
    });
  for (auto& t : all) t.join();
  CHECK(wrong == 0);
  CHECK(closed == 1);
}

}  // namespace predictor_library_test
