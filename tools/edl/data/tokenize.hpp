// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/command_line.hpp"

namespace edl::tool {

/// `edl data tokenize`: texts as a token file (edl/compute/data/format/token_file.hpp).
int tokenize(words const& line);
std::vector<flag> tokenize_flags();

/// `edl data train-tokenizer`: a tokenizer.json of one's own from texts.
int train_tokenizer(words const& line);
std::vector<flag> train_tokenizer_flags();

}  // namespace edl::tool
