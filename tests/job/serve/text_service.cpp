// SPDX-License-Identifier: Apache-2.0
#include "edl/job/serve/text_service.hpp"

#include <doctest/doctest.h>

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
  static constexpr int length = 8, bytes = 256;
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
  explicit fixture(edl::serve::text_engine::options o = {})
      : engine(node,
               {.path =
                    [this] {
                      std::lock_guard const lock(mutex);
                      return path;
                    },
                .open =
                    [this, o](std::string const& of) {
                      return std::make_unique<edl::generation_session>(
                          program, of, edl::generator_options{.sequences = o.sequences});
                    }},
               o),
        texts("m", engine),
        server(node, {.log = quiet}, texts.routes()) {}
  ~fixture() { server.close(); }

  scratch dir;
  std::mutex mutex;
  std::string path = [this] {
    write_model(dir / "one.safetensors", 1);
    return dir / "one.safetensors";
  }();
  edl::logger quiet{edl::severity::critical};
  edl::train::program program = edl::author::make_program<alphabet>();
  edl::net::node node{http_client::node_options()};
  edl::serve::text_engine engine;
  edl::serve::text_service texts;
  edl::http::server server;

  std::string ask(std::string const& body) {
    return http_client::ask(server.port(), http_client::post("/v1/completions", body));
  }
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
                    "best_of":1,"logprobs":null,"user":"x","presence_penalty":0,"top_k":-1})");
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
                          R"({"prompt":"a","max_tokens":3,"temperature":0,"stream":true,"echo":true})"));
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
  refused(R"({"prompt":[]})", "400", "'prompt'");
  refused(R"({"prompt":"a","model":"other"})", "404", "this server has 'm'");
  refused(R"({"prompt":"a","max_tokens":0})", "400", "'max_tokens' is not a whole number from 1");
  refused(R"({"prompt":"a","max_tokens":1.5})", "400", "'max_tokens'");
  refused(R"({"prompt":"a","max_tokens":18446744073709551615})", "400", "'max_tokens'");
  refused(R"({"prompt":"a","temperature":"hot"})", "400", "'temperature' is not a number");
  refused(R"({"prompt":"a","temperature":-1})", "400", "temperature=-1");
  refused(R"({"prompt":"a","stream":1})", "400", "'stream' is not true or false");
  refused(R"({"prompt":"a","stop":""})", "400", "`stop` is empty");
  refused(R"({"prompt":"a","logprobs":2})", "400", "'logprobs' is not supported");
  refused(R"({"prompt":"a","n":200})", "400", "'n'");
  refused(R"({"prompt":["a","b"],"n":128})", "400", "more than a request may ask for");
  refused(R"({"prompt":"a","temprature":1})", "400", "unknown field 'temprature'");
  refused(R"({"prompt":"123456789"})", "400", "9 tokens, and the model sees at most 8");
  refused(R"({"prompt":"123456789","stream":true})", "400", "9 tokens");
  CHECK(f.choices(R"({"prompt":"a","max_tokens":1,"temperature":0})")[0]["text"] == "b");
}

TEST_CASE("clients that leave stop their texts") {
  fixture f({.sequences = 1});
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

TEST_CASE("a full queue, and a model that is not there, are told") {
  fixture f({.sequences = 1, .max_queue = 1});
  http_client::connection first(f.server.port());
  first.say(http_client::post("/v1/completions", R"({"prompt":"a","max_tokens":16000000,"stream":true})"));
  first.until("data: ");
  http_client::connection second(f.server.port());
  second.say(http_client::post("/v1/completions", R"({"prompt":"a","max_tokens":1})"));
  REQUIRE(eventually([&] { return f.engine.waiting() == 1; }));
  CHECK(has(f.ask(R"({"prompt":"a"})"), "HTTP/1.1 429"));

  fixture none;
  {
    std::lock_guard const lock(none.mutex);
    none.path.clear();
  }
  CHECK(has(none.ask(R"({"prompt":"a"})"), "HTTP/1.1 503"));
}

TEST_CASE("a text begins with the newest model, and goes on with its own") {
  fixture f;
  http_client::connection old(f.server.port());
  old.say(http_client::post("/v1/completions",
                            R"({"prompt":"a","max_tokens":16000000,"temperature":0,"stream":true})"));
  old.until("data: ");
  write_model(f.dir / "two.safetensors", 2);
  {
    std::lock_guard const lock(f.mutex);
    f.path = f.dir / "two.safetensors";
  }
  CHECK(f.choices(R"({"prompt":"a","max_tokens":3,"temperature":0})")[0]["text"] == "ceg");
  {
    std::lock_guard const lock(f.mutex);
    f.path = f.dir / "missing.safetensors";
  }
  CHECK(has(f.ask(R"({"prompt":"a"})"), "HTTP/1.1 500"));
  std::string next = old.until("\n\n");
  next = old.until("\n\n");
  CHECK(has(next, "data: "));
}

}  // namespace text_service_test
