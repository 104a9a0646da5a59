// The types of array elements, each declared once.
#pragma once
#include <array>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace tilewave {

// X(name, C++ type, NumPy's name, format of Python's buffers)
// clang-format off
#define TILEWAVE_DTYPES(X) \
    X(b1, bool, "bool", "?") \
    X(i1, std::int8_t, "int8", "b") \
    X(i2, std::int16_t, "int16", "h") \
    X(i4, std::int32_t, "int32", "i") \
    X(i8, std::int64_t, "int64", "l") \
    X(u1, std::uint8_t, "uint8", "B") \
    X(u2, std::uint16_t, "uint16", "H") \
    X(u4, std::uint32_t, "uint32", "I") \
    X(u8, std::uint64_t, "uint64", "L") \
    X(f4, float, "float32", "f") \
    X(f8, double, "float64", "d") \
    X(c8, std::complex<float>, "complex64", "Zf") \
    X(c16, std::complex<double>, "complex128", "Zd")
// clang-format on

#define TILEWAVE_DTYPE(name, ...) name,
enum class Dtype : std::uint8_t { TILEWAVE_DTYPES(TILEWAVE_DTYPE) };
#undef TILEWAVE_DTYPE

#define TILEWAVE_DTYPE(name, ...) Dtype::name,
inline constexpr std::array all_dtypes{TILEWAVE_DTYPES(TILEWAVE_DTYPE)};
#undef TILEWAVE_DTYPE

constexpr std::int64_t item_bytes(Dtype type) {
#define TILEWAVE_DTYPE(name, type, ...) sizeof(type),
    constexpr std::int64_t bytes[] = {TILEWAVE_DTYPES(TILEWAVE_DTYPE)};
#undef TILEWAVE_DTYPE
    return bytes[static_cast<int>(type)];
}

/// NumPy's name: "float32", "complex128", ...
const char* to_string(Dtype type);

/// How Python's buffer protocol names the type.
const char* buffer_format(Dtype type);

constexpr bool is_complex(Dtype type) {
    return type == Dtype::c8 || type == Dtype::c16;
}

constexpr bool is_float(Dtype type) {
    return type == Dtype::f4 || type == Dtype::f8;
}

/// Whether values of the type are reduced to one number; complex ones are by their parts.
constexpr bool in_reductions(Dtype type) {
    return !is_complex(type);
}

/// The Dtype of a C++ type.
template <class T>
consteval Dtype dtype_of() {
#define TILEWAVE_DTYPE(name, number, ...) \
    if (std::is_same_v<T, number>) return Dtype::name;
    TILEWAVE_DTYPES(TILEWAVE_DTYPE)
#undef TILEWAVE_DTYPE
    throw "no element type of arrays";
}

/// f of a zero of the C++ type, for the types for which in_reductions() holds.
template <class F>
void with_real_type(Dtype type, F f) {
#define TILEWAVE_DTYPE(name, number, ...)     \
    if constexpr (in_reductions(Dtype::name)) \
        if (type == Dtype::name) return f(number{});
    TILEWAVE_DTYPES(TILEWAVE_DTYPE)
#undef TILEWAVE_DTYPE
}

}  // namespace tilewave
