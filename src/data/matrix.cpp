#include "tilewave/matrix.hpp"

namespace tilewave {

const char* to_string(Dtype type) {
    static constexpr const char* names[] = {"float32", "float64", "complex64", "complex128", "int32",
                                            "int64",   "uint8",   "int8",      "int16",      "bool"};
    return names[static_cast<int>(type)];
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
