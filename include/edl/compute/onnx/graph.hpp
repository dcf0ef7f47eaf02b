// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "edl/core/hyperparameter.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::onnx {

/// How the samples of a tensor lie, n being their number and (h, w, c) one's extents.
enum class form {
  rows,           ///< (n, h · w · c)
  places,         ///< (n, h · w, c)
  pictures,       ///< (n, h, w, c)
  channels_first  ///< (n, c, h, w), as ONNX's convolutions have them
};

/// What a layer takes or gives.
struct value {
  std::string name;  ///< of the tensor
  shape extents;     ///< extents of one sample
  form as = form::rows;
  bool ids = false;     ///< they are of int64
  std::string weights;  ///< the tensor of the ids' weights; empty: they have none
};

/// A named option of a node.
struct attribute {
  std::string_view name;
  std::variant<std::int64_t, float, std::string_view, std::vector<std::int64_t>, std::vector<float>> value;
};

/// A table's rows, as they are written: ids, what an id without a row has in place of one, and the rows.
struct table_rows {
  using sink = std::function<void(view<float>)>;

  std::string name;
  int width = 0;
  float absent = 0;
  std::vector<std::int64_t> ids;
  std::function<void(sink const&)> each;
};

/// A network that becomes a graph of ONNX, opset 17. Layers add nodes to it. Thread safety: unsafe.
class graph {
 public:
  /// Of variables that lie so, all of which outlive this; `variables` may be empty where it is not written.
  explicit graph(parameter_layout const& layout, view<float> variables = {},
                 std::span<table_rows const> tables = {});

  // ---- For layers ----

  /// Adds a node with one output, and returns that one's name.
  std::string add(std::string_view op, std::vector<std::string> const& inputs,
                  std::vector<attribute> const& attributes = {}, std::string_view domain = {});
  /// The same with `outputs` of them.
  std::vector<std::string> add(std::string_view op, std::size_t outputs,
                               std::vector<std::string> const& inputs,
                               std::vector<attribute> const& attributes = {}, std::string_view domain = {});

  /// The same samples in that form.
  value as(value const& x, form wanted);

  /// A variable of the layer whose nodes are added, `order` being that of its axes: others than in the model.
  std::string variable(std::string_view name, std::vector<int> const& order = {});
  /// Its elements.
  std::vector<float> elements(std::string_view name) const;
  /// A tensor of the layer that is made of them.
  std::string tensor(std::string_view name, std::vector<std::int64_t> dims, std::vector<float> elements);
  /// Constants: numbers of a node that takes them as a tensor, and one that all elements meet.
  std::string numbers(std::vector<std::int64_t> const& of);
  std::string number(float of);

  /// What a user has set, for options that are settings.
  hyperparameter_view set() const { return set_; }

  /// Which places of such samples count, (n, places) of bool; empty: all. `prefix`: those are the first ones.
  struct mask {
    std::string name;
    int places = 0;
    bool prefix = false;
  };
  mask mask_of(shape in) const { return mask_.places == in.height * in.width ? mask_ : mask{}; }

  // ---- For what goes through a network ----

  /// The names of layers, from the outermost, while they add nodes.
  void enter(std::string_view name);
  void leave();
  std::string const& path() const { return path_; }
  mask exchange(mask within) { return std::exchange(mask_, std::move(within)); }

  value input(std::string_view name, shape of, form as, bool ids = false);
  void output(std::string_view name, value const& of);
  /// The rows of a table for ids: (n, ids, width).
  std::string rows_of(std::string_view table, std::string const& ids);
  /// A named input, by where it begins in the row of a sample.
  void place(int first, value of) { inputs_[first] = std::move(of); }
  value const* placed(int first) const;
  /// All of them as the row of a sample.
  value whole_row();
  void set(hyperparameter_view values) { set_ = values; }
  /// An entry of the model's metadata; "left_out" is what the graph lacks of what the network's user gets.
  void note(std::string_view name, std::string_view text) { notes_.emplace_back(name, text); }
  std::vector<std::pair<std::string, std::string>> const& notes() const { return notes_; }

  /// Gives the tensors of numbers, without those of tables, in an order that is the network's.
  void each_tensor(std::function<void(std::string const& name, std::vector<std::int64_t> const& dims,
                                      view<float>)> const& to) const;

  /// Throws error: a layer has no `to_onnx`.
  [[noreturn]] void refuse(std::string_view layer) const;

  /// Writes it as `path`, which exists whole or not at all. Where tensors are larger together than `most`
  /// bytes, they stand beside it in `path`.data, which readers of ONNX find by themselves. Returns the bytes
  /// of both. Throws error where what cannot stand there, ids of tables, is more than a message of 2 GiB.
  std::uint64_t write(std::string const& path, std::uint64_t most = std::uint64_t(1) << 30) const;

 private:
  struct stored {
    std::string name;
    std::vector<std::int64_t> dims;
    bool ids = false;
    std::uint64_t bytes = 0;
    std::function<void(std::function<void(edl::bytes)> const&)> each;
  };

  edl::variable const& find(std::string_view name) const;
  std::string unique(std::string name);
  std::string store(stored s);
  std::string of_model(std::string const& names_and_nodes, std::uint64_t tensors) const;

  parameter_layout const& layout_;
  view<float> variables_;
  hyperparameter_view set_;
  std::span<table_rows const> tables_;
  std::string path_, nodes_, ends_;
  std::set<std::string, std::less<>> taken_;
  std::vector<stored> stored_;
  std::map<std::pair<std::string, form>, std::string> forms_;
  std::map<int, value> inputs_;
  std::optional<value> row_;
  std::vector<std::pair<std::string, std::string>> notes_;
  mask mask_;
  bool ml_ = false;  // it has a node of ONNX's domain for classical models
};

/// The name of a layer while it adds nodes.
class inside {
 public:
  inside(graph& g, std::string_view name) : g_(g) { g.enter(name); }
  ~inside() { g_.leave(); }
  inside(inside const&) = delete;

 private:
  graph& g_;
};

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/graph.ipp"
#endif
