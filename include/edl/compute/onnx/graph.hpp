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

#include "edl/compute/onnx/preprocessing.hpp"
#include "edl/core/hyperparameter.hpp"
#include "edl/core/layout.hpp"
#include "edl/core/shape.hpp"
#include "edl/core/span.hpp"

namespace edl::onnx {

/// The memory layouts of a tensor of samples: n is their number, (h, w, c) are one sample's extents.
enum class form {
  rows,           ///< (n, h · w · c)
  places,         ///< (n, h · w, c)
  pictures,       ///< (n, h, w, c)
  channels_first  ///< (n, c, h, w), as ONNX's convolutions have them
};

/// The input or the output of a layer.
struct value {
  std::string name;  ///< of the tensor
  shape extents;     ///< extents of one sample
  form as = form::rows;
  bool ids = false;     ///< elements are int64 ids
  std::string weights;  ///< the tensor of the ids' weights; empty: they have none
};

/// A named option of a node.
struct attribute {
  std::string_view name;
  std::variant<std::int64_t, float, std::string_view, std::vector<std::int64_t>, std::vector<float>> value;
};

/// A table's rows as they are exported: ids, the row for ids without one, and the rows.
struct table_rows {
  using sink = std::function<void(view<float>)>;

  std::string name;
  int width = 0;
  float absent = 0;
  std::vector<std::int64_t> ids;
  std::function<void(sink const&)> each;
};

struct folding;

/// Builds an ONNX graph (opset 17) of a network, to which layers add nodes. Thread safety: unsafe.
class graph {
 public:
  /// For variables with this layout. All arguments must outlive this; `variables` may be empty if the graph
  /// is not written.
  explicit graph(parameter_layout const& layout, view<float> variables = {},
                 std::span<table_rows const> tables = {});

  // ---- For layers ----

  /// Adds a node with one output, and returns the output's name.
  std::string add(std::string_view op, std::vector<std::string> const& inputs,
                  std::vector<attribute> const& attributes = {}, std::string_view domain = {});
  /// The same with `outputs` outputs.
  std::vector<std::string> add(std::string_view op, std::size_t outputs,
                               std::vector<std::string> const& inputs,
                               std::vector<attribute> const& attributes = {}, std::string_view domain = {});

  /// Converts the samples to that form.
  value as(value const& x, form wanted);

  /// A variable of the current layer; `order` permutes its axes from their order in the model.
  std::string variable(std::string_view name, std::vector<int> const& order = {});
  /// Its elements.
  std::vector<float> elements(std::string_view name) const;
  /// A tensor of the current layer with these elements.
  std::string tensor(std::string_view name, std::vector<std::int64_t> dims, std::vector<float> elements);
  /// Constants: integers for a node that takes them as a tensor, and a scalar that is broadcast.
  std::string numbers(std::vector<std::int64_t> const& of);
  std::string number(float of);

  /// The user's hyperparameters, for options that are settings.
  hyperparameter_view set() const { return set_; }

  /// The valid places of such samples: (n, places) of bool; empty: all. `prefix`: the valid ones come first.
  struct mask {
    std::string name;
    int places = 0;
    bool prefix = false;
  };
  mask mask_of(shape in) const { return mask_.places == in.height * in.width ? mask_ : mask{}; }

  /// Marks a node that scales and shifts each channel of its first input: `fold_batch_norms` may fold it into
  /// the weights of the node before.
  void scales_channels(std::string const& output, std::vector<double> factor, std::vector<double> shift);

  // ---- For traversing a network ----

  /// Enter and leave layers while they add nodes; names nest from the outermost.
  void enter(std::string_view name);
  void leave();
  std::string const& path() const { return path_; }
  mask exchange(mask within) { return std::exchange(mask_, std::move(within)); }

  /// Adds an input. An input that was given to `prepare` is computed from the record's values. Throws error
  /// if the name is already used in the graph.
  value input(std::string_view name, shape of, form as, bool ids = false);
  void output(std::string_view name, value const& of);
  /// Call it before the network is added: this input is computed from a record, whose values become inputs in
  /// its place.
  void prepare(std::string_view input, preprocessing from);
  /// The rows of a table for `ids` ids of an input: (n, ids, width).
  std::string rows_for(std::string_view input, std::string_view table, int ids, int width);
  /// Call it before the network is added: leaves tables out; inputs are rows, named `…_rows`, in place of
  /// ids.
  void leave_tables_out() { rows_are_inputs_ = true; }
  /// Registers a named input by its offset in a sample's row.
  void place(int first, value of) { inputs_[first] = std::move(of); }
  value const* placed(int first) const;
  /// All named inputs, concatenated to a sample's row.
  value whole_row();
  void set(hyperparameter_view values) { set_ = values; }
  /// Adds an entry to the model's metadata; "left_out" lists what the graph lacks in comparison with the
  /// network.
  void note(std::string_view name, std::string_view text) { notes_.emplace_back(name, text); }
  std::vector<std::pair<std::string, std::string>> const& notes() const { return notes_; }

