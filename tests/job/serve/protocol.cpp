// SPDX-License-Identifier: Apache-2.0
#include "edl/job/serve/protocol.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace serve_protocol_test {

using namespace edl::serve;
using nlohmann::json;

model_face const face{.name = "m",
                      .version = 7,
                      .inputs = {{"x", edl::example::kind::floats, {2}},
                                 {"n", edl::example::kind::integers, {}},
                                 {"w", edl::example::kind::strings, {}}},
                      .outputs = answers_of({{"kind", edl::shape{2}, 0}, {"size", edl::shape{1}, 2}}, {})};

json infer_body() {
  return {{"id", "q"},
          {"inputs",
           {{{"name", "x"}, {"shape", {2, 2}}, {"datatype", "FP32"}, {"data", {{1, 2}, {3, 4.5}}}},
            {{"name", "n"}, {"shape", {2, 1}}, {"datatype", "INT64"}, {"data", {5, 6}}},
            {{"name", "w"}, {"shape", {2}}, {"datatype", "BYTES"}, {"data", {"a", "b"}}}}}};
}

std::shared_ptr<question const> inference(std::string const& body, std::optional<std::size_t> header = {}) {
  inference_head last;
  return read_inference(body, header, face, 4, last);
}

edl::example record(question const& q, std::size_t row) {
  edl::example made;
  to_record(q.inputs, q.rows, row, made);
  return made;
}

void check_records(question const& q) {
  REQUIRE(q.rows == 2);
  CHECK(record(q, 1).float_values("x")[1] == 4.5f);
  CHECK(record(q, 1).integer("n") == 6);
  CHECK(record(q, 0).bytes("w") == "a");
}

std::pair<int, std::string> refused(json const& body, bool predict = false,
                                    std::optional<std::size_t> header = {}) {
  try {
    if (predict)
      read_predict(body.is_string() ? body.get<std::string>() : body.dump(), face, 4);
    else
      inference(body.is_string() ? body.get<std::string>() : body.dump(), header);
  } catch (edl::http::failure const& f) {
    return {f.status, f.what()};
  }
  return {200, ""};
}

TEST_CASE("a request of the Open Inference Protocol, as JSON") {
  auto const q = inference(infer_body().dump());
  CHECK(q->id == "q");
  CHECK(q->outputs.size() == 2);
  check_records(*q);
  std::vector<float> const outputs{1, 2, 3, 4, 5, std::numeric_limits<float>::quiet_NaN()};
  auto const r = write_inference(*q, face, outputs);
  CHECK(r.body ==
        "{\"model_name\":\"m\",\"model_version\":\"7\",\"id\":\"q\",\"outputs\":["
        "{\"name\":\"kind\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[1,2,4,5]},"
        "{\"name\":\"size\",\"datatype\":\"FP32\",\"shape\":[2,1],\"data\":[3,null]}]}");  // JSON has no NaN
}

