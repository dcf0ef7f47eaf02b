// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/tokens/tokenizer.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>

#include "compute/tokens/support.hpp"
#include "edl/core/error.hpp"
#include "scratch_directory.hpp"
#include "text.hpp"

namespace tokens_test {

using namespace edl::tokens;

TEST_CASE("words become the tokens of the merges, and decoding gives the text back") {
  json const file = hello();
  CHECK(shown(file, "hello hello hell hel\xc3\xa9") == "hello| hello| |hell| |he|l|\xc3\xa9");
  auto const by = made(file);
  CHECK(by.vocabulary() == 264);
  CHECK(by.find("<|end|>") == token_id{262});
  CHECK(by.find(letters(" hello")) == token_id{260});
  CHECK(!by.find("none"));
  std::string const text = "hello, hello!\n\xe4\xbd\xa0\xf0\x9f\x98\x80 \t<tool>he<|end|>\r\n";
  auto const all = encoder(by).encode(text);
  CHECK(by.decode(all) == text);
  CHECK(by.decode(all, false) == "hello, hello!\n\xe4\xbd\xa0\xf0\x9f\x98\x80 \t<tool>he\r\n");
  CHECK(complaint([&] { by.decode(ids{264}); }) ==
        "token 264 is not in the vocabulary, whose ids are below 264");
}

TEST_CASE("an encoder gives a word the same tokens each time") {
  encoder of(made(hello()));
  ids const once = of.encode("hello");
  CHECK(of.encode("hello hello") == ids{once[0], 260});
  std::string const word(100, 'l');  // longer than those that are remembered
  CHECK(of.encode(word) == of.encode(word));
  ids all{7};
  of.encode("hello", all);
  CHECK(all == ids{7, once[0]});
}

TEST_CASE("merges may be lists, and the model's type may be missing") {
  json file = hello();
  ids const as_texts = encoded(file, "hello hell");
  for (json& m : file["model"]["merges"]) {
    std::string const both = m;
    auto const blank = both.find(' ');
    m = {both.substr(0, blank), both.substr(blank + 1)};
  }
  file["model"].erase("type");
  CHECK(encoded(file, "hello hell") == as_texts);
}

TEST_CASE("bytes that are not UTF-8 are U+FFFD") {
  CHECK(shown(hello(),
              "a\xff"
              "b") == shown(hello(),
                            "a\xef\xbf\xbd"
                            "b"));
  CHECK(made(hello()).decode(ids{'a', 0xff, 0xc3, 'b'}) ==
        "a\xef\xbf\xbd\xef\xbf\xbd"
        "b");
}

TEST_CASE("tokens that come one at a time give whole characters") {
  std::string const text = "h\xc3\xa9 \xe4\xbd\xa0\xf0\x9f\x98\x80<|end|>!";
  auto const by = made(hello());
  decoder of(by), without(by, false);
  std::string all, less;
  for (token_id const id : encoder(by).encode(text)) {
    std::string const part = of.add(id);
    std::string space;
    CHECK(valid_utf8(part, space) == part);
    CHECK(part.find("\xef\xbf\xbd") == part.npos);
    all += part, less += without.add(id);
  }
  CHECK(all + of.finish() == text);
  CHECK(less == "h\xc3\xa9 \xe4\xbd\xa0\xf0\x9f\x98\x80!");
  CHECK(of.add(0xf0) == "");
  CHECK(of.add(0x9f) == "");
  CHECK(of.add('a') ==
        "\xef\xbf\xbd"
        "a");
  CHECK(of.add(0xe4) == "");
  CHECK(of.finish() == "\xef\xbf\xbd");
  CHECK(of.finish() == "");
}

TEST_CASE("added tokens are found before words are") {
  json file = hello();
  file["added_tokens"].push_back({{"id", 264}, {"content", "<|end|>>"}, {"special", true}});
  file["added_tokens"].push_back({{"id", 265}, {"content", "<m>"}, {"lstrip", true}, {"special", true}});
  file["added_tokens"].push_back({{"id", 266}, {"content", "<r>"}, {"rstrip", true}, {"special", true}});
  file["added_tokens"].push_back(
      {{"id", 261}, {"content", letters("\xc3\xa9")}, {"special", true}});  // in the vocabulary
  CHECK(encoded(file, "<|end|><|end|>><|end|") == ids{262, 264, '<', '|', 'e', 'n', 'd', '|'});
  CHECK(encoded(file, "a \xc2\xa0\t<m> a") == ids{'a', 265, ' ', 'a'});
  CHECK(encoded(file,
                "a <r> \xe3\x80\x80"
                "a") == ids{'a', ' ', 266, 'a'});
  CHECK(encoded(file, "<r> <m>") == ids{266, 265});
  CHECK(made(file).decode(ids{261}) == letters("\xc3\xa9"));
}

TEST_CASE("a text is composed between added tokens that are as given") {
  json file = hello();
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}};
  file["added_tokens"].push_back({{"id", 264}, {"content", "e\xcc\x81!"}, {"normalized", false}});
  file["added_tokens"].push_back({{"id", 265}, {"content", "e\xcc\x81?"}, {"normalized", true}});
  CHECK(encoded(file, "e\xcc\x81 e\xcc\x81!") == ids{261, ' ', 264});
  CHECK(encoded(file, "\xc3\xa9! \xc3\xa9?") == ids{261, '!', ' ', 265});
}

