// Texts and checks of the choices of products and factors.
#include <algorithm>
#include <sstream>
#include <type_traits>

#include "core/concat.hpp"
#include "tilewave/engine/linalg_plan.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

namespace {

template <class T>
std::string text_of_choice(const T& value) {
    if constexpr (std::is_enum_v<T>) {
        return choice_names<T>[static_cast<std::size_t>(value)];
    } else if constexpr (std::is_same_v<T, Index> || std::is_same_v<T, Weights>) {
        return to_string(value);
    } else {
        std::ostringstream text;
        text.precision(17);
        text << std::boolalpha << value;
        return text.str();
    }
}

template <class T>
void add(std::string& text, const char* name, const std::optional<T>& given) {
    if (given) text += (text.empty() ? "" : ", ") + std::string(name) + "=" + text_of_choice(*given);
}

template <class T>
void check_least(const std::string& call, const char* name, const std::optional<T>& given, double least) {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
        if (given && !(static_cast<double>(*given) >= least))
            throw ConfigError(concat(call, ": ", name, ": given ", text_of_choice(*given),
                                     "; allowed: ", (std::is_integral_v<T> ? "an integer >= " : "a number >= "),
                                     static_cast<std::int64_t>(least)));
}

void check_weights(const std::string& call, const std::optional<Weights>& given, int ranks) {
    const auto allowed = [](std::int64_t weight) { return weight >= 1 && weight <= most_weight; };
    if (given && !given->empty() && (std::ssize(*given) != ranks || !std::ranges::all_of(*given, allowed)))
        throw ConfigError(concat(call, ": weights: given ", to_string(*given), "; allowed: for each of ", ranks,
                                 " ranks an integer from 1 to ", most_weight, ", or none"));
}

}  // namespace

#define TILEWAVE_CHOICE(type, name, otherwise, least, doc) add(text, #name, options.name);
std::string text_of(const ProductOptions& options) {
    std::string text;
    TILEWAVE_PRODUCT_CHOICES(TILEWAVE_CHOICE)
    add(text, "memory", options.memory_bytes);
    add(text, "weights", options.weights);
    return text;
}

std::string text_of(const FactorOptions& options) {
    std::string text;
    TILEWAVE_FACTOR_CHOICES(TILEWAVE_CHOICE)
    add(text, "memory", options.memory_bytes);
    add(text, "weights", options.weights);
    return text;
}
#undef TILEWAVE_CHOICE

#define TILEWAVE_CHOICE(type, name, otherwise, least, doc) check_least(call, #name, options.name, least);
void check_choices(const std::string& call, const ProductOptions& options, int ranks) {
    check_weights(call, options.weights, ranks);
    TILEWAVE_PRODUCT_CHOICES(TILEWAVE_CHOICE)
    if (options.pending.value_or(false) &&
        options.algorithm.value_or(ProductAlgorithm::wavefront) != ProductAlgorithm::wavefront)
        throw ConfigError(call + ": pending was given with algorithm '" + text_of_choice(*options.algorithm) +
                          "'; allowed: 'wavefront'");
}

void check_choices(const std::string& call, const FactorOptions& options, int ranks) {
    check_weights(call, options.weights, ranks);
    TILEWAVE_FACTOR_CHOICES(TILEWAVE_CHOICE)
    if (options.algorithm == FactorAlgorithm::wavefront && options.tree == BroadcastTree::least_rounds)
        throw ConfigError(call + ": tree 'least_rounds' was given with algorithm 'wavefront'; allowed: 'ring'");
}
#undef TILEWAVE_CHOICE

}  // namespace tilewave
