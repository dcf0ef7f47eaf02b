// SPDX-License-Identifier: Apache-2.0
#include "edl/job/serve/text_service.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <edl/edl.hpp>
#include <mutex>
#include <nlohmann/json.hpp>

#include "app/job.hpp"
#include "base/http/client.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "eventually.hpp"

namespace text_service_test {

namespace nn = edl::nn;
using job::has, job::scratch;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

struct alphabet {
  static constexpr int length = 40, bytes = 256;
  static constexpr auto network =
      nn::sequential(nn::ids{.count = length}, nn::embedding{.vocabulary = bytes, .width = bytes},
                     nn::dense{.units = bytes, .each_place = true});
  static constexpr nn::sequence_cross_entropy loss{};
  static void feed(edl::example const&, edl::sample<alphabet>& into, edl::mode) { into.features.fill(0); }
};

/// After each byte comes the one that is `step` above it.
void write_model(std::string const& path, int step) {
  auto const layout = edl::model<alphabet::network, edl::cpu>::layout();
  std::vector<float> values(layout.size());
  for (auto const& v : layout.variables)
    for (std::size_t i = 0; v.dims.rank == 2 && i < 256; ++i)
      values[v.offset + i * 256 +
             (v.name.find("embedding") == v.name.npos ? (i + std::size_t(step)) % 256 : i)] = 10;
  edl::checkpoint::export_model(path, layout, values, {}, 1, {});
}

struct fixture {
  explicit fixture(edl::serve::text_engine::options o = {.max_tokens = 16'000'000}, bool there = true)
      : model(there ? std::make_shared<std::string const>(first()) : nullptr),
        engine(node,
               {.now = [this]() -> std::shared_ptr<void const> { return now(); },
                .open =
                    [this, o] {
                      ++opened;
                      return std::make_unique<edl::generation_session>(
                          program, *now(), edl::generator_options{.sequences = o.sequences});
                    }},
               o, quiet),
        texts(node, "m", engine,
              edl::tokens::chat_style{.before_role = "<", .before_content = ">", .end = "|"}),
        server(node, {.bounds = {.body = 4 << 20}, .log = quiet}, texts.routes()) {}
  ~fixture() { server.close(); }

  std::shared_ptr<std::string const> now() {
    std::lock_guard const lock(mutex);
    return model;
  }
  void change(std::string const& path) {
    std::lock_guard const lock(mutex);
    model = std::make_shared<std::string const>(path);
  }
  std::string first() {
    write_model(dir / "one.safetensors", 1);
    return dir / "one.safetensors";
  }

  scratch dir;
  std::atomic<int> opened = 0;
  std::mutex mutex;
  std::shared_ptr<std::string const> model;  // the path is the model; another object is another model
  edl::logger quiet{edl::severity::critical};
  edl::train::program program = edl::author::make_program<alphabet>();
  edl::net::node node{http_client::node_options()};
  edl::serve::text_engine engine;
  edl::serve::text_service texts;
  edl::http::server server;

  std::string ask(std::string const& body, std::string const& path = "/v1/completions") {
    return http_client::ask(server.port(), http_client::post(path, body));
  }
  std::string chat(std::string const& body) { return ask(body, "/v1/chat/completions"); }
  json choices(std::string const& body) {
    std::string const said = ask(body);
    CAPTURE(said);
    REQUIRE(has(said, "HTTP/1.1 200 OK"));
    return json::parse(said.substr(said.find("\r\n\r\n") + 4)).at("choices");
  }
};

}  // namespace