TEST_CASE("texts are cut as the file says") {
  json file = hello();
  auto const byte_level = file["pre_tokenizer"];
  file["pre_tokenizer"]["add_prefix_space"] = true;
  CHECK(encoded(file, "hello<|end|>hello") == ids{260, 262, 260});
  CHECK(encoded(file, " hello") == ids{260});
  file["pre_tokenizer"] = byte_level;
  file["pre_tokenizer"]["use_regex"] = false;
  json const plain = file["pre_tokenizer"];
  file["model"]["merges"].push_back(letters("1") + " " + letters("2"));
  file["model"]["vocab"][letters("12")] = 264;
  CHECK(shown(file, "x12") == "x|12");
  auto const with = [&](json const& step) {
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {step, plain}}};
    return file;
  };
  json split{{"type", "Split"}, {"pattern", {{"Regex", R"(\p{N})"}}}, {"behavior", "Isolated"}};
  CHECK(shown(with(split), "x12") == "x|1|2");
  CHECK(shown(with({{"type", "Digits"}, {"individual_digits", true}}), "x12") == "x|1|2");
  CHECK(shown(with({{"type", "Digits"}, {"individual_digits", false}}), "x12") == "x|12");
  split["behavior"] = "Removed", split["invert"] = true;
  CHECK(shown(with(split), "x12y") == "1|2");
  split = {{"type", "Split"}, {"pattern", {{"String", "2"}}}, {"behavior", "Isolated"}};
  CHECK(shown(with(split), "x12") == "x|1|2");
}

TEST_CASE("whole words of the vocabulary need no merges, where the file says so") {
  json file = hello();
  file["model"]["vocab"][letters("xyz")] = 264;
  CHECK(shown(file, "xyz") == "x|y|z");
  file["model"]["ignore_merges"] = true;
  CHECK(shown(file, "xyz xyz") == "xyz| |x|y|z");
}

TEST_CASE("without bytes, unknown characters are bytes, unknown, or left out") {
  json file = small({});
  file["pre_tokenizer"] = nullptr;
  file["decoder"] = {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
  file["added_tokens"] = json::array();
  file["model"]["vocab"] = {{"a", 0},      {"b", 1},      {"ab", 2},      {"<unk>", 3},
                            {"<0xC3>", 4}, {"<0xA9>", 5}, {"\xc3\xa4", 6}};
  file["model"]["merges"] = {"a b"};
  CHECK(encoded(file, "ab\xc3\xa4\xc3\xa9z") == ids{2, 6});
  file["model"]["unk_token"] = "<unk>";
  CHECK(encoded(file, "zzab\xc3\xa9z") == ids{3, 3, 2, 3, 3});
  file["model"]["fuse_unk"] = true;
  CHECK(encoded(file, "zzab\xc3\xa9z") == ids{3, 2, 3});
  file["model"]["byte_fallback"] = true;
  CHECK(encoded(file, "zzab\xc3\xa9z") == ids{3, 2, 4, 5, 3});
  CHECK(made(file).decode(ids{2, 4, 5, 6}) == "ab\xc3\xa9\xc3\xa4");
}

TEST_CASE("tokens of a template are added when they are asked for") {
  json file = hello();
  json const end{{"SpecialToken", {{"id", "<|end|>"}, {"type_id", 0}}}}, text{{"Sequence", {{"id", "A"}}}};
  json const process{{"type", "TemplateProcessing"},
                     {"single", {end, text, end, end}},
                     {"pair", json::array()},
                     {"special_tokens", {{"<|end|>", {{"ids", {262}}}}}}};
  file["post_processor"] = {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}, process}}};
  CHECK(encoded(file, "hello") == ids{259});
  CHECK(encoded(file, "hello", true) == ids{262, 259, 262, 262});
}