  /// Visits the tensors of numbers, except those of tables, in the order of the network; with
  /// `computed_only`, without those that are unchanged variables.
  void each_tensor(std::function<void(std::string const& name, std::vector<std::int64_t> const& dims,
                                      view<float>)> const& to,
                   bool computed_only = false) const;
  /// The variables that the graph contains unchanged, under the same names, and those that `elements` was
  /// asked for.
  std::set<std::string, std::less<>> const& whole_variables() const { return whole_; }
  std::set<std::string, std::less<>> const& read_variables() const { return read_; }

  /// Throws error: the layer has no `to_onnx`.
  [[noreturn]] void refuse(std::string_view layer) const;

  /// Writes the graph to `path`, which exists whole or not at all. Tensors of more than `most` bytes in all
  /// go to `path`.CRC32.data beside it, where readers of ONNX find them: no file refers to another model's
  /// tensors, whenever a writer ends. It then removes the tensor file of the model that it replaced, and the
  /// temporaries of this file whose writers have ended. Returns the bytes of both files. Throws error if the
  /// part that must stay in the model itself (ids of tables) exceeds `longest` bytes, which readers of
  /// Protocol Buffers refuse.
  std::uint64_t write(std::string const& path, std::uint64_t most = std::uint64_t(1) << 30,
                      std::uint64_t longest = 0x7fff'0000) const;

 private:
  friend struct folding;
  struct node {
    std::string op;
    std::vector<std::string> inputs, outputs;
    std::string rest;                      // attributes and domain, as they are written
    std::vector<std::int64_t> order = {};  // of a Transpose
    bool turned = false;                   // a Gemm with transB
  };
  struct channel_scale {
    std::vector<double> factor, shift;
  };
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
  value declare(value v);
  std::string tensor_of_ids(std::string_view name, std::vector<std::int64_t> ids);
  value prepared(std::string const& name, preprocessing const& p, shape of, form as);
  value as_sample(value const& x, shape of, form as);
  std::string rows_of(std::string_view table, std::string const& ids);
  std::string nodes() const;
  std::string of_model(std::string const& names_and_nodes, std::uint64_t tensors) const;

  parameter_layout const& layout_;
  view<float> variables_;
  hyperparameter_view set_;
  std::span<table_rows const> tables_;
  std::string path_, ends_;
  std::vector<node> nodes_;
  std::set<std::string, std::less<>> taken_, whole_;
  mutable std::set<std::string, std::less<>> read_;
  std::vector<stored> stored_;
  std::map<std::pair<std::string, form>, std::string> forms_;
  std::map<int, value> inputs_;
  std::optional<value> row_;
  std::vector<std::pair<std::string, std::string>> notes_;
  std::map<std::string, channel_scale, std::less<>> scales_;        // by output
  std::map<std::string, preprocessing, std::less<>> preprocessed_;  // by input
  std::map<std::string, value, std::less<>> record_;                // inputs that a record has
  bool rows_are_inputs_ = false;
  mask mask_;
  bool ml_ = false;  // it has a node of ONNX's domain for classical models
};

/// Names a layer while it adds nodes. The name of a shared layer may be a path.
class inside {
 public:
  inside(graph& g, std::string_view name) : g_(g) {
    for (auto end = name.find('/'); end != name.npos; end = name.find('/'), ++names_) {
      g.enter(name.substr(0, end));
      name.remove_prefix(end + 1);
    }
    g.enter(name);
  }
  ~inside() {
    for (; names_ > 0; --names_) g_.leave();
  }
  inside(inside const&) = delete;

 private:
  graph& g_;
  int names_ = 1;
};

}  // namespace edl::onnx

#ifdef EDL_HEADER_ONLY
#include "edl/compute/onnx/graph.ipp"
#include "edl/compute/onnx/preprocessing.ipp"
#endif
