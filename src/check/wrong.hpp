// How the checks of steps end where one is wrong.
#pragma once
#include <optional>
#include <string>

#include "core/concat.hpp"
#include "tilewave/engine/check.hpp"

namespace tilewave {

/// What is wrong with a step, a work or an array; who knows which one it is makes a Violation of it.
struct Mistake {
    std::string why;
};

/// @throws Mistake with these parts as one text
template <class... Parts>
[[noreturn]] void wrong(const Parts&... why) {
    throw Mistake{concat(why...)};
}

/// Calls `check`, and puts a name before what is wrong: "left operand: its buffer ...".
template <class F>
void named(const std::string& name, F check) {
    try {
        check();
    } catch (const Mistake& found) {
        wrong(name, ": ", found.why);
    }
}

/// The first step for which `check(lane, step)` throws.
template <class F>
std::optional<Violation> first_wrong_step(const Schedule& s, F check) {
    Violation found{s.rank, 0, 0, ""};
    try {
        for (std::size_t l = 0; l < s.lanes.size(); ++l)
            for (std::size_t i = 0; i < s.lanes[l].size(); ++i) {
                found.lane = static_cast<int>(l), found.step = i;
                check(l, i);
            }
        return std::nullopt;
    } catch (const Mistake& of_step) {
        found.why = of_step.why;
        return found;
    }
}

}  // namespace tilewave