TEST_CASE("what is not supported is refused by its place and name") {
  auto const why = [](std::function<void(json&)> const& change) {
    json file = hello();
    change(file);
    return complaint([&] { made(file); });
  };
  CHECK(
      why([](json& f) { f["pre_tokenizer"] = {{"type", "Metaspace"}}; }) ==
      "tokenizer.json: pre_tokenizer: 'Metaspace' is not supported; what is: ByteLevel, Split, Digits, and a "
      "Sequence of these");
  CHECK(
      why([](json& f) { f["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}}}}; }) ==
      "tokenizer.json: normalizer.normalizers[0]: 'NFKC' is not supported; what is: NFC, and a Sequence of "
      "it");
  CHECK(contains(why([](json& f) { f["model"]["type"] = "Unigram"; }), "model: 'Unigram' is not supported"));
  CHECK(contains(why([](json& f) { f["decoder"] = {{"type", "Strip"}}; }),
                 "decoder: 'Strip' is not supported"));
  CHECK(contains(why([](json& f) { f["decoder"] = nullptr; }), "decoder: is null"));
  CHECK(
      contains(why([](json& f) { f["post_processor"] = {{"type", "BertProcessing"}}; }), "'BertProcessing'"));
  CHECK(why([](json& f) { f["model"]["continuing_subword_prefix"] = "##"; }) ==
        "tokenizer.json: model.continuing_subword_prefix: is not supported; it must be null");
  CHECK(contains(why([](json& f) { f["model"]["dropout"] = 0.1; }), "model.dropout: is not supported"));
  CHECK(
      contains(why([](json& f) { f["truncation"] = {{"max_length", 8}}; }), "truncation: is not supported"));
  CHECK(contains(why([](json& f) { f["model"]["other"] = 1; }), "model: 'other' is not supported"));
  CHECK(contains(why([](json& f) { f["other"] = 1; }), "tokenizer.json: 'other' is not supported"));
  CHECK(contains(why([](json& f) { f["added_tokens"][1]["single_word"] = true; }),
                 "added_tokens[1].single_word: true is not supported"));
  CHECK(contains(why([](json& f) { f["added_tokens"][1]["id"] = 0; }), "two tokens have the id 0"));
  CHECK(contains(why([](json& f) { f["added_tokens"][1]["content"] = "h"; }),
                 "has the id 263 here, and 104 in"));
  CHECK(contains(why([](json& f) { f["model"]["merges"][2] = "he lll"; }),
                 "model.merges[2]: 'lll' is not in the"));
  CHECK(contains(why([](json& f) { f["model"]["merges"][2] = "h e l"; }),
                 "model.merges[2]: is not two tokens"));
  CHECK(contains(why([](json& f) { f["model"]["merges"][2] = {"h", 1}; }), "model.merges[2]: is not a pair"));
  CHECK(contains(why([](json& f) { f["model"]["vocab"]["h"] = 1 << 20; }),
                 "model.vocab.h: is not a whole number below"));
  CHECK(contains(why([](json& f) { f["model"]["vocab"]["h"] = 1; }), "two tokens have the id 1"));
  CHECK(contains(why([](json& f) { f["model"]["vocab"][std::string(5000, 'x')] = 999; }),
                 "has 5000 bytes; 1 to 4096"));
  CHECK(contains(why([](json& f) { f["model"].erase("vocab"); }), "model.vocab: is not an object"));
  CHECK(contains(why([](json& f) { f.erase("model"); }), "has no member 'model'"));
  CHECK(contains(why([](json& f) { f["model"]["unk_token"] = "?!"; }),
                 "model.unk_token: '?!' is not in the vocabulary"));
  auto const split = [&](json const& step) {
    return why([&](json& f) {
      f["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {step, f["pre_tokenizer"]}}};
    });
  };
  CHECK(contains(split({{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}}),
                 "pre_tokenizer.pretokenizers[0].pattern.Regex: the expression '(' cannot be compiled"));
  CHECK(contains(split({{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "MergedWithNext"}}),
                 "pre_tokenizer.pretokenizers[0].behavior: 'MergedWithNext' is not supported"));
  CHECK(contains(split({{"type", "ByteLevel"}}), "pretokenizers[1]: stands behind ByteLevel"));
  CHECK(contains(complaint([] { tokenizer::from_json("{\"a\": 1,\n ]"); }), "tokenizer.json: is not JSON"));
  CHECK(complaint([] { tokenizer::from_json("[]"); }) ==
        "tokenizer.json: is not an object of JSON, as a tokenizer.json is");
}

TEST_CASE("a file is read, and its digest is that of its content") {
  scratch const dir;
  std::string const path = dir / "tokenizer.json", text = hello().dump();
  std::ofstream(path, std::ios::binary) << text;
  CHECK(tokenizer::from_file(path).digest() == made(hello()).digest());
  CHECK(made(small({})).digest() != made(hello()).digest());
  CHECK(contains(complaint([&] { tokenizer::from_file(dir / "none"); }), "none"));
}

}  // namespace tokens_test