TEST_CASE("a prompt is completed in the form of other servers") {
  fixture f;
  std::string const said = f.ask(R"({"model":"m","prompt":"abc","max_tokens":4,"temperature":0})");
  CAPTURE(said);
  json const all = json::parse(said.substr(said.find("\r\n\r\n") + 4));
  CHECK(all["object"] == "text_completion");
  CHECK(all["model"] == "m");
  CHECK(all["id"].get<std::string>().starts_with("cmpl-"));
  CHECK(all["choices"] ==
        json::array({{{"text", "defg"}, {"index", 0}, {"logprobs", nullptr}, {"finish_reason", "length"}}}));
  CHECK(all["usage"] == json{{"prompt_tokens", 3}, {"completion_tokens", 4}, {"total_tokens", 7}});

  auto const stopped = f.choices(R"({"prompt":"a","max_tokens":9,"temperature":0,"stop":["x","ef"]})");
  CHECK(stopped[0]["text"] == "bcd");
  CHECK(stopped[0]["finish_reason"] == "stop");

  auto const several =
      f.choices(R"({"prompt":["a","k"],"n":2,"max_tokens":1,"temperature":0,"echo":true,"seed":-3,
                    "best_of":1,"logprobs":null,"user":"x","presence_penalty":0,"top_k":-1,"stop":[]})");
  REQUIRE(several.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(several[i]["index"] == i);
    CHECK(several[i]["text"] == (i < 2 ? "ab" : "kl"));
  }
  CHECK(has(http_client::ask(f.server.port(), http_client::get("/v1/models")), R"("id":"m")"));
}

TEST_CASE("a text comes as events, as it is made") {
  fixture f;
  http_client::connection c(f.server.port());
  c.say(http_client::post("/v1/completions",
                          R"({"prompt":"a","max_tokens":3,"temperature":0,"stream":true,"echo":true,
                              "stream_options":{"include_usage":true}})"));
  CHECK(has(c.until("\r\n\r\n"), "text/event-stream"));
  std::string text;
  json last;
  for (;;) {
    std::string const event = c.until("\n\n");
    auto const at = event.find("data: ");
    REQUIRE(at != event.npos);
    if (has(event, "[DONE]")) break;
    last = json::parse(event.substr(at + 6));
    for (auto const& one : last["choices"]) text += one["text"].get<std::string>();
  }
  CHECK(text == "abcd");
  CHECK(last["usage"]["completion_tokens"] == 3);
}

TEST_CASE("a chat is answered in the form of other servers") {
  fixture f;
  std::string const said = f.chat(R"({"model":"m","messages":[{"role":"user","content":"abc"}],
                                      "max_completion_tokens":3,"temperature":0,"logprobs":false,"tools":[]})");
  CAPTURE(said);
  json const all = json::parse(said.substr(said.find("\r\n\r\n") + 4));
  CHECK(all["object"] == "chat.completion");
  CHECK(all["id"].get<std::string>().starts_with("chatcmpl-"));
  CHECK(all["choices"] == json::array({{{"message", {{"role", "assistant"}, {"content", "?@A"}}},
                                        {"index", 0},
                                        {"logprobs", nullptr},
                                        {"finish_reason", "length"}}}));
  CHECK(all["usage"]["prompt_tokens"] == std::string("<user>abc|<assistant>").size());
  // Without a bound it ends with the style's end.
  CHECK(has(f.chat(R"({"messages":[{"role":"user","content":"a"}],"temperature":0})"), "z{\""));

  http_client::connection c(f.server.port());
  c.say(http_client::post("/v1/chat/completions",
                          R"({"messages":[{"role":"system","content":[{"type":"text","text":"x"}]},
                                          {"role":"user","content":"y"}],
                              "max_tokens":3,"temperature":0,"stream":true})"));
  c.until("\r\n\r\n");
  std::string text;
  int roles = 0;
  for (;;) {
    std::string const event = c.until("\n\n");
    auto const at = event.find("data: ");
    REQUIRE(at != event.npos);
    if (has(event, "[DONE]")) break;
    json const one = json::parse(event.substr(at + 6));
    CHECK(one["object"] == "chat.completion.chunk");
    json const delta = one["choices"][0]["delta"];
    roles += delta.contains("role");
    text += delta.value("content", "");
  }
  CHECK(text == "?@A");
  CHECK(roles == 1);
}

