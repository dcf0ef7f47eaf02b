// SPDX-License-Identifier: Apache-2.0
#include "data/tokenize.hpp"

#include <string>

#include "command/tool.hpp"
#include "compute/data/support.hpp"
#include "edl/compute/data/file.hpp"
#include "edl/compute/data/format/example.hpp"
#include "edl/compute/data/format/token_file.hpp"
#include "edl/compute/data/source.hpp"
#include "edl/compute/tokens/tokenizer.hpp"

namespace tokenize_test {

using tool_test::run;

/// All tokens of a file as a text.
std::string text_of(std::string const& tokenizer, std::string const& file) {
  auto const head = edl::data::read_token_file_head(edl::data::detail::input_file(file));
  auto const all = edl::data::open_source("tokens:" + std::to_string(head.tokens - 1) + ":" + file);
  edl::example record;
  all->open()->read(0, 0, record);
  auto const ids = record.integer_values("tokens");
  return edl::tokens::tokenizer::from_file(tokenizer).decode(
      std::vector<edl::tokens::token_id>(ids.begin(), ids.end()));
}

TEST_CASE("texts become a tokenizer and a token file, and the same texts again") {
  support::scratch const dir;
  std::string const text = support::write(dir / "a.txt", "one two two\n\nthree three three\n\n\n\ntwo"),
                    lines = support::write(dir / "b.jsonl",
                                           "{\"text\":\"two\"}\n{\"other\":\"x\"}\n{\"text\":\"one\"}\n"),
                    tokenizer = dir / "tokenizer.json", tokens = dir / "a.tokens";
  auto const made =
      run({"data", "train-tokenizer", "--vocab_size=270", "--output=" + tokenizer, text, lines});
  CAPTURE(made.err);
  CHECK(made.code == 0);
  CHECK(support::has(made.out, " tokens from "));
  CHECK(support::has(made.err, "fewer than 270 tokens"));
  auto const with = [&](edl::tool::words more) {
    edl::tool::words line{"data", "tokenize", "--tokenizer=" + tokenizer, "--output=" + tokens};
    line.insert(line.end(), more.begin(), more.end());
    return run(line);
  };
  auto const plain = with({text, lines});
  CAPTURE(plain.err);
  CHECK(plain.code == 0);
  CHECK(support::has(plain.out, ", 3 documents: "));
  CHECK(support::has(plain.err, "1 record has no feature 'text'"));
  CHECK(support::has(plain.err, "nothing stands between the documents"));
  CHECK(text_of(tokenizer, tokens) == support::read(text) + "twoone");
  std::string const end = "--end_token=<|endoftext|>";
  for (char const* const threads : {"--threads=1", "--threads=3"}) {
    CHECK(with({end, threads, "--separator=\\n\\n", text}).code == 0);
    CHECK(text_of(tokenizer, tokens) ==
          "one two two<|endoftext|>three three three<|endoftext|>two<|endoftext|>");
  }
  CHECK(with({end, "--text=other", lines}).code == 0);
  CHECK(text_of(tokenizer, tokens) == "x<|endoftext|>");
}

TEST_CASE("separators are found wherever blocks of a file end") {
  support::scratch const dir;
  std::string const tokenizer = dir / "tokenizer.json", tokens = dir / "a.tokens",
                    small = support::write(dir / "s", "ab");
  REQUIRE(run({"data", "train-tokenizer", "--vocab_size=257", "--output=" + tokenizer, small}).code == 0);
  for (std::size_t const before : {(1u << 20) - 2, (1u << 20) - 1, 1u << 20}) {
    std::string const text = support::write_anew(dir / "a.txt", std::string(before, 'a') + "----b");
    CHECK(run({"data", "tokenize", "--tokenizer=" + tokenizer, "--output=" + tokens, "--separator=---", text})
              .code == 0);
    auto const head = edl::data::read_token_file_head(edl::data::detail::input_file(tokens));
    CHECK(head.documents == 2);
    CHECK(head.tokens == before + 2);  // the separator is the first that is there
  }
}

TEST_CASE("what cannot be done is said, and leaves no file") {
  support::scratch const dir;
  std::string const tokenizer = dir / "tokenizer.json", tokens = dir / "a.tokens",
                    text = support::write(dir / "a", "aa aa"), empty = support::write(dir / "empty", "");
  CHECK(run({"data", "train-tokenizer", "--vocab_size=100", "--output=" + tokenizer, text}).code == 2);
  CHECK(support::has(run({"data", "train-tokenizer", "--output=" + tokenizer, empty}).err,
                     "the inputs hold no text"));
  CHECK(!std::filesystem::exists(tokenizer));
  REQUIRE(run({"data", "train-tokenizer", "--output=" + tokenizer, text}).code == 0);
  auto const why = [&](edl::tool::words line) {
    line.insert(line.begin(), {"data", "tokenize", "--output=" + tokens});
    auto const told = run(line);
    CHECK(told.code != 0);
    CHECK(!std::filesystem::exists(tokens));
    return told.err;
  };
  CHECK(support::has(why({text}), "tokenizer"));
  CHECK(support::has(why({"--tokenizer=" + text, text}), "a: is not JSON"));
  CHECK(support::has(why({"--tokenizer=" + tokenizer, empty}), "the inputs hold no text"));
  CHECK(support::has(why({"--tokenizer=" + tokenizer, "--end_token=<x>", text}), "--end_token=<x>: "));
  CHECK(support::has(why({"--tokenizer=" + tokenizer, dir.path()}), "is not a regular file"));
}

TEST_CASE("conversations become records, whose labels are in answers alone") {
  support::scratch const dir;
  std::string const tokenizer = dir / "tokenizer.json", out = dir / "a.recordio";
  std::string const chats = support::write(dir / "a.jsonl",
                                           "{\"prompt\":\"ab\",\"completion\":\"c\"}\n\n"
                                           "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},"
                                           "{\"role\":\"assistant\",\"content\":\"y\"}]}\n"
                                           "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}\n"),
                    damaged = support::write(
                        dir / "b.jsonl", "\n{\"prompt\":\"a\"}\n{\"prompt\":\"a\",\"completion\":\"b\"}\n");
  REQUIRE(run({"data", "train-tokenizer", "--vocab_size=259", "--special_tokens=<|im_start|>,<|im_end|>",
               "--output=" + tokenizer, support::write(dir / "text", "a")})
              .code == 0);
  auto const with = [&](edl::tool::words more) {
    edl::tool::words line{"data", "tokenize", "--tokenizer=" + tokenizer, "--output=" + out};
    line.insert(line.end(), more.begin(), more.end());
    return run(line);
  };
  auto const made = with({"--instructions=chatml", chats});
  CAPTURE(made.err);
  CHECK(made.code == 0);
  CHECK(support::has(made.out, "2 records of "));
  CHECK(support::has(made.out, ", 4 of them in answers: "));
  CHECK(support::has(made.err, "1 conversation is left out: no answer within the first 1024 tokens"));
  auto const all = edl::data::open_source(out);
  edl::example record;
  all->open()->read(0, 0, record);
  auto const ids = record.integer_values("tokens"), next = record.integer_values("labels");
  CHECK(std::vector<std::int64_t>(ids.begin(), ids.end()) == std::vector<std::int64_t>{'a', 'b', 'c'});
  REQUIRE(next.size() == 3);
  CHECK(next[0] == -1);
  CHECK(next[1] == 'c');
  CHECK(edl::tokens::tokenizer::from_file(tokenizer).decode(std::vector{edl::tokens::token_id(next[2])}) ==
        "<|im_end|>");
  CHECK(support::has(with({"--instructions=chatml", "--length=3", chats}).out, "1 record of 3 tokens"));

  CHECK(support::has(with({"--instructions=chatml", damaged}).err,
                     "b.jsonl:2: the line has no text 'completion'"));
  auto const skipped = with({"--instructions=chatml", "--skip_damaged=true", damaged});
  CHECK(skipped.code == 0);
  CHECK(support::has(skipped.err, "1 damaged line is skipped"));
  CHECK(support::has(with({"--instructions=llama3", chats}).err, "has no token <|begin_of_text|>"));
  CHECK(support::has(with({"--instructions=plain", chats}).err,
                     "a.jsonl:3: 'messages' need the style of a chat"));
}

}  // namespace tokenize_test