TEST_CASE("the same with tensors as bytes") {
  json body = infer_body();
  std::string tail;
  auto const put = [&](std::size_t input, auto const& values) {
    auto const before = tail.size();
    tail.append(reinterpret_cast<char const*>(values.data()), values.size() * sizeof values[0]);
    body["inputs"][input].erase("data");
    body["inputs"][input]["parameters"] = {{"binary_data_size", tail.size() - before}};
  };
  put(0, std::vector<float>{1, 2, 3, 4.5f});
  put(1, std::vector<std::int64_t>{5, 6});
  put(2, std::string("\1\0\0\0a\1\0\0\0b", 10));
  body["outputs"] = {{{"name", "size"}, {"parameters", {{"binary_data", true}}}}};
  std::string const head = body.dump();
  auto const q = inference(head + tail, head.size());
  check_records(*q);
  auto const r = write_inference(*q, face, std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(r.type == "application/octet-stream");
  REQUIRE(r.headers.size() == 1);
  auto const size = std::stoul(r.headers[0].second);
  CHECK(json::parse(r.body.substr(0, size))["outputs"][0]["parameters"]["binary_data_size"] == 8);
  float last[2];
  REQUIRE(r.body.size() == size + sizeof last);
  std::memcpy(last, r.body.data() + size, sizeof last);
  CHECK(last[0] == 3);
  CHECK(last[1] == 6);
  CHECK(refused(json(head + tail.substr(1)), false, head.size()).second.find("is truncated") !=
        std::string::npos);
  CHECK(refused(json(head + tail + "x"), false, head.size()).second.find("bytes follow the last input") !=
        std::string::npos);
  CHECK(refused(json(head), false, head.size() + 1).first == 400);
}

TEST_CASE("a head that is said again is not read again, and one that is wrong is not remembered") {
  std::string const head =
      R"({"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}]})";
  auto const bytes = [](float a, float b) {
    float const values[] = {a, b};
    return std::string(reinterpret_cast<char const*>(values), sizeof values);
  };
  inference_head last;
  auto const first = read_inference(head + bytes(1, 2), head.size(), face, 4, last);
  CHECK(last.text == head);
  auto const second = read_inference(head + bytes(3, 4), head.size(), face, 4, last);
  CHECK(record(*first, 0).float_values("x")[0] == 1);
  CHECK(record(*second, 0).float_values("x")[1] == 4);
  std::string const other = R"({"inputs":[{"name":"y"}]})";
  CHECK_THROWS_AS(read_inference(other, other.size(), face, 4, last), edl::http::failure);
  CHECK_THROWS_AS(read_inference("", 0, face, 4, last), edl::http::failure);
  CHECK_THROWS_AS(read_inference(head, head.size(), face, 4, last), edl::http::failure);
  inference_head none;
  CHECK_THROWS_AS(read_inference("", 0, face, 4, none), edl::http::failure);
  CHECK(last.text == head);
}