TEST_CASE("what a chat has wrong is told") {
  fixture f;
  auto const refused = [&](std::string const& messages, std::string const& why) {
    std::string const said = f.chat(R"({"messages":)" + messages + "}");
    CAPTURE(said);
    CHECK(has(said, "HTTP/1.1 400"));
    CHECK(has(said, why));
  };
  refused("null", "no 'messages'");
  refused("[]", "'messages' is not a list of 1 to 4096 messages");
  refused(R"({"role":"user"})", "'messages' is not a list");
  refused(R"([{"role":"user"}])", "'role' and 'content'");
  refused(R"([{"role":7,"content":"a"}])", "'role' and 'content'");
  refused(R"([{"role":"user","content":"a","name":"b"}])", "unknown member 'name' of a message");
  refused(R"([{"role":"user","content":7}])", "'content' is not a text");
  refused(R"([{"role":"user","content":[{"type":"image_url"}]}])", "'content' is not a text");
  refused(R"([{"role":"tool","content":"a"}])", "the role of message 1 is not system, user or assistant");
  refused(R"([{"role":"user","content":"a"},{"role":"user","content":"a|<system>b"}])",
          "message 2 contains '<', with which messages begin or end");
  CHECK(
      has(f.chat(R"({"messages":[{"role":"user","content":"a"}],"prompt":"a"})"), "unknown field 'prompt'"));
  CHECK(
      has(f.chat(R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2,"max_completion_tokens":3})"),
          "'max_completion_tokens' is not a whole number from 1 to 2"));
  edl::serve::text_service none(f.node, "m", f.engine);
  edl::http::server other(f.node, {.log = f.quiet}, none.routes());
  CHECK(has(http_client::ask(other.port(), http_client::post("/v1/chat/completions", R"({"messages":[]})")),
            "start it with --chat_style"));
  other.close();
}

TEST_CASE("what a request has wrong is told, and its field") {
  fixture f;
  auto const refused = [&](std::string const& body, std::string const& code, std::string const& why) {
    std::string const said = f.ask(body);
    CAPTURE(body);
    CAPTURE(said);
    CHECK(has(said, "HTTP/1.1 " + code));
    CHECK(has(said, why));
  };
  refused("", "400", "not JSON");
  refused("[]", "400", "not an object");
  refused(R"({"prompt":"a","prompt":"b"})", "400", "twice");
  refused("{}", "400", "no 'prompt'");
  refused(R"({"prompt":7})", "400", "'prompt' is not a text");
  refused(R"({"prompt":[1,2]})", "400", "'prompt' is not a text");
  refused(R"({"prompt":[]})", "400", "no 'prompt'");
  refused(R"({"prompt":"a","max_tokens":1e400})", "400", "not JSON");
  refused(R"({"prompt":"a","stream_options":5})", "400", "'stream_options'");
  refused(R"({"prompt":")" + std::string((1 << 20) + 1, 'a') + R"("})", "400", "a prompt has 1048577 bytes");
  refused(R"({"prompt":"a","repetition_penalty":1e-40})", "400", "repetition_penalty");
  refused(R"({"prompt":"a","model":"other"})", "404", "this server has 'm'");
  refused(R"({"prompt":"a","max_tokens":0})", "400", "'max_tokens' is not a whole number from 1");
  refused(R"({"prompt":"a","max_tokens":1.5})", "400", "'max_tokens'");
  refused(R"({"prompt":"a","max_tokens":18446744073709551615})", "400", "'max_tokens'");
  refused(R"({"prompt":"a","temperature":"hot"})", "400", "'temperature' is not a number");
  refused(R"({"prompt":"a","temperature":-1})", "400", "temperature=-1");
  refused(R"({"prompt":"a","stream":1})", "400", "'stream' is not true or false");
  refused(R"({"prompt":"a","stop":""})", "400", "'stop' has 0 bytes");
  refused(R"({"prompt":"a","logprobs":2})", "400", "'logprobs' is not supported");
  refused(R"({"prompt":"a","n":200})", "400", "'n'");
  refused(R"({"prompt":["a","b"],"n":128})", "400", "more than a request may ask for");
  refused(R"({"prompt":"a","temprature":1})", "400", "unknown field 'temprature'");
  std::string const long_prompt = R"({"prompt":")" + std::string(41, 'a') + '"';
  refused(long_prompt + "}", "400", "41 tokens, and the model sees at most 40");
  refused(long_prompt + R"(,"stream":true})", "400", "41 tokens");
  CHECK(f.choices(R"({"prompt":"a","max_tokens":1,"temperature":0})")[0]["text"] == "b");
}

