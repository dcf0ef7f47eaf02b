// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edl/base/http/message.hpp"
#include "edl/core/span.hpp"
#include "edl/job/serve/tensor.hpp"
#include "edl/job/train/prediction/model_output.hpp"
#include "edl/job/train/prediction/record_feature.hpp"

namespace edl::serve {

/// Outputs of a model in a reply, or values derived from them.
struct answer_output {
  enum class form : std::uint8_t { numbers, probabilities, name };  ///< `name`: of the most probable class

  model_output of;
  form how = form::numbers;
  std::string name{};

  std::size_t size() const { return how == form::name ? 1 : of.size(); }
};

/// A client's request.
struct question {
  std::string body;                    ///< of the request: `inputs` may be of its bytes
  std::vector<tensor> inputs;          ///< the records' values
  std::size_t rows = 0;                ///< how many records they are
  std::string id;                      ///< returned in the reply
  std::vector<answer_output> outputs;  ///< that are requested
  std::vector<bool> binary;            ///< the format of each
  bool columns = false;                ///< TensorFlow Serving's column format
};

/// The inputs and outputs of a model.
struct model_face {
  std::string name;
  std::uint64_t version = 0;
  std::vector<record_feature> inputs;
  std::vector<answer_output> outputs;
  std::vector<std::string> classes = {};  ///< names of them
  bool complete = true;                   ///< it takes no other inputs
};

/// A model's outputs, each followed by the values that its loss defines: NAME_probabilities, and, if classes
/// have names, NAME_class, the name of the most probable one.
std::vector<answer_output> answers_of(std::vector<model_output> const& outputs,
                                      std::vector<std::string> const& classes);

/// The JSON part of a request, which binary tensors may follow.
struct inference_head {
  struct tail {
    std::string datatype{};
    std::size_t values = 0, bytes = 0;
  };
  std::string text{};
  question said{};                           ///< with the values from JSON
  std::vector<std::optional<tail>> tails{};  ///< by input: its place in the binary part
};

/// The body of POST /v2/models/NAME/infer (Open Inference Protocol 2, with its extension for binary tensors).
/// `header`: the field Inference-Header-Content-Length. The first extent of a tensor counts records. `last`:
/// the JSON part of the previous request to this model, because clients mostly repeat it with other binary
/// data. Throws http::failure: 400 that names the input, 413 for more than `most` records.
std::shared_ptr<question const> read_inference(std::string body, std::optional<std::size_t> header,
                                               model_face const& of, std::size_t most, inference_head& last);

/// `outputs`: records × all outputs of the model.
http::response write_inference(question const& q, model_face const& by, view<float> outputs);

/// The body of POST /v1/models/NAME:predict of TensorFlow Serving, rows ("instances") or columns ("inputs").
/// The signature `serving_default` has only the model's outputs, `probabilities` all of them.
std::shared_ptr<question const> read_predict(std::string_view body, model_face const& of, std::size_t most);
http::response write_predict(question const& q, model_face const& by, view<float> outputs);

/// GET /v2/models/NAME; `versions`: those that requests may name.
std::string metadata(model_face const& of, std::vector<std::string> const& versions);

/// GET /v1/models/NAME/metadata of TensorFlow Serving.
std::string signature(model_face const& of);

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/protocol.ipp"
#endif
