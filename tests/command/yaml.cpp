// SPDX-License-Identifier: Apache-2.0
#include "common/yaml.hpp"

#include <nlohmann/json.hpp>

#include "command/tool.hpp"
#include "common/text_file.hpp"

namespace yaml_test {

using edl::tool::from_yaml, edl::tool::from_yaml_documents, edl::tool::to_yaml, edl::tool::read_small_file;
using nlohmann::json;
using support::has;
using tool_test::refusal;

TEST_CASE("what is written as YAML is read as what it was") {
  json const all{{"text", "plain"},
                 {"number like", "0.2"},
                 {"truth like", "yes"},
                 {"old truth", "Off"},
                 {"nothing like", "null"},
                 {"empty", ""},
                 {"colon", "a: b"},
                 {"hash", "a #b"},
                 {"lines", "one\ntwo\n"},
                 {"quotes", "\"'\\"},
                 {"utf", "größer"},
                 {"dash", "- a"},
                 {"date", "2026-11-20"},
                 {"whole", 3},
                 {"negative", -5},
                 {"real", 0.5},
                 {"yes", true},
                 {"none", nullptr},
                 {"list", {1, "2", {{"a", json::array()}}}},
                 {"map", {{"a.b/c", json::object()}, {"on", "1e3"}}}};
  CHECK(from_yaml(to_yaml(all), "test") == all);
  // Readers of YAML 1.1 take these without quotes for truth.
  CHECK(has(to_yaml({{"a", "yes"}}), "\"yes\""));
  CHECK(has(to_yaml({{"on", 1}}), "\"on\""));
}

TEST_CASE("numbers are those of the cluster's tools, and keep their spelling where a text is wanted") {
  std::string const text = "[0400, 0644, 0o400, 0x1f, -010, 0b11, 256, 1.10, 1e3, 089, \"0400\", 00, 0xg]";
  CHECK(from_yaml(text, "f") == json{256, 420, 256, 31, -8, 3, 256, 1.1, 1000.0, 89, "0400", 0, "0xg"});
  CHECK(from_yaml(text, "f", edl::tool::numbers::as_written) == json{"0400", "0644", "0o400", "0x1f", "-010",
                                                                     "0b11", 256, "1.10", "1e3", "089",
                                                                     "0400", "00", "0xg"});
}

TEST_CASE("JSON is read, too") {
  CHECK(from_yaml(R"({"a": [1, "2"]})", "test") == json{{"a", {1, "2"}}});
  CHECK(from_yaml("", "test").is_null());
}

TEST_CASE("what cannot be read is one line that says where") {
  for (auto const& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"a: [1", "line"},
           {"a: 1\na: 2", "line 2: 'a' occurs twice"},
           {"a: 1\n---\nb: 2", "line 2: several documents"},
           {"a: 1\nb: tru\x9f", "line 2: its bytes are not UTF-8"},
           {std::string("e\0\0\0:%YAML 1.2 1},\n", 18),
            "line 1: a byte of it is zero: save the file as UTF-8"},
           {"a: 1\n\xff: 2\n", "line 2: its bytes are not UTF-8"},
           {"{a: 1},", "a comma too many"},
           {"{a: 1}\n,\n", "line 2"},
           {"[1, 2],\nb: 3", "a comma too many"}}) {
    std::string const said = refusal([&] { from_yaml(text, "--file=x"); });
    CAPTURE(said);
    CHECK(has(said, "--file=x"));
    CHECK(has(said, part));
    CHECK_FALSE(has(said, "\n"));
  }
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "[";
  CHECK(refusal([&] { from_yaml(deep + std::string(200, ']'), "f"); }) != "accepted");
  // JSON of the same kind, which is copied and printed by recursion.
  for (std::string const open : {"[", "{\"a\":"}) {
    std::string many = "{\"cluster_spec_json\":";
    for (int i = 0; i < 150'000; ++i) many += open;
    many += "1";
    many += std::string(150'000, open == "[" ? ']' : '}') + "}";
    CHECK(has(refusal([&] { from_yaml(many, "--file=x"); }), "--file=x: is nested deeper than 200 levels"));
  }
  // A few lines that stand for a billion values.
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += "*a" + std::to_string(i - 1) + (k < 9 ? ", " : "]\n");
  }
  CHECK(has(refusal([&] { from_yaml(bomb, "f"); }), "too much"));
}

TEST_CASE("files are small, and are files") {
  support::scratch const dir;
  support::write(dir / "a", "text");
  CHECK(read_small_file("--f", dir / "a") == "text");
  support::write(dir / "big", std::string((1 << 20) + 1, 'x'));
  CHECK(has(refusal([&] { read_small_file("--f", dir / "big"); }), "larger than 1 MiB"));
  CHECK(has(refusal([&] { read_small_file("--f", dir.path()); }), "is a directory"));
  CHECK(has(refusal([&] { read_small_file("--f", dir / "none"); }), "--f=" + (dir / "none")));
  CHECK(has(refusal([&] { read_small_file("--f", "/dev/zero"); }), "larger than 1 MiB"));
}

TEST_CASE("several documents are told apart, with the lines of the file in the errors") {
  auto const all =
      from_yaml_documents("# first\na: 1\n---\n# nothing\n---\nb: |\n  x\n  --- y\n---\n- c\n...\n", "f");
  CHECK(all == std::vector<json>{{{"a", 1}}, {{"b", "x\n--- y\n"}}, json::array({"c"})});
  CHECK(from_yaml_documents("", "f").empty());
  CHECK(from_yaml_documents("---\n---\n", "f").empty());
  CHECK(from_yaml_documents("{\"kind\": \"List\", \"items\": [{\"a\": 1}, {\"b\": 2}]}", "f").size() == 2);
  CHECK(from_yaml_documents("kind: List\nitems: [{a: 1}]\n---\nb: 2\n", "f").size() == 2);
  CHECK(has(refusal([&] { from_yaml_documents("a: 1\n---\nb: 1\nb: 2\n", "f"); }),
            "f: line 4: 'b' occurs twice"));
  CHECK(has(refusal([&] { from_yaml_documents("[1, 2],\nb: 3", "f"); }),
            "f: line 1: a new document was expected"));
  CHECK(has(refusal([&] { from_yaml_documents("a: [\n---\nb: 1\n", "f"); }), "f: line"));
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "---\na: 1\n";
  CHECK(has(refusal([&] { from_yaml_documents(many, "f"); }), "more than 1000 documents"));
}

}  // namespace yaml_test
