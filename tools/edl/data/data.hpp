// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "common/command_line.hpp"
#include "edl/compute/data/reader.hpp"

namespace edl::tool {

/// `edl data inspect`: what records lie at a path, in which files, and what is in them.
int inspect(words const& line);
std::vector<flag> inspect_flags();

/// What the files are, for the commands that read them: flags, and what they say.
std::vector<flag> source_flags();
data::source_options source_options_of(command_line const& l);

/// `edl data convert`: records of any format as RecordIO files, as the program's own `data` command does it.
int convert(words const& line);
std::vector<flag> convert_flags();

/// `edl data make`: the training and test records of a data set as RecordIO files, DIRECTORY/NAME/train and
/// test.
int make(words const& line);
std::vector<flag> make_flags();

}  // namespace edl::tool
