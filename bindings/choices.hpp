// Choices of plans, which are declared in lists, as attributes of Python's objects.
#pragma once
#include <optional>
#include <string>
#include <type_traits>

#include "casters.hpp"
#include "tilewave/engine/plan_choices.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

template <class T>
inline constexpr bool is_kind = !choice_names<T>.empty();

template <class T>
T kind_of(const char* choice, const std::string& name) {
    std::string allowed;
    for (std::size_t i = 0; i < choice_names<T>.size(); ++i) {
        if (name == choice_names<T>[i]) return static_cast<T>(i);
        allowed += (i ? ", '" : "'") + std::string(choice_names<T>[i]) + "'";
    }
    throw ConfigError(std::string(choice) + " '" + name + "' was given; allowed: " + allowed);
}

/// A choice as Python has it: kinds by name.
template <class T>
auto to_python(const T& value) {
    if constexpr (is_kind<T>)
        return std::string(choice_names<T>[static_cast<std::size_t>(value)]);
    else
        return value;
}

template <class T>
std::string allowed() {
    if constexpr (is_kind<T>) {
        std::string names;
        for (const char* name : choice_names<T>) names += (names.empty() ? "'" : ", '") + std::string(name) + "'";
        return names;
    }
    if constexpr (std::is_same_v<T, Index> || std::is_same_v<T, Weights>) return "a tuple of integers";
    if constexpr (std::is_same_v<T, bool>) return "True, False";
    return std::is_integral_v<T> ? "an integer" : "a number";
}

/// An attribute of a plan, and of what fixes some of its choices; and (name, default, allowed values, documentation).
template <class T, class Plan, class Request>
void bind_choice(nb::class_<Plan>& plan, nb::class_<Request>& request, nb::list& all, const char* name,
                 T Plan::* chosen, std::optional<T> Request::* fixed, const char* doc) {
    using Given = decltype(to_python(std::declval<T>()));
    const auto taken = [name](const Given& given) {
        if constexpr (is_kind<T>)
            return kind_of<T>(name, given);
        else
            return given;
    };
    plan.def_prop_rw(
        name, [chosen](const Plan& p) { return to_python(p.*chosen); },
        [chosen, taken](Plan& p, Given given) { p.*chosen = taken(given); }, doc);
    request.def_prop_rw(
        name, [fixed](const Request& r) { return r.*fixed ? std::optional(to_python(*(r.*fixed))) : std::nullopt; },
        [fixed, taken](Request& r, std::optional<Given> given) {
            r.*fixed = given ? std::optional(taken(*given)) : std::nullopt;
        },
        nb::arg().none(), doc);
    all.append(nb::make_tuple(name, to_python(Plan().*chosen), allowed<T>(), doc));
}

}  // namespace tilewave
