#include "tilewave/engine/fast_paths.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "tilewave/error.hpp"

namespace tilewave {

namespace {

constexpr std::array names{
#define TILEWAVE_PATH(name, text) std::string_view(#name),
    TILEWAVE_FAST_PATHS(TILEWAVE_PATH)
#undef TILEWAVE_PATH
};
static_assert(names.size() <= 8 * sizeof(PathsOff));

}  // namespace

PathsOff paths_off(const std::string& given) {
    PathsOff off = 0;
    std::istringstream parts(given);
    for (std::string name; std::getline(parts, name, ',');) {
        std::erase(name, ' ');
        const auto at = std::ranges::find(names, name);
        if (at == names.end())
            throw ConfigError("TILEWAVE_WITHOUT is '" + given + "', and no fast path is called '" + name +
                              "'; allowed, with commas between them: " + names_of(~PathsOff{0}));
        off |= PathsOff{1} << (at - names.begin());
    }
    return off;
}

std::string names_of(PathsOff off) {
    std::string all;
    for (std::size_t k = 0; k < names.size(); ++k)
        if (off >> k & 1) all += (all.empty() ? "" : ", ") + std::string(names[k]);
    return all;
}

}  // namespace tilewave
