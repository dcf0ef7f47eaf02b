// SPDX-License-Identifier: Apache-2.0
#include "zoo/zoo.hpp"

#include <regex>
#include <sstream>

#include "compute/data/support.hpp"
#include "zoo/template.hpp"

namespace zoo_test {

using namespace edl;
using support::has, tool::words, tool::zoo;

namespace {

struct workplace {
  support::scratch here;
  std::string said;

  int operator()(words const& line) {
    std::ostringstream out;
    struct keeper {
      std::ostringstream& from;
      std::string& to;
      ~keeper() { to = from.str(); }
    } const keep{out, said};
    return zoo(line, here.path(), "no-such-engine", out);
  }
  std::string file(std::string const& name) const { return support::read(here / name); }
  bool exists(std::string const& name) const { return std::filesystem::exists(here / name); }
};

std::string refusal(workplace& w, words const& line) {
  return support::failure([&] { w(line); });
}

}  // namespace

TEST_CASE("init makes every file of a zoo, and a Dockerfile in the folder where it is called") {
  workplace w;
  CHECK(w({"init", "--model_zoo=model_zoo", "--models=all", "--base_image=edl:own"}) == 0);
  std::regex const mark(R"(\{\{[a-z_]+\}\})");
  std::size_t files = 0;
  for (auto const& t : tool::zoo_template()) {
    CAPTURE(t.path);
    std::string const text =
        w.file(t.path == "Dockerfile" ? "Dockerfile" : "model_zoo/" + std::string(t.path));
    CHECK(!text.empty());
    CHECK_FALSE(std::regex_search(text, mark));
    ++files;
  }
  CHECK(files >= 5);
  CHECK(has(w.file("Dockerfile"), "\nFROM edl:own AS build\n"));
  CHECK(has(w.file("Dockerfile"), "\nCOPY model_zoo /model_zoo\n"));
  CHECK(has(w.file(".dockerignore"), "*\n!model_zoo\n"));
  CHECK(has(w.said, "made    model_zoo/mnist/mnist_functional_api.cpp\n"));
  // The table of a whole zoo has each of its models.
  std::string const readme = w.file("model_zoo/README.md");
  for (auto const& t : tool::zoo_template())
    if (t.path.ends_with(".cpp")) CHECK(has(readme, "| `" + std::string(t.path) + "` |"));
  CHECK(has(readme, "build/zoo/mnist_functional_api train --training_data=synthetic:train"));
}

TEST_CASE("a new zoo has the models that are asked for") {
  workplace w;
  CHECK(w({"init", "--models=iris,frappe"}) == 0);
  CHECK(w.exists("iris/iris_dnn.cpp"));
  CHECK(w.exists("frappe/frappe_deepfm_test.sh"));
  CHECK_FALSE(w.exists("mnist/mnist_functional_api.cpp"));
  // Its README speaks of these, and of no other.
  std::string const readme = w.file("README.md");
  for (char const* there : {"| `frappe/frappe_deepfm.cpp` |", "| `iris/iris_dnn.cpp` |",
                            "build/zoo/frappe_deepfm train --training_data=data/train ",
                            "--model_def=frappe.frappe_deepfm.custom_model"})
    CHECK(has(readme, there));
  for (char const* other : {"mnist", "census", "cifar10", "synthetic:"}) CHECK_FALSE(has(readme, other));
  CHECK(has(refusal(w, {"init", "--models=iris,rose"}),
            "unknown model 'rose'; expected census, cifar10, criteo, frappe,"));
}

// So that what the example's tests show, such as predictions of records without labels, holds for it, too.
TEST_CASE("a new zoo's model is the MNIST example, but for its first comment") {
  workplace w;
  w({"init"});
  auto const model = [](std::string const& text) { return text.substr(text.find("#include")); };
  std::string const made = w.file("mnist/mnist_functional_api.cpp");
  CHECK(model(made) == model(support::read(EDL_MNIST_EXAMPLE)));
  CHECK(has(made, "if (m != edl::mode::prediction) into.label"));
}

TEST_CASE("without a folder the zoo is made on the spot") {
  workplace w;
  CHECK(w({"init"}) == 0);
  CHECK(w.exists("mnist/mnist_functional_api.cpp"));
  CHECK(has(w.file("Dockerfile"), "\nCOPY . /model_zoo\n"));
  CHECK_FALSE(has(w.file(".dockerignore"), "*\n!"));
}

TEST_CASE("what a user has written stays, unless it is told to go") {
  workplace w;
  support::write(w.here / "zoo/README.md", "mine");
  CHECK(w({"init", "--model_zoo=zoo"}) == 0);
  CHECK(w.file("zoo/README.md") == "mine");
  CHECK(has(w.said, "kept    zoo/README.md: it exists"));
  CHECK(w.exists("zoo/CMakeLists.txt"));

  // Now it is a zoo: a model that was thrown away does not come back.
  std::filesystem::remove_all(w.here / "zoo/mnist");
  CHECK(w({"init", "--model_zoo=zoo"}) == 0);
  CHECK_FALSE(w.exists("zoo/mnist"));

  std::filesystem::remove(w.here / "zoo/CMakeLists.txt");
  CHECK(w({"init", "--model_zoo=zoo", "--force"}) == 0);
  CHECK(has(w.file("zoo/README.md"), "# Model zoo"));
}

TEST_CASE("the Dockerfile follows the flags until someone changes it") {
  workplace w;
  CHECK(w({"init", "--model_zoo=zoo"}) == 0);
  CHECK(w({"init", "--model_zoo=zoo", "--base_image=elasticdl:dev_allreduce"}) == 0);
  CHECK(has(w.file("Dockerfile"), "\nFROM elasticdl:dev_allreduce AS build\n"));
  CHECK(has(w.said, "rewrote Dockerfile\n"));

  std::string const changed = w.file("Dockerfile") + "ENV MINE=1\n";
  support::write(w.here / "Dockerfile", changed);
  CHECK(has(refusal(w, {"init", "--model_zoo=zoo", "--base_image=other"}), "--force"));
  CHECK(w.file("Dockerfile") == changed);
  CHECK(w({"init", "--model_zoo=zoo", "--base_image=other", "--force"}) == 0);
  CHECK(has(w.file("Dockerfile"), "\nFROM other AS build\n"));
}

TEST_CASE("a cluster's file and an installed edl come into the image") {
  workplace w;
  support::write(w.here / "elsewhere/cluster.json", "{}");
  support::write(w.here / "edl/lib/cmake/edl/edl-config.cmake", "");
  CHECK(w({"init", "--model_zoo=zoo", "--cluster_spec=elsewhere/cluster.json", "--local_pkg_dir=./edl"}) ==
        0);
  CHECK(w.file("cluster.json") == "{}");
  std::string const file = w.file("Dockerfile");
  CHECK(has(file, "\nCOPY cluster.json /cluster_spec/\n"));
  CHECK(has(file, "\nCOPY edl /usr/local/\n"));
  CHECK(file.find("COPY edl ") < file.find("RUN cmake"));
  CHECK(file.find("COPY cluster.json") > file.find("COPY --from=build"));
  CHECK(has(w.file(".dockerignore"), "!cluster.json\n!edl\n"));
}

TEST_CASE("flags that mean nothing here are read, and said to mean nothing") {
  workplace w;
  std::filesystem::create_directories(w.here / "build");
  CHECK(w({"init", "--model_zoo=zoo", "--local_pkg_dir=./build",
           "--extra_pypi_index=https://a.example/simple"}) == 0);
  CHECK(has(w.said, "--local_pkg_dir=./build: no edl is installed there"));
  CHECK(has(w.said, "--extra_pypi_index"));
  CHECK_FALSE(has(w.file("Dockerfile"), "COPY ./build"));
}

TEST_CASE("wrong words are refused before anything is made") {
  workplace w;
  CHECK(has(refusal(w, {"init", "--model_zoo=../zoo"}), "--model_zoo=../zoo: lies outside"));
  CHECK(has(refusal(w, {"init", "--model_zoo=a b"}), "--model_zoo=a b"));
  CHECK(has(refusal(w, {"init", "--base_image="}), "--base_image"));
  CHECK(has(refusal(w, {"init", "--base_image=a\nRUN b"}), "--base_image"));
  CHECK(has(refusal(w, {"init", "--cluster_spec=none.json"}), "--cluster_spec=none.json: no such file"));
  CHECK(has(refusal(w, {"init", "--model_zo=zoo"}), "--model_zoo"));
  CHECK(has(refusal(w, {"make"}), "init, build or push"));
  CHECK(has(refusal(w, {"push"}), "image"));
  CHECK(has(refusal(w, {"build", "."}), "--image"));
  CHECK(std::filesystem::is_empty(w.here.path()));
}

TEST_CASE("init --from writes a model of a table: numbers, words, dates, missing cells and a label") {
  workplace w;
  std::string table = "id,Area m2,class,sold,note,price\n";
  for (int i = 0; i < 60; ++i)
    table +=
        fmt::format("{},{},{},2026-{:02}-15,same,{}\n", i, i % 7 == 0 ? "" : std::to_string(20 + i * i % 31),
                    i % 5 == 0 ? "" : (i % 2 ? "new" : "o\"\"ld\""), 1 + i % 12, 1000.5 * (1 + i % 9));
  for (std::size_t at = 0; (at = table.find("o\"\"ld\"", at)) != table.npos; at += 8) table.insert(at, "\"");
  support::write(w.here / "flats.csv", table);
  CHECK(w({"init", "--from=flats.csv", "--label=price", "--model_zoo=zoo"}) == 0);
  std::string const model = w.file("zoo/table/table_price.cpp");
  CAPTURE(model);
  for (char const* const part : {"record.contains(\"Area m2\") ? area_m2(record.floating(\"Area m2\")) : 0",
                                 "string_lookup column_class{{\"new\", \"o\\\"ld\"}}",
                                 "float(features::date(record.bytes(\"sold\")).days())",
                                 "features::round_identity sold_weekday{.most = 7}", "nn::mean_squared_error",
                                 "into.label = record.floating(\"price\")",
                                 "// Left out: id: nearly each record has a value of its own.",
                                 "// Left out: note: each record has the same value."})
    CHECK_MESSAGE(has(model, part), part);
  CHECK(has(w.said, "note: 'price' is a number"));
  CHECK(has(w.said, "cmake -S zoo -B zoo/build && cmake --build zoo/build -j 2\n"));
  CHECK(has(w.said, "train --training_data=flats.csv --validation_split=0.2 "));
  CHECK(has(w.said, "zoo/build/table_price history zoo/build/table_price-checkpoints\n"));
  CHECK(has(w.said, "zoo/build/table_price serve --model_path=zoo/build/table_price-checkpoints\n"));
  CHECK_FALSE(has(w.said, "note: Dockerfile"));
  CHECK(has(w.file("zoo/table/table_price_test.sh"), "flats.csv"));
  CHECK(has(w.file("zoo/README.md"), "`table_price`"));
  CHECK_FALSE(w.exists("zoo/mnist"));
  CHECK(w({"init", "--from=flats.csv", "--label=class", "--model_zoo=zoo"}) == 0);  // into the same zoo
  CHECK(has(w.file("zoo/table/table_class.cpp"), "into.label = classes(record.bytes(\"class\"))"));
  CHECK(has(w.file("zoo/table/table_class.cpp"), "is none of the classes"));  // another text, or none
  CHECK(has(w.file("zoo/table/table_class.cpp"), "static constexpr auto class_names = classes.words();"));
  CHECK(w({"init", "--from=flats.csv", "--label=class", "--model_zoo=missing", "--missing=old,\"ld\""}) == 0);
  CHECK(has(w.said,
            "--shuffle '--missing=old,\"ld\"' --skip_damaged --max_damaged=0.41 "
            "--checkpoint_dir=missing/build/table_class-checkpoints"));
  CHECK(has(w.said,
            "note: Dockerfile and .dockerignore were of the zoo in zoo, and are of the one in missing now"));
  CHECK(has(w.file("missing/table/table_class_test.sh"), "--shuffle '--missing=old,\"ld\"' --skip_damaged"));
  support::write(w.here / "odd.csv", std::string(table).replace(table.find("2026-01-15"), 10, "2026-13-45"));
  CHECK(w({"init", "--from=odd.csv", "--label=price", "--model_zoo=odd"}) == 0);
  CHECK(has(w.said, "note: column 'sold' is taken for words, because '2026-13-45' is not a date"));
  // Words for a missing date change nothing in that the column is of dates.
  support::write(w.here / "na.csv", std::string(table).replace(table.find("2026-01-15"), 10, "NA"));
  CHECK(w({"init", "--from=na.csv", "--label=price", "--model_zoo=na"}) == 0);
  CHECK_FALSE(has(w.said, "is taken for words"));
  CHECK(has(
      w.file("na/table/table_price.cpp"),
      "(record.contains(\"sold\") && !features::date::missing(record.bytes(\"sold\"))) ? sold_days(float("));
  CHECK(has(refusal(w, {"init", "--from=flats.csv", "--label=prices"}), "did you mean price?"));
  CHECK(has(refusal(w, {"init", "--from=flats.csv"}), "--from needs --label"));
  CHECK(has(refusal(w, {"init", "--label=price"}), "--label needs --from"));
  CHECK(has(refusal(w, {"init", "--from=flats.csv", "--label=note"}), "each record has the same value"));
}

TEST_CASE("a cell that is no word costs the column nothing but that cell, and is named") {
  workplace w;
  std::string const rows = [] {
    std::string all;
    for (int i = 0; i < 60; ++i)
      all += fmt::format("{},{},{}\n", i % 2 ? "Ulm" : "K\u00f6ln", i * i % 31, i % 3 ? "yes" : "no");
    return all;
  }();
  for (auto const& [cell, why] :
       {std::pair<std::string, std::string>{"\"Ulm\n\"", "has a line end or another"},
        {"\x01Ulm", "control character"},
        {std::string(300, 'a'), "is longer than 256 bytes"},
        {"K\xf6ln", "is not UTF-8"}}) {
    CAPTURE(why);
    support::write(w.here / "a.csv", "town,size,sold\n" + rows + cell + ",5,yes\n");
    CHECK(w({"init", "--from=a.csv", "--label=size", "--model_zoo=zoo", "--force"}) == 0);
    CHECK(has(w.said, "note: column 'town': '"));
    CHECK(has(w.said, "' (record 60 of a.csv, line 62) "));
    CHECK(has(w.said, why + (why.ends_with("another") ? " control character" : "") +
                          ": it is no word of the model, and has its id of unknown words"));
    CHECK(has(w.file("zoo/table/table_size.cpp"), "string_lookup town{{\"K\u00f6ln\", \"Ulm\"}}"));
    support::write(w.here / "b.csv", "size,town\n1,Ulm\n2,Bonn\n5," + cell + "\n");
    CHECK(has(refusal(w, {"init", "--from=b.csv", "--label=town", "--model_zoo=zoo"}),
              "(record 2 of b.csv, line 4)"));
  }
}

TEST_CASE("records without a label are told, and the commands leave them out, whatever the label is") {
  workplace w;
  for (auto const& [label, yes, no] :
       {std::tuple{"words", "yes", "no"}, {"whole", "1", "0"}, {"price", "2.5", "7"}}) {
    CAPTURE(label);
    std::string table = fmt::format("size,{}\n", label);
    for (int i = 0; i < 100; ++i)
      table += fmt::format("{},{}\n", i % 31, i % 25 == 0 ? "" : i % 3 ? yes : no);
    support::write(w.here / "a.csv", table);
    CHECK(w({"init", "--from=a.csv", std::string("--label=") + label, "--model_zoo=zoo"}) == 0);
    CHECK(has(w.said, fmt::format("note: 4 records have no '{}', which is an error in training", label)));
    CHECK(has(w.said, " --shuffle --skip_damaged --max_damaged=0.09 --checkpoint_dir="));
    CHECK(has(w.file(fmt::format("zoo/table/table_{}_test.sh", label)),
              "--skip_damaged --max_damaged=0.09 \\\n"));
  }
}

}  // namespace zoo_test