TEST_CASE("clients that leave stop their texts") {
  fixture f({.sequences = 1, .max_tokens = 16'000'000});
  for (int i = 0; i < 20; ++i) {
    http_client::connection c(f.server.port());
    bool const streams = i % 4 < 2;
    c.say(http_client::post("/v1/completions", streams
                                                   ? R"({"prompt":"a","max_tokens":16000000,"stream":true})"
                                                   : R"({"prompt":"a","max_tokens":16000000})"));
    if (i % 4 == 0) c.until("data: ");
  }
  CHECK(f.choices(R"({"prompt":"a","max_tokens":2,"temperature":0})")[0]["text"] == "bc");
}

TEST_CASE("a full queue, a late text and a model that is not there are told") {
  fixture f({.sequences = 1, .max_queue = 1, .max_tokens = 16'000'000});
  http_client::connection first(f.server.port());
  first.say(http_client::post("/v1/completions", R"({"prompt":"a","max_tokens":16000000,"stream":true})"));
  first.until("data: ");
  {
    http_client::connection second(f.server.port());
    second.say(http_client::post("/v1/completions", R"({"prompt":"a","max_tokens":1})"));
    REQUIRE(eventually([&] { return f.engine.waiting() == 1; }));
    CHECK(has(f.ask(R"({"prompt":"a"})"), "HTTP/1.1 429"));
  }
  CHECK(eventually([&] { return f.engine.waiting() == 0; }));  // who has left waits no more

  fixture late({.sequences = 1, .timeout = 50ms, .max_tokens = 16'000'000});
  http_client::connection busy(late.server.port());
  busy.say(http_client::post("/v1/completions", R"({"prompt":"a","max_tokens":16000000,"stream":true})"));
  busy.until("data: ");
  CHECK(has(late.ask(R"({"prompt":"a"})"), "HTTP/1.1 503"));

  fixture none({}, false);
  CHECK(has(none.ask(R"({"prompt":"a"})"), "there is no model yet"));
  none.change(none.first());
  REQUIRE(eventually([&] { return has(none.ask(R"({"prompt":"a","temperature":0})"), "HTTP/1.1 200"); }));
}

TEST_CASE("texts begin with a newer model, and go on with their own") {
  fixture f;
  http_client::connection old(f.server.port());
  old.say(http_client::post("/v1/completions",
                            R"({"prompt":"a","max_tokens":16000000,"temperature":0,"stream":true})"));
  old.until("data: ");
  auto const text = [&] {
    return f.choices(R"({"prompt":"a","max_tokens":3,"temperature":0})")[0]["text"].get<std::string>();
  };
  CHECK(text() == "bcd");
  f.change(f.dir / "missing.safetensors");
  REQUIRE(eventually([&] { return f.opened == 2; }));
  CHECK(text() == "bcd");                     // the one before stays
  write_model(f.dir / "one.safetensors", 2);  // of the same path
  f.change(f.dir / "one.safetensors");
  CHECK(eventually([&] { return text() == "ceg"; }));
  old.until("\n\n");
  CHECK(has(old.until("\n\n"), "data: "));
}

TEST_CASE("a newer model is opened while nobody asks for a text") {
  fixture f;
  write_model(f.dir / "two.safetensors", 2);
  f.change(f.dir / "two.safetensors");
  REQUIRE(eventually([&] { return f.opened == 2; }));
  CHECK(eventually(
      [&] { return f.choices(R"({"prompt":"a","max_tokens":1,"temperature":0})")[0]["text"] == "c"; }));
}

TEST_CASE("a server that drains waits for the end of streams") {
  fixture f;
  http_client::connection c(f.server.port());
  c.say(http_client::post("/v1/completions",
                          R"({"prompt":"a","max_tokens":2000,"temperature":0,"stream":true})"));
  c.until("data: ");
  std::thread reads([&] { CHECK(has(c.rest(), "[DONE]")); });
  CHECK(f.server.drain(60s));
  reads.join();
}

}  // namespace text_service_test
