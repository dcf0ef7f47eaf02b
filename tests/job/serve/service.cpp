// SPDX-License-Identifier: Apache-2.0
#include "edl/job/serve/service.hpp"

#include <fmt/format.h>

#include <edl/edl.hpp>
#include <filesystem>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <set>
#include <thread>

#include "app/job.hpp"
#include "base/http/client.hpp"
#include "edl/base/checkpoint/job_files.hpp"
#include "edl/base/checkpoint/model_file.hpp"
#include "eventually.hpp"
#include "openmetrics.hpp"

namespace serve_service_test {

namespace nn = edl::nn;
using namespace std::chrono_literals;
using job::has, job::scratch;

struct pair {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<pair>& into, edl::mode m) {
    into.features = record.floats("x");
    if (m != edl::mode::prediction) into.label = record.integer("label");
  }
};

/// Its first output is the sum of its inputs, plus `more`.
void write_model(std::string const& path, std::uint64_t version, float more) {
  auto const layout = edl::model<pair::network, edl::cpu>::layout();
  std::vector<float> values(layout.size());
  for (auto const& v : layout.variables)
    if (v.dims.rank == 2)
      values[v.offset] = values[v.offset + (v.dims.sizes[0] == 2 ? 3 : 1)] = 1;
    else
      values[v.offset] = more;
  edl::checkpoint::export_model(path + ".new", layout, values, {}, version, {});
  static int written = 0;  // hours, as files that are written at once would be of one time
  std::filesystem::last_write_time(
      path + ".new", std::filesystem::file_time_type::clock::now() + std::chrono::hours(++written));
  std::filesystem::rename(path + ".new", path);
}

/// A checkpoint in `dir / "all"`, or a damaged one.
void put_checkpoint(edl::train::program const& program, scratch const& dir, std::uint64_t version,
                    bool whole) {
  std::filesystem::create_directory(dir / "all");
  edl::checkpoint::job_files const files{.layout = program.layout, .directory = dir / "made"};
  std::vector<float> const values(program.layout.size());
  std::vector<edl::checkpoint::segment> const segments{{{0, values.size()}, version, {}}};
  auto one = files.begin(version);
  one.contents.files = {edl::checkpoint::write_part(
      one.path, program.layout,
      {.version = version, .elements = {0, values.size()}, .variables = values, .segments = segments})};
  files.commit(one);
  if (!whole) std::filesystem::resize_file(one.path + "/" + one.contents.files[0].name, 100);
  std::filesystem::rename(one.path, edl::checkpoint::checkpoint_path(dir / "all", version));
}

struct fixture {
  explicit fixture(edl::serve::batcher::options o = {}, edl::serve::service::runner reader = {}, int keep = 1)
      : batching(o),
        keep(keep),
        service(node, "m", model, o, std::move(reader)),
        server(node, {.log = quiet}, service.routes()) {}
  ~fixture() { server.close(); }

  scratch dir;
  std::string path = [this] {
    write_model(dir / "model.safetensors", 5, 0);
    return dir / "model.safetensors";
  }();
  edl::logger quiet{edl::severity::critical};
  edl::train::program program = edl::author::make_program<pair>();
  std::binary_semaphore changed{0};
  edl::net::node node{http_client::node_options()};
  edl::serve::batcher::options batching;
  int keep;
  edl::serve::followed_model model{
      program, {.path = path, .max_batch = 8, .interval = 2ms, .keep = keep}, quiet, [this] {
        changed.release();
      }};
  edl::serve::service service;
  edl::http::server server;

  void take_over(std::uint64_t version, float more) {
    write_model(path, version, more);
    changed.acquire();
  }
  std::string ask(std::string const& request) { return http_client::ask(server.port(), request); }
  std::string predict(std::string const& body) {
    return ask(http_client::post("/v1/models/m:predict", body));
  }
};

