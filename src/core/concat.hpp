// Texts made of parts, for messages.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace tilewave {

/// The parts one after another: strings as they are, numbers in decimal, other types by their to_string().
template <class... Parts>
std::string concat(const Parts&... parts) {
    std::string text;
    const auto add = [&](const auto& part) {
        using Part = std::decay_t<decltype(part)>;
        if constexpr (std::is_convertible_v<const Part&, std::string_view> || std::is_same_v<Part, char>)
            text += part;
        else if constexpr (std::is_arithmetic_v<Part>)
            text += std::to_string(part);
        else
            text += to_string(part);
    };
    (add(parts), ...);
    return text;
}

/// So many of what has a name in the singular: "1 rank", "3 ranks".
inline std::string counted(std::int64_t number, std::string_view name) {
    return concat(number, " ", name, number == 1 ? "" : "s");
}

}  // namespace tilewave
