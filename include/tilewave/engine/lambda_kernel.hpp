// What calls a body: a generic lambda over offsets as a kernel for rows of points.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "tilewave/engine/kernel.hpp"
#include "tilewave/operand.hpp"

namespace tilewave {

/// A body whose last results are values of the point that are reduced and stored nowhere; see reducing().
template <class Body, class... Values>
struct ReducingBody {
    Body body;
    std::array<Reduction, sizeof...(Values)> ops;
    template <class... Views>
    [[gnu::always_inline]] auto operator()(const Views&... views) const {
        return body(views...);
    }
};
/// A body that also gives a value of each of these types, after those of the arrays that it writes; of all points one
/// number is made by sum, max or min, in Report::reduced. With such a body a nest need not write any array:
///
///     auto report = tilewave::run(context, {}, tilewave::reducing<double>({tilewave::Reduction::sum}, [](auto u) {
///         const double d = u(0, 0) - u(-1, 0);
///         return d * d;
///     }), tilewave::only_reads<two>(u));
///     const double norm = std::sqrt(report.reduced[0].value<double>());
///
/// Sums of floats are exact, rounded once to double; of integers they are int64, modulo 2^64.
template <class... Values, class Body>
ReducingBody<Body, Values...> reducing(const std::array<Reduction, sizeof...(Values)>& ops, Body body) {
    return {std::move(body), ops};
}

namespace detail {

template <class Body>
struct RowValues {
    using Types = std::tuple<>;
    static std::array<Reduction, 0> ops(const Body&) { return {}; }
};
template <class Body, class... Values>
struct RowValues<ReducingBody<Body, Values...>> {
    using Types = std::tuple<Values...>;
    static std::array<Reduction, sizeof...(Values)> ops(const ReducingBody<Body, Values...>& b) { return b.ops; }
};

template <class Body, class... Operands>
class LambdaKernel {
public:
    explicit LambdaKernel(Body body) : body_(std::move(body)) {}
    Kernel kernel() const {
        Kernel k;
        k.row = &row;
        k.env = this;
        k.uses_index = (Operands::uses_index || ...);
        [&]<std::size_t... V>(std::index_sequence<V...>) {
            (k.values.push_back(sizeof(std::tuple_element_t<V, Values>)), ...);
            (k.reductions.push_back(
                 reduction(RowValues<Body>::ops(body_)[V], V, dtype_of<std::tuple_element_t<V, Values>>())),
             ...);
        }(std::make_index_sequence<values>());
        return k;
    }
    std::string error() const {
        std::scoped_lock guard(lock_);
        return error_;
    }
    void forget_error() {
        std::scoped_lock guard(lock_);
        error_.clear();
    }

private:
    using Values = typename RowValues<Body>::Types;
    static constexpr std::size_t values = std::tuple_size_v<Values>;
    static constexpr std::size_t written = (std::size_t{Operands::written} + ...);
    static constexpr std::array<bool, sizeof...(Operands)> writes_it{Operands::written...};
    static constexpr std::size_t places = written + (Operands::reads + ... + 0);
    static constexpr int loops = std::max({Operands::loops...});
    static_assert(written + values > 0, "a nest writes an array, or its body is made by reducing()");
    static_assert(std::ranges::is_sorted(writes_it, std::greater<>()), "arrays that are written come first");