TEST_CASE("both protocols answer with the model, its version and its lag") {
  fixture f;
  std::string const said = f.predict(R"({"instances":[[1,2],[10,20]]})");
  CHECK(has(said, "HTTP/1.1 200 OK"));
  CHECK(has(said, "Edl-Model-Version: 5\r\n"));
  CHECK(has(said, "Edl-Model-Lag-Seconds: 0.000\r\n"));
  CHECK(said.ends_with("{\"predictions\":[[3,0,0],[30,0,0]]}"));
  std::string const body = R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[4,5]}]})";
  for (char const* at : {"/v2/models/m/infer", "/v2/models/m/versions/5/infer"})
    CHECK(has(f.ask(http_client::post(at, body)),
              R"("outputs":[{"name":"output","datatype":"FP32","shape":[1,3],"data":[9,0,0]},)"
              R"({"name":"output_probabilities","datatype":"FP32","shape":[1,3],"data":[0.9)"));
  CHECK(has(f.ask(http_client::post("/v2/models/m/versions/4/infer", body)), "404"));
  CHECK(
      has(f.ask(http_client::post("/v2/models/other/infer", body)), "no model 'other': this server has 'm'"));
  CHECK(has(f.ask(http_client::get("/v2/models/m")),
            R"("inputs":[{"datatype":"FP32","name":"x","shape":[-1,2]}])"));
  for (char const* at : {"/v1/models/m", "/v1/models/m/versions/5"})
    CHECK(has(f.ask(http_client::get(at)), R"("state":"AVAILABLE")"));
  CHECK(has(f.ask(http_client::get("/v1/models/m/versions/4")), "404"));
  for (char const* at : {"/v1/models/m/metadata", "/v1/models/m/versions/5/metadata"})
    CHECK(has(f.ask(http_client::get(at)), R"("serving_default":{"inputs":{"x":)"));
  for (char const* at : {"/v1/models/m/versions/4/metadata", "/v1/models/other/metadata"})
    CHECK(has(f.ask(http_client::get(at)), "404"));
  for (char const* at : {"/v1/models/m/labels/stable", "/v1/models/m/labels/stable/metadata"})
    CHECK(has(f.ask(http_client::get(at)), "no label 'stable'"));
  std::string const rows = R"({"signature_name":"serving_default","instances":[[1,2]]})";
  CHECK(has(f.ask(http_client::post("/v1/models/m/versions/5:predict", rows)), "[[3,0,0]]"));
  CHECK(has(f.ask(http_client::post("/v1/models/m/versions/4:predict", rows)), "404"));
  CHECK(has(f.ask(http_client::post("/v1/models/m:classify", rows)), "404"));
  CHECK(has(f.ask("POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\n"
                  "Connection: close\r\nContent-Length: 0\r\n\r\n"),
            "415 Unsupported Media Type"));
  auto const about = f.ask(http_client::get("/v2"));
  CHECK(nlohmann::json::parse(about.substr(about.find("\r\n\r\n") + 4))["extensions"] ==
        nlohmann::json::array({"binary_tensor_data"}));
  CHECK(has(f.ask(http_client::get("/v2/health/live")), "200"));
  CHECK(has(f.ask(http_client::get("/v2/health/ready")), "200"));
  CHECK(f.ask(http_client::get("/v2/models/m/ready")).ends_with(R"({"name":"m","ready":true})"));
  CHECK(has(f.ask(http_client::post("/v1/models/m/labels/stable:predict", rows)), "no label"));
  f.service.drain();
  CHECK(has(f.ask(http_client::get("/v2/health/live")), "200"));
  CHECK(has(f.ask(http_client::get("/v2/health/ready")), "503"));
}

