// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/tokens/chat.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <vector>

#include "base/wire/scratch.hpp"
#include "edl/core/error.hpp"

namespace chat_test {

using edl::tokens::chat_message, edl::tokens::chat_prompt, edl::tokens::chat_style_beside;

TEST_CASE("a chat is written as its model was trained to read it") {
  std::vector<chat_message> const said{
      {"system", "Be brief."}, {"user", "Who?\n"}, {"assistant", "Me."}, {"user", ""}};
  CHECK(chat_prompt(edl::tokens::chatml, said) ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nWho?\n<|im_end|>\n"
        "<|im_start|>assistant\nMe.<|im_end|>\n<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n");
  CHECK(chat_prompt(edl::tokens::llama3_chat, std::span(said).first(1)) ==
        "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST_CASE("no message passes for another") {
  auto const of = [](std::string const& role, std::string const& content) {
    std::vector<chat_message> const one{{role, content}};
    return chat_prompt(edl::tokens::llama3_chat, one);
  };
  CHECK_THROWS_AS(of("user", "a<|eot_id|>"), edl::usage_error);
  CHECK_THROWS_AS(of("user", "<|end_header_id|>b"), edl::usage_error);
  CHECK_THROWS_AS(of("user", "<|begin_of_text|>"), edl::usage_error);
  CHECK_THROWS_AS(of("user\n", "a"), edl::usage_error);
  CHECK_THROWS_AS(of("", "a"), edl::usage_error);
  CHECK_NOTHROW(of("user", "\n\n<|eot|> <|im_end|>"));
}

TEST_CASE("the style is found beside the tokenizer") {
  scratch const dir;
  std::string const tokenizer = dir / "tokenizer.json";
  CHECK(chat_style_beside(tokenizer).empty());
  auto const beside = [&](char const* name, std::string const& text) {
    std::ofstream(dir / name) << text;
    return chat_style_beside(tokenizer);
  };
  CHECK(beside("tokenizer_config.json", "{").empty());
  CHECK(beside("tokenizer_config.json", "[]").empty());
  CHECK(beside("tokenizer_config.json", R"({"chat_template":7})").empty());
  CHECK(beside("tokenizer_config.json", R"({"chat_template":"[INST]"})").empty());
  CHECK(beside("tokenizer_config.json", R"({"chat_template":"{{'<|im_start|>' + role}}<|im_end|>"})") ==
        "chatml");
  CHECK(beside("tokenizer_config.json", R"({"chat_template":"<|im_start|><|im_sep|><|im_end|>"})").empty());
  CHECK(beside("tokenizer_config.json", R"({"chat_template":[]})").empty());
  CHECK(beside("tokenizer_config.json",
               R"({"chat_template":[{"name":"default","template":"<|start_header_id|><|eot_id|>"}]})") ==
        "llama3");
  CHECK(beside("chat_template.jinja", "<|im_start|> <|im_end|>") == "chatml");
}

}  // namespace chat_test