TEST_CASE("what is wrong with a request is said, and names the input") {
  auto const changed = [](auto&& act) {
    json body = infer_body();
    act(body);
    return refused(body);
  };
  auto const says = [](std::pair<int, std::string> const& r, int code, char const* text) {
    CAPTURE(r.second);
    CHECK(r.first == code);
    CHECK(r.second.find(text) != std::string::npos);
  };
  says(refused(json("{")), 400, "not JSON");
  says(refused(json("[]")), 400, "the request is not an object");
  says(refused(json("{}")), 400, "the request has no 'inputs'");
  says(refused(json{{"inputs", nullptr}}), 400, "the request has no 'inputs'");
  says(refused(json{{"inputs", 5}}), 400, "'inputs' of the request is not a list");
  says(changed([](json& b) { b["id"] = 7; }), 400, "'id' of the request is not a text");
  says(changed([](json& b) { b["inputs"][0].erase("shape"); }), 400, "input 'x' has no 'shape'");
  says(changed([](json& b) { b["inputs"][0]["data"] = nullptr; }), 400, "input 'x' has no 'data'");
  says(changed([](json& b) { b["inputs"][0]["parameters"] = 5; }), 400,
       "'parameters' of input 'x' is not an object");
  says(changed([](json& b) { b["inputs"][0]["parameters"] = {{"binary_data_size", 16}}; }), 400,
       "input 'x' has both 'data' and 'binary_data_size'");
  says(changed([](json& b) {
         b["inputs"][0].erase("data");
         b["inputs"][0]["parameters"] = {{"binary_data_size", "16"}};
       }),
       400, "'binary_data_size' of input 'x' is not a number of bytes");
  says(changed([](json& b) {
         b["inputs"][0].erase("data");
         b["inputs"][0]["parameters"] = {{"binary_data_size", 16}};
       }),
       400, "the request has no Inference-Header-Content-Length field");
  says(changed([](json& b) { b["parameters"] = {{"binary_data_output", 1}}; }), 400,
       "'binary_data_output' of the request is neither true nor false");
  says(changed([](json& b) { b["inputs"][0]["name"] = "y"; }), 400, "no input 'y'; it takes x, n, w");
  for (auto const& change : {std::pair{"name", "/inputs/0/name"}, {"datatype", "/inputs/0/datatype"}}) {
    auto const said = changed([&](json& b) { b[json::json_pointer(change.second)] = "a\nb"; });
    CHECK(said.first == 400);
    CHECK(said.second.find('\n') == std::string::npos);
  }
  says(changed([](json& b) { b["inputs"][1] = b["inputs"][0]; }), 400, "'x' occurs twice");
  says(changed([](json& b) { b["inputs"][0]["shape"] = {2, 3}; }), 400,
       "'x' has 4 values, but its shape needs 6");
  says(changed([](json& b) { b["inputs"][0]["shape"] = {5, 2}; }), 413, "5 records");
  says(changed([](json& b) { b["inputs"][0]["shape"] = {5, 2}; }), 413, "with a larger --max_batch");
  says(changed([](json& b) { b["inputs"][0]["shape"] = {1 << 30, 1 << 30}; }), 413, "too large");
  says(changed([](json& b) { b["inputs"][0]["shape"] = {2, 1 << 30, 1 << 30}; }), 413, "too large");
  says(changed([](json& b) { b["inputs"][0]["shape"] = {-1, 2}; }), 400, "shape");
  says(changed([](json& b) { b["inputs"][1]["shape"] = {1, 2}; }), 400, "'n' has another number of records");
  says(changed([](json& b) { b["inputs"][1]["data"] = {5, 1.5}; }), 400,
       "input 'n' takes whole numbers, and value 1 has 1.5: send null where a record lacks it");
  says(changed([](json& b) { b["inputs"][2]["data"] = {1, 2}; }), 400,
       "'w' takes strings, and value 0 has 1");
  auto const typed = [&](char const* datatype, json const& value) {
    return changed([&](json& b) {
      b["inputs"][0]["datatype"] = datatype;
      b["inputs"][0]["data"] = {1, 0, 1, value};
    });
  };
  says(typed("INT8", 128), 400, "'x' has 128, which is no INT8");
  says(typed("UINT8", -1), 400, "'x' has -1, which is no UINT8");
  says(typed("INT32", 1.5), 400, "'x' has 1.5, which is no INT32");
  says(typed("BOOL", 2), 400, "'x' has 2, which is no BOOL");
  says(typed("FP32", 1e300), 400, "'x' has 1e+300, which float32 cannot hold");
  says(typed("FP16", 65'505), 400, "'x' has 65505, which is no FP16");
  says(changed([](json& b) {
         b["inputs"][1]["datatype"] = "INT16";
         b["inputs"][1]["data"] = {5, 40'000};
       }),
       400, "'n' has 40000, which is no INT16");
  for (auto const& [datatype, most] :
       {std::pair{"BOOL", 1.0}, {"INT8", 127.0}, {"INT32", 0x1p31 - 1}, {"UINT32", 0x1p32 - 1}}) {
    json body = infer_body();
    body["inputs"][0]["datatype"] = datatype;
    body["inputs"][0]["data"] = {1, 0, 1, most};
    inference_head last;
    CHECK(record(*read_inference(body.dump(), {}, face, 4, last), 1).float_values("x")[1] == float(most));
  }
  says(changed([](json& b) { b["inputs"][0].erase("datatype"); }), 400, "input 'x' has no 'datatype'");
  says(changed([](json& b) { b["inputs"][0]["datatype"] = "COMPLEX"; }), 400,
       "unsupported datatype 'COMPLEX'");
  says(changed([](json& b) { b["inputs"][2]["datatype"] = "FP32"; }), 400, "'w' takes BYTES, not FP32");
  says(changed([](json& b) { b["outputs"] = {{{"name", "z"}}}; }), 400, "no output 'z'");
  says(changed([](json& b) { b["inputs"] = json::array(); }), 400, "no record");
  json deep = 1;
  for (int i = 0; i < 20; ++i) deep = json::array({deep});
  says(changed([&](json& b) { b["inputs"][0]["data"] = deep; }), 400, "more than 8");
  auto const nested = [&](json const& shape, json const& data) {
    return changed([&](json& b) { b["inputs"][0]["shape"] = shape, b["inputs"][0]["data"] = data; });
  };
  says(nested({2, 3}, {{1, 2}, {3, 4}, {5, 6}}), 400, "input 'x' has lists of 3 × 2, but its shape is 2 × 3");
  says(nested({2, 2}, {{1, 2, 3}, {4}}), 400, "input 'x' has lists of 3 and of 1 values side by side");
  CHECK(nested({2, 2}, {1, 2, 3, 4}).first == 200);
  says(changed([](json& b) { b["outputs"] = {{{"name", "size"}}, {{"name", "size"}}}; }), 400,
       "output 'size' is requested twice");
  for (bool const predict : {false, true}) {
    says(refused(json(std::string(100'000, '[')), predict), 400, "nested deeper than 200 levels");
    says(refused(json("{\"inputs\": 1e400}"), predict), 400, "a number of the body is too large");
  }
}

TEST_CASE("what a client leaves out it may also write as null") {
  json const plain = infer_body();
  auto const same = [&](auto&& act) {
    json body = plain;
    act(body);
    auto const q = inference(body.dump());
    check_records(*q);
    CHECK(q->outputs.size() == 2);
    CHECK(q->binary == std::vector<bool>{false, false});
  };
  same([](json& b) { b["id"] = nullptr; });
  same([](json& b) { b["parameters"] = nullptr; });
  same([](json& b) { b["parameters"] = {{"binary_data_output", nullptr}}; });
  same([](json& b) { b["outputs"] = nullptr; });
  same([](json& b) { b["outputs"] = json::array(); });
  same([](json& b) { b["inputs"][0]["parameters"] = nullptr; });
  same([](json& b) {
    b["inputs"][0]["parameters"] = {{"binary_data_size", nullptr}, {"content_type", "np"}};
  });
  same([](json& b) {
    b["outputs"] = {{{"name", "kind"}, {"parameters", nullptr}},
                    {{"name", "size"}, {"parameters", {{"binary_data", nullptr}}}}};
  });
  json const row{{"x", {1, 2}}, {"n", 5}, {"w", "a"}};
  for (json const& name : {json(nullptr), json(""), json("serving_default")})
    CHECK(read_predict(json{{"signature_name", name}, {"inputs", nullptr}, {"instances", {row}}}.dump(), face,
                       4)
              ->rows == 1);
  CHECK(refused(json{{"instances", nullptr}}, true).second ==
        "the body has neither 'instances' nor 'inputs'");
  CHECK(refused(json{{"signature_name", 5}, {"instances", {row}}}, true).second ==
        "'signature_name' of the request is not a text");
}

TEST_CASE("a record that lacks a feature stands beside others that have it") {
  auto const lacks = [](question const& q) {
    REQUIRE(q.rows == 2);
    CHECK(record(q, 0).contains("x"));
    CHECK_FALSE(record(q, 1).contains("x"));
    CHECK_FALSE(record(q, 0).contains("n"));
    CHECK(record(q, 1).integer("n") == 6);
    CHECK_FALSE(record(q, 1).contains("w"));
  };
  json body = infer_body();
  body["inputs"][0]["data"] = {{1, 2}, {nullptr, nullptr}};
  body["inputs"][1]["data"] = {nullptr, 6};
  body["inputs"][2]["data"] = {"a", nullptr};
  lacks(*inference(body.dump()));
  // NumPy's clients write what is missing as no JSON has it.
  std::string with_nan = body.dump();
  for (std::size_t at = 0; (at = with_nan.find("null,null", at)) != with_nan.npos;)
    with_nan.replace(at, 9, "NaN,NaN");
  CHECK(with_nan.find("NaN,NaN") != with_nan.npos);
  lacks(*inference(with_nan));
  CHECK(
      record(*read_predict(R"({"instances":[{"x":[1,2],"n":NaN,"w":"\"NaN\\"}]})", face, 4), 0).bytes("w") ==
      "\"NaN\\");
  for (char const* const none : {"-NaN", "NaNs", "[NaN 1]", "\"NaN"})
    CHECK_THROWS_AS(read_predict(R"({"instances":[{"x":)" + std::string(none) + "}]}", face, 4),
                    edl::http::failure);
  for (char const* const text :
       {R"({"instances":[{"x":[1,2],"w":"a"},{"n":6}]})",
        R"({"instances":[{"x":[1,2],"n":NaN,"w":"a"},{"x":[NaN,NaN],"n":6,"w":NaN}]})",
        R"({"instances":[{"x":[1,2],"n":null,"w":"a"},{"x":null,"n":6,"w":null}]})",
        R"({"instances":[{"x":[1,2],"n":[],"w":"a"},{"x":[],"n":6,"w":[]}]})",
        R"({"inputs":{"x":[[1,2],null],"n":[null,6],"w":["a",[]]}})"})
    lacks(*read_predict(text, face, 4));
  CHECK(refused(json::parse(R"({"instances":[{"x":[1,null],"n":5,"w":"a"}]})"), true).first == 400);
}

TEST_CASE("values come in extents, which a record of them has") {
  auto const extents = [](question const& q) {
    auto const e = record(q, 0);
    auto const of = e.extents("x");
    return std::vector<std::size_t>(of.begin(), of.end());
  };
  using shape = std::vector<std::size_t>;
  auto const predict = [](char const* text) { return read_predict(text, face, 4); };
  CHECK(extents(*predict(R"({"instances":[{"x":[[1,2],[3,4]]},{"x":[[1,2],[3,4]]}]})")) == shape{2, 2});
  CHECK(extents(*predict(R"({"inputs":{"x":[[[1,2],[3,4]]]}})")) == shape{2, 2});
  CHECK(extents(*predict(R"({"instances":[{"x":[1,2,3,4]}]})")) == shape{});
  json body = infer_body();
  body["inputs"][0]["shape"] = {2, 1, 2};
  body["inputs"][0]["data"] = {1, 2, 3, 4};
  CHECK(extents(*inference(body.dump())) == shape{1, 2});
  CHECK(refused(json::parse(R"({"instances":[{"x":[[1,2],[3,4]]},{"x":[1,2,3,4]}]})"), true).second ==
        "instance 1 has another shape of input 'x' than the first: 4 instead of 2 × 2");
  CHECK(refused(json::parse(R"({"instances":[{"x":[[1,2],[3]]}]})"), true).second ==
        "input 'x' has lists of 2 and of 1 values side by side");
}

TEST_CASE("what a loss says of outputs is answered beside them") {
  using edl::output_meaning;
  model_face const by{.name = "m",
                      .inputs = {{"x", edl::example::kind::floats, {2}}},
                      .outputs = answers_of({{"kind", edl::shape{2}, 0, output_meaning::classes},
                                             {"sick", edl::shape{1}, 2, output_meaning::probabilities}},
                                            {"cat", "do\"g"}),
                      .classes = {"cat", "do\"g"}};
  float const far = std::log(3.0f);
  std::vector<float> const outputs{0, far, 0, 1000, -1000, 0};
  inference_head last;
  std::string const head = R"({"inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[1,2,3,4]}])";
  auto q = read_inference(head + "}", {}, by, 4, last);
  auto const said = json::parse(write_inference(*q, by, outputs).body)["outputs"];
  REQUIRE(said.size() == 5);
  CHECK(said[1]["name"] == "kind_probabilities");
  CHECK(said[1]["data"][1].get<double>() == doctest::Approx(0.75));
  CHECK(said[1]["data"][2] == 1);
  CHECK(said[2] ==
        json{{"name", "kind_class"}, {"datatype", "BYTES"}, {"shape", {2, 1}}, {"data", {"do\"g", "cat"}}});
  CHECK(said[4]["name"] == "sick_probabilities");
  CHECK(said[4]["data"] == json{0.5, 0.5});
  q = read_inference(head + R"(,"outputs":[{"name":"kind_class","parameters":{"binary_data":true}}]})", {},
                     by, 4, last);
  CHECK(write_inference(*q, by, outputs).body.ends_with(std::string("]}\4\0\0\0do\"g\3\0\0\0cat", 17)));
  q = read_predict(R"({"instances":[[1,2],[3,4]]})", by, 4);
  json const plain = json::parse(write_predict(*q, by, outputs).body)["predictions"][0];
  CHECK(plain.size() == 2);
  CHECK(plain["sick"] == json{0});
  q = read_predict(R"({"signature_name":"probabilities","instances":[[1,2],[3,4]]})", by, 4);
  CHECK(json::parse(write_predict(*q, by, outputs).body)["predictions"][1]["kind_class"] == "cat");
  CHECK(json::parse(metadata(by, {}))["outputs"][2] ==
        json{{"name", "kind_class"}, {"datatype", "BYTES"}, {"shape", {-1, 1}}});
  CHECK(answers_of({{"kind", edl::shape{3}, 0, output_meaning::classes}}, {"cat", "dog"}).size() == 2);
}

TEST_CASE("where it is not known what a model takes, anything is taken") {
  model_face const open{.name = "m",
                        .inputs = {{"x", edl::example::kind::floats, {2}}},
                        .outputs = answers_of({{"output", edl::shape{1}, 0}}, {}),
                        .complete = false};
  inference_head last;
  auto const q = read_inference(R"({"inputs":[{"name":"price","shape":[1,1],"datatype":"INT32","data":[7]},)"
                                R"({"name":"day","shape":[1,1],"datatype":"BYTES","data":["1999-01-07"]}]})",
                                {}, open, 4, last);
  CHECK(record(*q, 0).integer("price") == 7);
  CHECK(record(*q, 0).bytes("day") == "1999-01-07");
  auto const p = read_predict(R"({"instances":[{"price":7,"day":"1999-01-07","x":[1,2]}]})", open, 4);
  CHECK(record(*p, 0).integer("price") == 7);
  CHECK(record(*p, 0).bytes("day") == "1999-01-07");
}

TEST_CASE("features that the model does not take are ignored, but where one that it takes is not given") {
  json const row{{"x", {1, 2}}, {"n", 5}, {"w", "a"}, {"id", "some"}};
  auto const with_id = [](json body) {
    body["inputs"].push_back({{"name", "id"}, {"shape", {2, 1}}, {"datatype", "INT32"}, {"data", {8, 9}}});
    return body;
  };
  check_records(*inference(with_id(infer_body()).dump()));
  CHECK(record(*read_predict(json{{"instances", {row}}}.dump(), face, 4), 0).integer("n") == 5);
  json less = row, none = row;
  less.erase("w"), none["w"] = nullptr;
  CHECK(refused(json{{"instances", {less}}}, true) ==
        std::pair(400, std::string("the model takes no input 'id'; it takes x, n, w: others are ignored only "
                                   "where all of these are given, if as null")));
  CHECK(refused(json{{"instances", {none}}}, true).first == 200);
  json part = with_id(infer_body());
  part["inputs"].erase(0);
  CHECK(refused(part).first == 400);
}

TEST_CASE("a name that stands twice in an object is refused, with both values") {
  auto const twice =
      refused(json(R"({"instances":[{"x":[1,2],"n":5,"w":"n"},{"n": 1,"x":[1,2],"w":"a","n":2}]})"), true);
  CHECK(twice ==
        std::pair(400, std::string("'n' occurs twice in one object of the body: with 1 and with 2")));
  CHECK(refused(json(R"({"id":"a","inputs":[],"id":"\"b"})")).second.find("'id' occurs twice") !=
        std::string::npos);
}

TEST_CASE("TensorFlow Serving's rows and columns") {
  json const row{{"x", {1, 2}}, {"n", 5}, {"w", "a"}}, other{{"x", {3, 4.5}}, {"n", 6}, {"w", "b"}};
  auto q = read_predict(json{{"instances", {row, other}}}.dump(), face, 4);
  check_records(*q);
  std::vector<float> const outputs{1, 2, 3, 4, 5, 6};
  CHECK(write_predict(*q, face, outputs).body ==
        "{\"predictions\":[{\"kind\":[1,2],\"size\":[3]},{\"kind\":[4,5],\"size\":[6]}]}");
  q = read_predict(json{{"inputs", {{"x", {{1, 2}, {3, 4.5}}}, {"n", {5, 6}}, {"w", {"a", "b"}}}}}.dump(),
                   face, 4);
  check_records(*q);
  CHECK(write_predict(*q, face, outputs).body == "{\"outputs\":{\"kind\":[[1,2],[4,5]],\"size\":[[3],[6]]}}");
  model_face const one{.name = "o",
                       .inputs = {{"x", edl::example::kind::floats, {2}}},
                       .outputs = answers_of({{"output", edl::shape{3}, 0}}, {})};
  q = read_predict(R"({"instances":[[1,2],[3,4]]})", one, 4);
  CHECK(record(*q, 1).float_values("x")[0] == 3);
  CHECK(write_predict(*q, one, outputs).body == "{\"predictions\":[[1,2,3],[4,5,6]]}");
  CHECK(refused(json{{"instances", {row, json{{"x", {1}}, {"n", 5}, {"w", "a"}}}}}, true)
            .second.find("instance 1") != std::string::npos);
  CHECK(refused(json{{"instances", {{1, 2}}}}, true).second.find("takes 3 inputs") != std::string::npos);
  CHECK(refused(json{{"instances", json::array({row, row, row, row, row})}}, true).first == 413);
  CHECK(refused(json{{"instances", 3}}, true).first == 400);
  CHECK(refused(json::object(), true).first == 400);
  CHECK(refused(json{{"instances", {row}}, {"inputs", {row}}}, true).second.find("both") !=
        std::string::npos);
  CHECK(
      refused(json{{"signature_name", "other"}, {"instances", {row}}}, true).second.find("serving_default") !=
      std::string::npos);
}

TEST_CASE("bytes that are no text come as Base64") {
  model_face const words{.name = "t",
                         .inputs = {{"w", edl::example::kind::strings, {}}},
                         .outputs = answers_of({{"output", edl::shape{1}, 0}}, {})};
  auto const first = [&](std::string const& body) {
    auto const q = read_predict(body, words, 4);
    return std::string(record(*q, 0).bytes("w"));
  };
  CHECK(first(R"({"instances":[{"w":{"b64":"AP/+"}}]})") == std::string("\0\xff\xfe", 3));
  CHECK(first(R"({"instances":[{"b64":"aGk="}]})") == "hi");
  CHECK(first(R"({"instances":[{"b64":"aA=="},{"b64":""}]})") == "h");
  CHECK(first(R"({"inputs":{"w":[{"b64":"aGk="}]}})") == "hi");
  CHECK(first(R"({"inputs":[{"b64":"aGk="}]})") == "hi");
  for (char const* wrong :
       {R"({"b64":"aGk"})", R"({"b64":"a==="})", R"({"b64":"====" })", R"({"b64":"a=Gk"})",
        R"({"b64":"aG k"})", R"({"b64":"aGk\n"})", R"({"b64":7})", R"({"b64":"","x":1})"}) {
    CAPTURE(wrong);
    auto const said =
        refused(json::parse(R"({"instances":[{"x":[1,2],"n":5,"w":)" + std::string(wrong) + "}]}"), true);
    CHECK(said.first == 400);
    CHECK(said.second.find("input 'w'") == 0);
  }
  CHECK(refused(json::parse(R"({"instances":[{"x":{"b64":"aGk="},"n":5,"w":"a"}]})"), true).second ==
        "input 'x' takes numbers, and instance 0 has {\"b64\":\"aGk=\"}: send null where a record lacks it");
  // A column of the words true and false has them as JSON has them.
  CHECK(first(R"({"inputs":{"w":[true]}})") == "true");
}

TEST_CASE("what a model takes and says is told") {
  json const all = json::parse(metadata(face, {"7", "5"}));
  CHECK(all["versions"] == json::array({"7", "5"}));
  CHECK(all["inputs"][0] == json{{"name", "x"}, {"datatype", "FP32"}, {"shape", {-1, 2}}});
  CHECK(all["inputs"][2] == json{{"name", "w"}, {"datatype", "BYTES"}, {"shape", {-1, 1}}});
  CHECK(all["outputs"][1] == json{{"name", "size"}, {"datatype", "FP32"}, {"shape", {-1, 1}}});
  json const of_serving = json::parse(signature(face));
  CHECK(of_serving["model_spec"] == json{{"name", "m"}, {"signature_name", ""}, {"version", "7"}});
  json const& said = of_serving["metadata"]["signature_def"]["signature_def"]["serving_default"];
  CHECK(said["method_name"] == "tensorflow/serving/predict");
  CHECK(said["inputs"]["x"] ==
        json{{"name", "x:0"},
             {"dtype", "DT_FLOAT"},
             {"tensor_shape",
              {{"dim", {{{"size", "-1"}, {"name", ""}}, {{"size", "2"}, {"name", ""}}}},
               {"unknown_rank", false}}}});
  CHECK(said["inputs"]["n"]["dtype"] == "DT_INT64");
  CHECK(said["inputs"]["w"]["dtype"] == "DT_STRING");
  CHECK(said["outputs"]["kind"]["dtype"] == "DT_FLOAT");
}

}  // namespace serve_protocol_test