    // Element = point: the value belongs to no array.
    static PointReduction reduction(Reduction op, std::size_t value, Dtype type) {
        PointReduction r{op, type, static_cast<int>(places + value)};
        r.axes = r.shift = Index::filled(loops, 0);
        for (int k = 0; k < loops; ++k) r.axes[k] = k;
        return r;
    }
    // Bytes from point to point where all of a row are neighbours along the last loop, by place and then by value.
    static constexpr std::array<std::int64_t, places + values> unit_steps = [] {
        std::array<std::int64_t, places + values> steps{};
        std::size_t p = 0;
        ((Operands::written ? steps[p++] = sizeof(typename Operands::Value) : 0), ...);
        const auto add = [&]<class Operand>(const Operand*) {
            for (std::size_t r = 0; r < Operand::reads; ++r)
                steps[p++] = Operand::moves(r, loops - 1) ? sizeof(typename Operand::Value) : 0;
        };
        (add(static_cast<const Operands*>(nullptr)), ...);
        [&]<std::size_t... V>(std::index_sequence<V...>) {
            ((steps[p++] = sizeof(std::tuple_element_t<V, Values>)), ...);
        }(std::make_index_sequence<values>());
        return steps;
    }();
    // Flattened: a body that is not inlined looks up its offsets at every point.
    [[gnu::flatten]] static std::int64_t row(char* const* ptr, const std::int64_t* step, std::int64_t n,
                                             const std::int64_t* index, const std::int64_t* direction,
                                             const void* env) {
        const auto* self = static_cast<const LambdaKernel*>(env);
        // Two loops: unit steps are known when compiling, so that the first one can become vectors.
        const auto operands = std::index_sequence_for<Operands...>{};
        if (std::equal(unit_steps.begin(), unit_steps.end(), step))
            return self->run(ptr, unit_steps.data(), n, index, direction, operands);
        return self->run(ptr, step, n, index, direction, operands);
    }
    template <std::size_t... A>
    [[gnu::always_inline]] inline std::int64_t run(char* const* ptr, const std::int64_t* step, std::int64_t n,
                                                   const std::int64_t* index, const std::int64_t* direction,
                                                   std::index_sequence<A...>) const {
        constexpr std::array<std::size_t, sizeof...(Operands)> counts{Operands::reads...};
        std::array<std::size_t, sizeof...(Operands)> first{};
        first[0] = written;
        for (std::size_t a = 1; a < first.size(); ++a) first[a] = first[a - 1] + counts[a - 1];
        std::int64_t q = 0;
        try {
            for (; q < n; ++q)
                store(ptr, step, q,
                      body_(typename Operands::View{
                          RowOfPoints{ptr + first[A], step + first[A], Operands::written ? ptr[A] : nullptr,
                                      Operands::written ? step[A] : 0, index, direction},
                          q}...));
        } catch (const std::exception& e) {
            return note(e.what(), q);
        } catch (...) {
            return note("an exception that is no std::exception", q);
        }
        return 0;
    }
    // One value, or a tuple of one for each array that is written and each that is reduced.
    template <class Value>
    [[gnu::always_inline]] static void store(char* const* ptr, const std::int64_t* step, std::int64_t q,
                                             const Value& value) {
        if constexpr (requires { std::tuple_size<Value>::value; }) {
            static_assert(std::tuple_size_v<Value> == written + values,
                          "the body gives a value for each array that is written, then one for each that is reduced");
            [&]<std::size_t... W>(std::index_sequence<W...>) {
                (store_one<W>(ptr, step, q, std::get<W>(value)), ...);
            }(std::make_index_sequence<written + values>());
        } else {
            static_assert(written + values == 1, "a body with several results gives a tuple of values");
            store_one<0>(ptr, step, q, value);
        }
    }
    template <std::size_t W, class Value>
    [[gnu::always_inline]] static void store_one(char* const* ptr, const std::int64_t* step, std::int64_t q,
                                                 const Value& value) {
        if constexpr (W < written) {
            using Out = typename std::tuple_element_t<W, std::tuple<Operands...>>::Value;
            *reinterpret_cast<Out*>(ptr[W] + q * step[W]) = static_cast<Out>(value);
        } else {
            using Out = std::tuple_element_t<W - written, Values>;
            constexpr std::size_t p = places + W - written;
            *reinterpret_cast<Out*>(ptr[p] + q * step[p]) = static_cast<Out>(value);
        }
    }
    std::int64_t note(const char* what, std::int64_t q) const {
        std::scoped_lock guard(lock_);
        if (error_.empty()) error_ = what;
        return q * error_sites + 1;
    }

    Body body_;
    mutable std::mutex lock_;
    mutable std::string error_;
};

/// What stands for a body on all ranks of a program: its type's name alone does not, as lambdas of functions that two
/// files keep to themselves may share it. `place` lies in memory of that type's alone.
std::string body_name(const char* type, const void* place);
template <class Body>
std::string body_name() {
    static char place;
    return body_name(typeid(Body).name(), &place);
}

}  // namespace detail

}  // namespace tilewave
