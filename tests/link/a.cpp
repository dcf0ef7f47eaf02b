#include "everything.hpp"
#include "network.hpp"

std::size_t a() { return edl::model<tiny, edl::cpu>::parameter_count; }
