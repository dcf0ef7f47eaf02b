// SPDX-License-Identifier: Apache-2.0
#include "edl/job/serve/tensor.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "edl/base/http/message.hpp"

namespace serve_tensor_test {

using edl::example;
using edl::serve::tensor;

TEST_CASE("values of each datatype become those that the model asks for") {
  struct {
    char const* datatype;
    std::string bytes;
  } const one[] = {{"INT8", "\2"},
                   {"UINT8", "\2"},
                   {"INT16", std::string("\2\0", 2)},
                   {"UINT16", std::string("\2\0", 2)},
                   {"INT32", std::string("\2\0\0\0", 4)},
                   {"UINT32", std::string("\2\0\0\0", 4)},
                   {"FP16", std::string("\0\x40", 2)},
                   {"BF16", std::string("\0\x40", 2)},
                   {"FP64", std::string("\0\0\0\0\0\0\0\x40", 8)},
                   {"INT64", std::string("\2\0\0\0\0\0\0\0", 8)},
                   {"UINT64", std::string("\2\0\0\0\0\0\0\0", 8)}};
  for (auto const& o : one) {
    CAPTURE(o.datatype);
    tensor t{"x", example::kind::floats}, n{"n", example::kind::integers}, w{"w", example::kind::strings};
    t.append(o.datatype, o.bytes, 1);
    CHECK(t.floats == std::vector<float>{2});
    if (std::string_view(o.datatype).find('F') != std::string_view::npos) {
      CHECK_THROWS_AS(n.append(o.datatype, o.bytes, 1), edl::http::failure);
    } else {
      n.append(o.datatype, o.bytes, 1);
      CHECK(n.integers == std::vector<std::int64_t>{2});
    }
    CHECK_THROWS_AS(w.append(o.datatype, o.bytes, 1), edl::http::failure);
    CHECK_THROWS_AS(t.append(o.datatype, o.bytes, 2), edl::http::failure);
  }
  tensor yes{"x", example::kind::floats};
  yes.append("BOOL", "\1", 1);
  CHECK(yes.floats == std::vector<float>{1});
  CHECK_THROWS_WITH(yes.append("BOOL", "\2", 1),
                    "input 'x' has a byte that is neither 0 nor 1, and so not a BOOL");
  double const huge = 1e300;
  std::string const bytes(reinterpret_cast<char const*>(&huge), sizeof huge);
  CHECK_THROWS_WITH(yes.append("FP64", bytes, 1), "input 'x' has 1e+300, which float32 cannot hold");
  CHECK_THROWS_WITH(yes.append(nlohmann::json(-1e39)), "input 'x' has -1e+39, which float32 cannot hold");
  tensor n{"n", example::kind::integers};
  CHECK_THROWS_AS(n.append("FP32", std::string(4, '\0'), 1), edl::http::failure);
  CHECK_THROWS_AS(n.append("FP16", std::string(2, '\0'), 1), edl::http::failure);
  CHECK_THROWS_AS(n.append("BYTES", std::string(4, '\0'), 1), edl::http::failure);
  tensor w{"w", example::kind::strings};
  CHECK_THROWS_AS(w.append("BYTES", std::string("\xff\xff\xff\xff", 4), 1), edl::http::failure);
}

TEST_CASE("lists within lists have extents, and are of one length at one depth") {
  auto const extents = [](char const* text) {
    tensor t{"x", example::kind::floats};
    return t.append(nlohmann::json::parse(text));
  };
  using shape = std::vector<std::size_t>;
  CHECK(extents("5") == shape{});
  CHECK(extents("[]") == shape{0});
  CHECK(extents("[1,2,3]") == shape{3});
  CHECK(extents("[[1,2,3],[4,5,6]]") == shape{2, 3});
  CHECK_THROWS_WITH(extents("[[1,2],[3]]"), "input 'x' has lists of 2 and of 1 values side by side");
  for (char const* const wrong : {"[1,[2]]", "[[1],2]", "[[1],[[2]]]", "[[[1]],[2]]"})
    CHECK_THROWS_WITH(extents(wrong), "input 'x' has values and lists side by side");
  CHECK_THROWS_WITH(extents("[[[[[[[[[1]]]]]]]]]"), "input 'x' has lists nested more than 8 deep");
}

TEST_CASE("what a record lacks is null, nothing, or no number") {
  using nlohmann::json;
  float const nan = std::numeric_limits<float>::quiet_NaN();
  auto const records = [](std::vector<tensor> inputs, std::size_t rows) {
    edl::serve::share_out(inputs, rows);
    std::string all;
    for (std::size_t row = 0; row < rows; ++row) {
      example e;
      edl::serve::to_record(inputs, rows, row, e);
      for (char const* const name : {"x", "n", "w"}) all += std::to_string(e.count(name));
      all += ' ';
    }
    return all;
  };
  tensor x{"x"}, n{"n", example::kind::integers}, w{"w", example::kind::strings};
  x.append(json::parse("[1,null,3]"));
  n.append(json::parse("[null,5,6]"));
  w.append(json::parse("[\"a\",\"\",null]"));
  CHECK(records({x, n, w}, 3) == "101 011 110 ");
  tensor pairs{"x"};
  pairs.append(json::parse("[[1,2],[null,null],[3,4]]"));
  CHECK(records({pairs}, 3) == "200 000 200 ");
  tensor part{"x"};
  part.append(json::parse("[[1,2],[null,4]]"));
  CHECK_THROWS_WITH(records({part}, 2),
                    doctest::Contains("record 1 has null for 1 of 2 values of input 'x'"));
  // As bytes have it.
  float const values[] = {1, nan, nan, nan, 3, nan};
  tensor bytes{"x"};
  bytes.append("FP32", {reinterpret_cast<char const*>(values), sizeof values}, 6);
  CHECK(records({bytes}, 6) == "100 000 000 000 100 000 ");
  CHECK(records({bytes}, 3) == "200 000 200 ");  // of several, feed sees that one is missing
  tensor none{"n", example::kind::integers};
  none.append("INT64", "", 0);
  CHECK(records({none}, 2) == "000 000 ");
  example e;
  for (bool const may_be_empty : {true, false}) {  // a list of tags, or a number
    none.may_be_empty = may_be_empty;
    edl::serve::to_record(std::vector{none}, 2, 0, e);
    CHECK(e.contains("n") == may_be_empty);
  }
  tensor each{"x"};
  for (char const* const text : {"[]", "[1,2]", "null", "[null,null]"}) each.append_record(json::parse(text));
  each.append_none();
  CHECK(records({each}, 5) == "000 200 000 000 000 ");
  CHECK_THROWS_WITH(each.append_record(json::parse("[1,null]")),
                    doctest::Contains("instance 5 has null for 1 of 2 values of input 'x'"));
}

TEST_CASE("whole numbers beyond 64 bits with a sign are refused, and do not wrap") {
  tensor n{"n", example::kind::integers};
  std::string const most("\xff\xff\xff\xff\xff\xff\xff\x7f", 8), beyond(8, '\xff');
  n.append("UINT64", most, 1);
  n.append(nlohmann::json::parse("9223372036854775807"));
  CHECK(n.integers == std::vector<std::int64_t>(2, std::int64_t(~std::uint64_t(0) >> 1)));
  CHECK_THROWS_WITH(n.append("UINT64", beyond, 1),
                    "input 'n' has 18446744073709551615, which does not fit 64 bits with a sign");
  CHECK_THROWS_WITH(n.append(nlohmann::json::parse("9223372036854775808")),
                    "input 'n' has 9223372036854775808, which does not fit 64 bits with a sign");
}

TEST_CASE("float32 is taken as its bytes are, wherever they begin") {
  float const values[] = {1, 2, 3, 4};
  std::string const bytes = "." + std::string(reinterpret_cast<char const*>(values), sizeof values);
  tensor t{"x", example::kind::floats};
  t.append("FP32", std::string_view(bytes).substr(1), 4);
  CHECK(t.size() == 4);
  example record;
  edl::serve::to_record({&t, 1}, 2, 1, record);
  CHECK(record.float_values("x")[0] == 3);
  CHECK(record.float_values("x")[1] == 4);
  CHECK_THROWS_AS(edl::serve::share_out({&t, 1}, 3), edl::http::failure);
}

}  // namespace serve_tensor_test