TEST_CASE("a method that is not taken is told those that are, and counts where predictions are asked for") {
  fixture f;
  auto const ask = [&](std::string const& method, std::string const& path) {
    return f.ask(method + " " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
  };
  for (std::string const path :
       {"/v1/models/m:predict", "/v1/models/m/versions/5:predict", "/v2/models/m/infer"})
    for (char const* method : {"GET", "PUT", "DELETE"}) {
      std::string const said = ask(method, path);
      CHECK(has(said, "405"));
      CHECK(has(said, "Allow: POST\r\n"));
    }
  for (char const* path :
       {"/v1/models/m", "/v1/models/m/versions/5", "/v2/models/m", "/v1/models/m/metadata"})
    for (char const* method : {"POST", "DELETE"}) {
      std::string const said = ask(method, path);
      CHECK(has(said, "405"));
      CHECK(has(said, "Allow: GET, HEAD\r\n"));
    }
  for (char const* path : {"/v1/models/x", "/v1/models/x:predict", "/v1/models/m/versions/4", "/v2/models/x",
                           "/v1/models/m/versions/4:predict", "/v2/models/x/infer", "/v2/models/x/ready",
                           "/v1/models/m:classify", "/v1/models/m/labels/stable"})
    for (char const* method : {"POST", "GET", "PUT"}) CHECK(has(ask(method, path), "404 Not Found"));
  CHECK(has(ask("POST", "/v1/models/m/versions/5:classify"), "only NAME:predict is supported"));
  auto const page = f.ask(http_client::get("/metrics"));
  auto const told = openmetrics::parse(page.substr(page.find("\r\n\r\n") + 4)).samples;
  CHECK(told.at("edl_serve_requests_total{code=\"405\"}") == 9);
  auto const accepting = [&](std::string const& what) {
    return f.ask("GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAccept: " + what + "\r\n\r\n");
  };
  CHECK(has(accepting("text/plain;version=0.0.4;q=0.5"), "Content-Type: text/plain; version=0.0.4"));
  CHECK(has(accepting("text/plain"), "# TYPE edl_serve_requests_total counter\n"));
  CHECK(has(accepting("text/plain;q=0.2,application/openmetrics-text;version=1.0.0"), "# EOF"));
  CHECK(told.at("edl_serve_requests_total{code=\"404\"}") == 9);
}

TEST_CASE("a record that the model cannot use is the fault of its own request") {
  fixture f;
  std::vector<std::future<std::string>> good;
  for (int i = 0; i < 8; ++i)
    good.push_back(std::async(std::launch::async, [&] { return f.predict(R"({"instances":[[1,1]]})"); }));
  CHECK(has(f.predict(R"({"instances":[[1,2,3]]})"), "400 Bad Request"));
  for (auto& g : good) CHECK(g.get().ends_with("[[2,0,0]]}"));
  CHECK(has(f.predict(R"({"instances":[]})"), "400"));
}

/// A feed of texts, which zeros and empty texts tell little of.
struct dated {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static void feed(edl::example const& record, edl::sample<dated>& into, edl::mode) {
    into.features(0) = std::stof(std::string(record.bytes("day")));
    into.features(1) = record.floating("price");
  }
};

struct dated_service {
  ~dated_service() { server.close(); }
  std::string predict(std::string const& body) {
    return http_client::ask(server.port(), http_client::post("/v1/models/m:predict", body));
  }

  scratch dir;
  std::string path = dir / "model.safetensors";
  edl::logger quiet{edl::severity::critical};
  edl::train::program program = edl::author::make_program<dated>();
  edl::net::node node{http_client::node_options()};
  edl::serve::batcher::options batching{};
  bool const written = [this] {
    write_model(path, 5, 0);
    return true;
  }();
  edl::serve::followed_model model{program, {.path = path, .max_batch = 8, .interval = 2ms}, quiet};
  edl::serve::service service{node, "m", model, batching};
  edl::http::server server{node, {.log = quiet}, service.routes()};
};

TEST_CASE(
    "a feed that zeros and empty texts tell nothing of is served, and a bad text is one client's error") {
  dated_service f;
  CHECK(f.predict(R"({"instances":[{"day":"2","price":3.5}]})").ends_with("[[5.5,0,0]]}"));
  std::vector<std::future<std::string>> good;
  for (int i = 0; i < 8; ++i)
    good.push_back(std::async(std::launch::async,
                              [&] { return f.predict(R"({"instances":[{"day":"1","price":1}]})"); }));
  std::string const said = f.predict(R"({"instances":[{"day":"soon","price":1}]})");
  CHECK(has(said, "400 Bad Request"));
  CHECK(has(said, "`feed` failed: stof"));
  for (auto& g : good) CHECK(g.get().ends_with("[[2,0,0]]}"));
  CHECK(has(f.predict(R"({"instances":[{"day":"1","price":1},{"day":"1","price":null}]})"),
            "record 1: the record has no one number as feature 'price'"));
}

/// Its records may take long: one below 0 for some milliseconds, 7 until it is let go.
struct stalling {
  static constexpr auto network = nn::sequential(nn::features{.count = 2}, nn::dense{.units = 3});
  static constexpr nn::softmax_cross_entropy loss{};
  static inline std::binary_semaphore held{0}, go_on{0};
  static void feed(edl::example const& record, edl::sample<stalling>& into, edl::mode) {
    into.features = record.floats("x");
    if (record.floats("x")(0) < 0) std::this_thread::sleep_for(10ms);
    if (record.floats("x")(0) != 7) return;
    held.release();
    go_on.acquire();
  }
};

TEST_CASE("after a long batch the next one holds up nobody who asks for something else") {
  scratch const dir;
  edl::logger const quiet{edl::severity::critical};
  write_model(dir / "model.safetensors", 5, 0);
  auto const program = edl::author::make_program<stalling>();
  edl::net::node node{http_client::node_options()};
  edl::serve::followed_model model(program, {.path = dir / "model.safetensors", .max_batch = 8}, quiet);
  edl::serve::service service(node, "m", model, {.quick = 5ms});
  edl::http::server server(node, {.log = quiet}, service.routes());
  auto const predict = [&](std::string const& x) {
    return http_client::ask(server.port(),
                            http_client::post("/v1/models/m:predict", "{\"instances\":[[" + x + ",1]]}"));
  };
  for (char const* const x : {"1", "2", "-1", "3"}) CHECK(has(predict(x), "200 OK"));
  auto const slow = std::async(std::launch::async, [&] { return predict("7"); });
  stalling::held.acquire();
  auto live = std::async(std::launch::async, [&] {
    return http_client::ask(server.port(), http_client::get("/v2/health/live"));
  });
  CHECK(eventually([&] { return live.wait_for(0s) == std::future_status::ready; }));
  stalling::go_on.release();
  CHECK(has(live.get(), "200 OK"));
  server.close();
}

TEST_CASE("requests that are together more than a batch takes are computed one batch after the other") {
  scratch const dir;
  edl::logger const quiet{edl::severity::critical};
  write_model(dir / "model.safetensors", 5, 0);
  auto const program = edl::author::make_program<stalling>();
  edl::net::node node{http_client::node_options()};
  edl::serve::followed_model model(program, {.path = dir / "model.safetensors", .max_batch = 4}, quiet);
  edl::serve::service service(node, "m", model, {.max_batch = 4, .max_wait = 1us});
  edl::http::server server(node, {.log = quiet}, service.routes());
  auto const ask = [&](std::string const& what) { return http_client::ask(server.port(), what); };
  auto const predict = [&](std::string const& records) {
    return std::async(std::launch::async, [&, records] {
      return ask(http_client::post("/v1/models/m:predict", "{\"instances\":[" + records + "]}"));
    });
  };
  auto first = predict("[7,1]");
  stalling::held.acquire();
  std::vector<std::future<std::string>> others;
  for (int i = 0; i < 3; ++i) others.push_back(predict("[1,1],[2,1],[3,1]"));
  CHECK(eventually([&] { return has(ask(http_client::get("/metrics")), "edl_serve_waiting_records 9"); }));
  stalling::go_on.release();
  CHECK(has(first.get(), "200 OK"));
  for (auto& o : others) CHECK(has(o.get(), "200 OK"));
  CHECK(has(ask(http_client::get("/metrics")), "edl_serve_batches_total 4"));
  server.close();
}

TEST_CASE("where there is no model yet it is waited for, and what for is said") {
  scratch const dir;
  edl::logger const quiet{edl::severity::critical};
  auto const program = edl::author::make_program<pair>();
  edl::net::node node{http_client::node_options()};
  std::binary_semaphore changed{0};
  CHECK_THROWS_AS(edl::serve::followed_model(program, {.path = dir / "all"}, quiet), edl::error);
  edl::serve::followed_model model(program, {.path = dir / "all", .interval = 2ms, .wait = true}, quiet,
                                   [&] { changed.release(); });
  edl::serve::service service(node, "m", model, {});
  edl::http::server server(node, {.log = quiet}, service.routes());
  auto const get = [&](std::string const& path) {
    return http_client::ask(server.port(), http_client::get(path));
  };
  CHECK(model.now() == nullptr);
  CHECK(has(get("/v2/health/live"), "200 OK"));
  CHECK(has(get("/metrics"), "200 OK"));
  for (std::string const path : {"/v2/health/ready", "/v2/models/m/ready", "/v2/models/m", "/v1/models/m"}) {
    CAPTURE(path);
    CHECK(has(get(path), "503 Service Unavailable"));
    CHECK(has(get(path), "no model in " + (dir / "all") + " yet"));
  }
  CHECK(has(http_client::ask(server.port(), http_client::post("/v1/models/m:predict", "{}")), "503"));
  put_checkpoint(program, dir, 3, true);
  changed.acquire();
  CHECK(has(get("/v2/health/ready"), "200 OK"));
  CHECK(model.now()->version() == 3);
  put_checkpoint(program, dir, 4, true);  // and is followed from then on
  changed.acquire();
  CHECK(model.now()->version() == 4);
  server.close();
}

TEST_CASE("another model of the same time and size takes over") {
  fixture f;
  auto const time = std::filesystem::last_write_time(f.path);
  write_model(f.path + ".other", 6, 100);
  std::filesystem::last_write_time(f.path + ".other", time);
  REQUIRE(std::filesystem::file_size(f.path) == std::filesystem::file_size(f.path + ".other"));
  std::filesystem::rename(f.path + ".other", f.path);
  f.changed.acquire();
  CHECK(f.model.now()->version() == 6);
}

TEST_CASE("others are answered while much JSON is read") {
  std::string pad(100'000, ' ');
  for (auto const& [at, body] :
       {std::pair{"/v1/models/m:predict", R"({"instances":[[1,2]]})" + pad},
        {"/v2/models/m/infer",
         R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})" + pad}}) {
    CAPTURE(at);
    std::promise<std::function<void()>> handed;
    auto work = handed.get_future();
    fixture f({}, [&](std::function<void()> read) { handed.set_value(std::move(read)); });
    auto large = std::async(std::launch::async, [&, to = http_client::post(at, body)] { return f.ask(to); });
    REQUIRE(eventually([&] { return work.wait_for(0s) == std::future_status::ready; }));
    CHECK(f.predict(R"({"instances":[[4,5]]})").ends_with("[[9,0,0]]}"));
    CHECK(large.wait_for(0s) == std::future_status::timeout);
    work.get()();
    CHECK(has(large.get(), "[3,0,0]"));
  }
}

TEST_CASE("much JSON that is wrong, or none, is refused as little is") {
  fixture f;
  std::string const pad(100'000, ' ');
  CHECK(has(f.predict(R"({"instances":[[1,2,3]]})" + pad), "400 Bad Request"));
  CHECK(has(f.predict(pad + "{"), "the body is not JSON"));
  CHECK(has(f.predict(R"({"instances":[[4,5]]})" + std::string(1, '\0') + "{"),
            "at its byte 22); if binary tensors follow"));
  CHECK(has(f.ask(http_client::post("/v2/models/m/infer", pad)), "the body is not JSON"));
  CHECK(f.predict(R"({"instances":[[4,5]]})" + pad).ends_with("[[9,0,0]]}"));
}

TEST_CASE("more than may wait is told to come later") {
  fixture f({.max_batch = 4, .max_queue = 1});
  std::string const said = f.predict(R"({"instances":[[1,1],[2,2]]})");
  CHECK(has(said, "429 Too Many Requests"));
  CHECK(has(said, "Retry-After: 1"));
  CHECK(has(f.predict(R"({"instances":[[1,1]]})"), "200 OK"));
}

TEST_CASE("what has waited for too long is told so, and much JSON is then not read") {
  fixture f({.timeout = -1ms});
  CHECK(has(f.predict(R"({"instances":[[1,1]]})"), "503 Service Unavailable"));
  std::string const said = f.predict(std::string(100'000, '['));
  CHECK(has(said, "503 Service Unavailable"));
  CHECK(has(said, "Retry-After: 1"));
}

TEST_CASE("much JSON that waits to be read is bounded") {
  std::mutex mutex;
  std::vector<std::function<void()>> held;
  fixture f({}, [&](std::function<void()> read) {
    std::lock_guard const lock(mutex);
    held.push_back(std::move(read));
  });
  auto const waiting = [&] {
    std::lock_guard const lock(mutex);
    return held.size();
  };
  std::string const body = R"({"instances":[[1,2]]})" + std::string(1'000'000, ' ');
  std::vector<std::future<std::string>> all;
  for (int i = 0; i < 16; ++i) all.push_back(std::async(std::launch::async, [&] { return f.predict(body); }));
  REQUIRE(eventually([&] { return waiting() == 16; }));
  std::string const said = f.predict(body);
  CHECK(has(said, "429 Too Many Requests"));
  CHECK(has(said, "Retry-After: 1"));
  CHECK(has(said, "bytes of JSON are already waiting to be parsed"));
  CHECK(f.predict(R"({"instances":[[4,5]]})").ends_with("[[9,0,0]]}"));
  for (auto const& read : held) read();
  for (auto& one : all) CHECK(one.get().ends_with("[[3,0,0]]}"));
  held.clear();
  auto later = std::async(std::launch::async, [&] { return f.predict(body); });
  REQUIRE(eventually([&] { return waiting() == 1; }));
  held.front()();
  CHECK(later.get().ends_with("[[3,0,0]]}"));
}

TEST_CASE("records wait for others where that is asked for, and no longer") {
  for (auto const wait : {0us, 500us}) {
    fixture f({.max_batch = 4, .max_wait = wait, .quick = 0us});  // on the thread of batches
    std::vector<std::future<std::string>> all;
    for (int i = 0; i < 16; ++i)
      all.push_back(std::async(std::launch::async,
                               [&f, i] { return f.predict(fmt::format(R"({{"instances":[[{},1]]}})", i)); }));
    for (int i = 0; i < 16; ++i)
      CHECK(all[std::size_t(i)].get().ends_with(fmt::format("[[{},0,0]]}}", i + 1)));
  }
}

TEST_CASE("a request for a version is answered by that one, also where another takes over meanwhile") {
  for (int const keep : {1, 2}) {
    std::promise<std::function<void()>> handed;
    auto work = handed.get_future();
    fixture f({}, [&](std::function<void()> read) { handed.set_value(std::move(read)); }, keep);
    if (keep == 2) f.take_over(6, 100);
    std::string const asked = http_client::post("/v1/models/m/versions/5:predict",
                                                R"({"instances":[[1,2]]})" + std::string(100'000, ' '));
    auto held = std::async(std::launch::async, [&] { return f.ask(asked); });
    REQUIRE(eventually([&] { return work.wait_for(0s) == std::future_status::ready; }));
    f.take_over(7, 200);
    CHECK(has(f.ask(http_client::get("/v1/models/m/versions/5")), "404"));
    work.get()();
    std::string const said = held.get();
    CHECK(has(said, "Edl-Model-Version: 5\r\n"));
    CHECK(said.ends_with("[[3,0,0]]}"));
  }
}

TEST_CASE("the newest versions are answered at one time, as many as are kept") {
  fixture f({}, {}, 2);
  auto const first = f.model.now();
  auto const by = [&](std::string const& version) {
    std::string const body = R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})";
    std::string const said = f.ask(http_client::post("/v2/models/m" + version + "/infer", body));
    CHECK(f.ask(http_client::post("/v1/models/m" + version + ":predict", R"({"instances":[[1,2]]})"))
              .substr(0, 12) == said.substr(0, 12));
    return said;
  };
  auto const listed = [&](char const* at) {
    auto const said = f.ask(http_client::get(at));
    return nlohmann::json::parse(said.substr(said.find("\r\n\r\n") + 4));
  };
  f.take_over(6, 100);
  CHECK(has(by("/versions/5"), "[3,0,0]"));
  CHECK(has(by("/versions/5"), "Edl-Model-Version: 5\r\n"));
  CHECK(has(by("/versions/6"), "[103,"));
  CHECK(has(by(""), "[103,"));
  CHECK(f.model.lag(first.get()) > 0);
  CHECK(f.model.lag() == 0);
  auto const states = listed("/v1/models/m")["model_version_status"];
  REQUIRE(states.size() == 2);
  CHECK(states[0]["version"] == "6");
  CHECK(states[1]["version"] == "5");
  CHECK(listed("/v1/models/m/versions/5")["model_version_status"].size() == 1);
  CHECK(listed("/v2/models/m/versions/5")["versions"] == nlohmann::json::array({"6", "5"}));
  CHECK(has(f.ask(http_client::get("/v2/models/m/versions/5/ready")), "200 OK"));
  f.take_over(7, 200);
  CHECK(has(by("/versions/5"), "404"));
  CHECK(has(by("/versions/5"), "no version 5: this server has 7, 6"));
  CHECK(has(f.ask(http_client::get("/v2/models/m/versions/5/ready")), "404"));
  CHECK(has(by("/versions/6"), "[103,"));
  CHECK(has(by("/versions/7"), "[203,"));
  f.take_over(7, 300);  // of a job that has gone back
  CHECK(has(by("/versions/7"), "[303,"));
  CHECK(has(by("/versions/6"), "[103,"));
  CHECK(listed("/v2/models/m")["versions"] == nlohmann::json::array({"7", "6"}));
}

TEST_CASE("a process that starts keeps the newest versions of its directory, and passes over a damaged one") {
  scratch dir;
  edl::train::program const program = edl::author::make_program<pair>();
  for (std::uint64_t const version : {4, 5, 6, 7}) put_checkpoint(program, dir, version, version != 6);
  edl::serve::followed_model model(program, {.path = dir / "all", .interval = 0ms, .keep = 3},
                                   edl::logger{edl::severity::critical});
  auto const kept = model.kept();
  REQUIRE(kept.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(kept[i]->version() == std::vector<std::uint64_t>{7, 5, 4}[i]);
  CHECK(model.lag() == 0);
  CHECK(model.lag(kept[2].get()) > 0);
  edl::serve::followed_model const one(program, {.path = dir / "all/version-5", .interval = 0ms, .keep = 3},
                                       edl::logger{edl::severity::critical});
  CHECK(one.kept().size() == 1);
}

TEST_CASE("a version that is kept no longer is let go when nobody uses it") {
  fixture f;
  auto held = f.model.now();
  std::weak_ptr<edl::prediction_session const> const seen = held;
  f.take_over(6, 100);
  CHECK(f.model.kept().size() == 1);
  CHECK(f.model.lag(held.get()) > 0);
  held.reset();
  CHECK(eventually([&] { return seen.expired(); }));
}

TEST_CASE("requests for several versions wait together, and none is computed by another") {
  for (auto const quick : {0us, 1'000'000us}) {
    fixture f({.max_batch = 8, .max_wait = quick.count() == 0 ? 20ms : 0ms, .quick = quick}, {}, 2);
    f.take_over(6, 100);
    std::vector<std::future<std::string>> all;
    for (int i = 0; i < 24; ++i)
      all.push_back(std::async(std::launch::async, [&f, i] {
        std::string const at = i % 3 == 0 ? "" : fmt::format("/versions/{}", 4 + i % 3);
        return f.ask(http_client::post("/v1/models/m" + at + ":predict",
                                       fmt::format(R"({{"instances":[[{},1]]}})", i)));
      }));
    for (int i = 0; i < 24; ++i) {
      int const more = i % 3 == 1 ? 0 : 100;
      CHECK(has(all[std::size_t(i)].get(), fmt::format("[[{},0,0]]", i + 1 + more)));
    }
  }
}

TEST_CASE("a newer model takes over without a failed request, and a damaged one does not") {
  fixture f;
  std::atomic<bool> over{false};
  std::atomic<int> failed{0};
  std::set<std::string> versions;
  std::thread clients([&] {
    http_client::connection c(f.server.port());
    while (!over) {
      std::string const said =
          c.say(http_client::post("/v1/models/m:predict", R"({"instances":[[1,2]]})")).answer();
      bool const old = has(said, "Edl-Model-Version: 5\r\n") && said.ends_with("[[3,0,0]]}");
      bool const next = has(said, "Edl-Model-Version: 6\r\n") && said.ends_with("[[103,0,0]]}");
      if (!has(said, "200 OK") || (!old && !next)) ++failed;
      versions.insert(old ? "5" : "6");
    }
  });
  write_model(f.path, 6, 100);
  f.changed.acquire();
  CHECK(has(f.predict(R"({"instances":[[1,2]]})"), "Edl-Model-Version: 6"));
  std::ofstream(f.path + ".new") << "damaged";
  std::filesystem::rename(f.path + ".new", f.path);
  while (f.model.failed() == 0) std::this_thread::yield();
  std::string const said = f.predict(R"({"instances":[[1,2]]})");
  CHECK(has(said, "Edl-Model-Version: 6"));
  CHECK(f.model.lag() > 0);
  over = true;
  clients.join();
  CHECK(failed == 0);
  auto const page = f.ask(http_client::get("/metrics"));
  auto const told = openmetrics::parse(page.substr(page.find("\r\n\r\n") + 4)).samples;
  CHECK(told.at("edl_serve_model_version") == 6);
  CHECK(told.at("edl_serve_models_total{result=\"served\"}") == 1);
  CHECK(told.at("edl_serve_models_total{result=\"failed\"}") >= 1);
  CHECK(told.at("edl_serve_requests_total{code=\"200\"}") >= 2);
  CHECK(told.at("edl_serve_lag_seconds") > 0);
}

TEST_CASE("a model that could not be read for a moment is tried again") {
  fixture f;
  auto const written = std::filesystem::last_write_time(f.path) + 1h;
  auto const put = [&] {
    std::filesystem::last_write_time(f.path + ".next", written);
    std::filesystem::rename(f.path + ".next", f.path);
  };
  std::ofstream(f.path + ".next") << "damaged";
  put();
  while (f.model.failed() == 0) std::this_thread::yield();
  write_model(f.path + ".next", 7, 0);
  put();
  CHECK(f.changed.try_acquire_for(60s));
  CHECK(has(f.predict(R"({"instances":[[1,2]]})"), "Edl-Model-Version: 7"));
  CHECK(f.model.lag() == 0);
}

TEST_CASE("a checkpoint of wrong bytes keeps no newer one back, and an older one comes for none") {
  scratch dir, apart;
  edl::train::program const program = edl::author::make_program<pair>();
  auto const flip = [&](std::string const& checkpoint) {
    for (auto const& entry : std::filesystem::directory_iterator(checkpoint)) {
      if (entry.path().extension() != ".safetensors") continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(-1, std::ios::end);
      int const last = file.get();
      file.seekp(-1, std::ios::end).put(char(last ^ 1));
    }
  };
  auto const place = [&](std::uint64_t version, bool right) {
    put_checkpoint(program, apart, version, true);
    std::string const path = edl::checkpoint::checkpoint_path(apart / "all", version);
    if (!right) flip(path);
    std::filesystem::rename(path, edl::checkpoint::checkpoint_path(dir / "all", version));
  };
  std::filesystem::create_directory(dir / "all");
  place(5, true);
  place(6, false);
  edl::logger const quiet_log(edl::severity::critical);
  edl::serve::followed_model const model(program, {.path = dir / "all", .interval = 1ms}, quiet_log);
  CHECK(model.now()->version() == 5);
  CHECK(model.failed() >= 1);
  CHECK(model.lag() > 0);
  auto const reaches = [&](std::uint64_t version) {
    return eventually([&] { return model.now()->version() == version; });
  };
  flip(dir / "all/version-6");  // it is right again
  CHECK(reaches(6));
  place(8, false);
  place(7, true);
  CHECK(reaches(7));
  CHECK(eventually([&] { return model.lag() > 0; }));
  flip(dir / "all/version-8");
  CHECK(reaches(8));
  CHECK(eventually([&] { return model.lag() == 0; }));
  auto const before = model.failed();
  for (auto const& entry : std::filesystem::directory_iterator(dir / "all/version-8"))
    if (entry.path().extension() == ".safetensors") std::filesystem::resize_file(entry.path(), 100);
  CHECK(eventually([&] { return model.failed() > before; }));
  place(9, true);
  CHECK(reaches(9));
  // 6, 7, 8 and 9. Those two that were made right here may have been read meanwhile, and once more after it.
  CHECK(model.loaded() >= 4);
  CHECK(model.loaded() <= 6);
}

TEST_CASE("a newer checkpoint of a wrong size is told of once, and the model at work stays") {
  struct lines : edl::line_sink {
    void write(std::string_view text) override {
      std::lock_guard const lock(mutex);
      all += text;
    }
    std::size_t count(std::string_view part) {
      std::lock_guard const lock(mutex);
      std::size_t n = 0;
      for (auto at = all.find(part); at != all.npos; at = all.find(part, at + 1)) ++n;
      return n;
    }
    std::mutex mutex;
    std::string all;
  };
  scratch dir;
  edl::train::program const program = edl::author::make_program<pair>();
  auto const put = [&](std::uint64_t version, bool whole) { put_checkpoint(program, dir, version, whole); };
  put(5, true);
  auto const sink = std::make_shared<lines>();
  std::counting_semaphore<> changed{0};
  edl::serve::followed_model const model(program, {.path = dir / "all", .interval = 1ms},
                                         edl::logger(edl::severity::info, "", {.to = sink}),
                                         [&] { changed.release(); });
  put(7, false);
  CHECK(eventually([&] { return sink->count("version-7 is passed over") == 1; }));
  CHECK(eventually([&] { return model.failed() == 1 && model.lag() > 0; }));
  put(6, true);
  changed.acquire();
  put(8, true);
  changed.acquire();
  CHECK(model.now()->version() == 8);
  CHECK(model.failed() == 1);
  CHECK(model.lag() == 0);
  CHECK(sink->count("version-5 instead") == 1);
  CHECK(sink->count("version-6 instead") == 1);
  std::filesystem::rename(dir / "all", dir / "away");
  CHECK(eventually([&] { return sink->count("no such file or directory; keeping the current model") == 1; }));
  std::filesystem::rename(dir / "away", dir / "all");
  put(10, true);
  changed.acquire();
  // A look that the rename met in its midst may have had another error to tell.
  CHECK(sink->count("no such file or directory; keeping the current model") == 1);
}

}  // namespace serve_service_test
