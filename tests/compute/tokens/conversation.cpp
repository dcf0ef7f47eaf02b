// SPDX-License-Identifier: Apache-2.0
#include "edl/compute/tokens/conversation.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "compute/tokens/support.hpp"
#include "edl/core/error.hpp"

namespace conversation_test {

using namespace edl::tokens;
using tokens_test::hello, tokens_test::made;

namespace {

/// Bytes are tokens, and so is the end.
constexpr chat_style style{
    .begin = "^", .before_role = "[", .before_content = "]", .end = "<|end|>", .behind = "."};

conversation read(std::string const& line, std::size_t most = 1000, chat_style const& how = style) {
  static tokenizer const by = made(hello());
  encoder of(by);
  return read_conversation(line, of, how, most);
}

std::string text_of(std::vector<std::int64_t> const& ids) {
  static tokenizer const by = made(hello());
  std::string text;
  for (std::int64_t const id : ids) text += id < 0 ? "_" : by.decode(std::vector{token_id(id)});
  return text;
}

}  // namespace

TEST_CASE("labels are what follows, in answers alone") {
  auto const plain = read(R"({"prompt":"ab","completion":"cd","id":7})");
  CHECK(text_of(plain.tokens) == "abcd");
  CHECK(text_of(plain.labels) == "_cd<|end|>");
  auto const chat = read(R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"yz"},)"
                         R"({"role":"user","content":"w"},{"role":"assistant","content":"v"}]})");
  CHECK(text_of(chat.tokens) == "^[user]x<|end|>.[assistant]yz<|end|>.[user]w<|end|>.[assistant]v<|end|>");
  CHECK(text_of(chat.labels).find("yz<|end|>_______") == 20);
  CHECK(text_of(chat.labels).ends_with("_v<|end|>_"));
  CHECK(chat.tokens.size() == chat.labels.size());
  // What is taken together is one token, and pieces are taken apart.
  CHECK(text_of(read(R"({"prompt":"he","completion":"llo"})").labels) ==
        "ll"
        "o<|end|>");
}

TEST_CASE("what is too long is cut, and may have no answer then") {
  std::string const line = R"({"prompt":"abc","completion":"d"})";
  CHECK(read(line, 3).answers());
  CHECK_FALSE(read(line, 2).answers());
  CHECK(read(line, 2).tokens.size() == 2);
  CHECK_FALSE(read(R"({"messages":[{"role":"user","content":"x"}]})").answers());
}

TEST_CASE("another line is an error that says what it lacks") {
  auto const complaint = [](std::string const& line, chat_style const& how = style) {
    try {
      read(line, 9, how);
    } catch (edl::data_error const& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  CHECK(complaint("{").starts_with("the line is not JSON"));
  CHECK(complaint("[]") == "the line has no 'messages', and has no text 'prompt'");
  CHECK(complaint(R"({"prompt":"a"})") == "the line has no text 'completion'");
  CHECK(complaint(R"({"messages":[]})") == "'messages' is not a list with one or more messages");
  CHECK(complaint(R"({"messages":[{"role":"user","content":"a"},{"role":"user","content":3}]})") ==
        "message 2 has no text 'content'");
  CHECK(complaint(R"({"messages":["a"]})") == "message 1 has no text 'role'");
  CHECK(complaint(R"({"messages":[]})", {.end = "<|end|>"}) == "'messages' need the style of a chat");
}

}  // namespace conversation_test
