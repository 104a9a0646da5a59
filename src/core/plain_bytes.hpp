// Plain values one after another in a string: what ranks, which run one program on one kind of processor, send each
// other.
#pragma once
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "tilewave/error.hpp"

namespace tilewave {

/// The value at an address of any alignment.
template <class T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// Appends a value.
template <class T>
void put(std::string& out, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Appends how many values there are, and the values.
template <class T>
void put(std::string& out, const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(out, values.size());
    out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// Appends values to others.
template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

/// Takes them in the order in which they were put.
/// @pre the bytes are whole (InternalError)
class PlainBytes {
public:
    /// Reads from the byte `at`; the string must live as long.
    explicit PlainBytes(const std::string& bytes, std::size_t at = 0) : bytes_(bytes), at_(at) {}
    template <class T>
    T take() {
        T value;
        std::memcpy(&value, next(1, sizeof value), sizeof value);
        return value;
    }
    template <class T>
    std::vector<T> take_all() {
        std::vector<T> values;
        const auto count = take<std::size_t>();
        const char* from = next(count, sizeof(T));
        values.resize(count);
        if (count > 0) std::memcpy(values.data(), from, count * sizeof(T));
        return values;
    }

private:
    const char* next(std::size_t count, std::size_t size) {
        if ((bytes_.size() - at_) / size < count) throw InternalError("what a rank sent came in part");
        at_ += count * size;
        return bytes_.data() + at_ - count * size;
    }
    const std::string& bytes_;
    std::size_t at_ = 0;
};

}  // namespace tilewave
