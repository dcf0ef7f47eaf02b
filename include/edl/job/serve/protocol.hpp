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

/// Outputs of a model as they are answered, or what follows from them.
struct answer_output {
  enum class form : std::uint8_t { numbers, probabilities, name };  ///< `name`: of the likeliest class

  model_output of;
  form how = form::numbers;
  std::string name{};

  std::size_t size() const { return how == form::name ? 1 : of.size(); }
};

/// What a client asks for.
struct question {
  std::string body;                    ///< of the request: `inputs` may be of its bytes
  std::vector<tensor> inputs;          ///< the records' values
  std::size_t rows = 0;                ///< how many records they are
  std::string id;                      ///< is told back
  std::vector<answer_output> outputs;  ///< that are wanted
  std::vector<bool> binary;            ///< how each of them is to be written
  bool columns = false;                ///< TensorFlow Serving's column format
};

/// What a model takes and says.
struct model_face {
  std::string name;
  std::uint64_t version = 0;
  std::vector<record_feature> inputs;
  std::vector<answer_output> outputs;
  std::vector<std::string> classes = {};  ///< names of them
  bool complete = true;                   ///< it takes no other inputs
};

/// A model's outputs, each with what its loss says that it means: NAME_probabilities, and, where classes have
/// names, NAME_class, the name of the likeliest.
std::vector<answer_output> answers_of(std::vector<model_output> const& outputs,
                                      std::vector<std::string> const& classes);

/// What the JSON of a request says, which may have its tensors behind it.
struct inference_head {
  struct tail {
    std::string datatype{};
    std::size_t values = 0, bytes = 0;
  };
  std::string text{};
  question said{};                           ///< with the values that are JSON
  std::vector<std::optional<tail>> tails{};  ///< by input: where its values are bytes
};

/// The body of POST /v2/models/NAME/infer (Open Inference Protocol 2, with its extension for binary tensors).
/// `header`: of the field Inference-Header-Content-Length. The first extent of a tensor counts records.
/// `last`: of the request before to this same model, as clients mostly say the same again, with other bytes.
/// Throws http::failure: 400 that names the input, 413 for more than `most` records.
std::shared_ptr<question const> read_inference(std::string body, std::optional<std::size_t> header,
                                               model_face const& of, std::size_t most, inference_head& last);

/// `outputs`: records × all outputs of the model.
http::response write_inference(question const& q, model_face const& by, view<float> outputs);

/// The body of POST /v1/models/NAME:predict of TensorFlow Serving, rows ("instances") or columns ("inputs").
/// The signature `serving_default` has the model's outputs alone, `probabilities` all that are answered.
std::shared_ptr<question const> read_predict(std::string_view body, model_face const& of, std::size_t most);
http::response write_predict(question const& q, model_face const& by, view<float> outputs);

/// GET /v2/models/NAME; `versions`: those that may be asked for.
std::string metadata(model_face const& of, std::vector<std::string> const& versions);

/// GET /v1/models/NAME/metadata of TensorFlow Serving.
std::string signature(model_face const& of);

}  // namespace edl::serve

#ifdef EDL_HEADER_ONLY
#include "edl/job/serve/protocol.ipp"
#endif
