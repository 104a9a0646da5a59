#include "tilewave/engine/matrix.hpp"

namespace tilewave {

const char* to_string(Dtype type) {
#define TILEWAVE_DTYPE(name, type, numpy, ...) numpy,
    static constexpr const char* names[] = {TILEWAVE_DTYPES(TILEWAVE_DTYPE)};
#undef TILEWAVE_DTYPE
    return names[static_cast<int>(type)];
}

const char* buffer_format(Dtype type) {
#define TILEWAVE_DTYPE(name, type, numpy, format, ...) format,
    static constexpr const char* formats[] = {TILEWAVE_DTYPES(TILEWAVE_DTYPE)};
#undef TILEWAVE_DTYPE
    return formats[static_cast<int>(type)];
}

const char* to_string(Reduction op) {
    static constexpr const char* names[] = {"sum", "prod", "min", "max", "user"};
    return names[static_cast<int>(op)];
}

const char* to_string(PatternKind kind) {
    static constexpr const char* names[] = {"broadcast", "reduce", "spread", "multi_reduce"};
    return names[static_cast<int>(kind)];
}

}  // namespace tilewave
