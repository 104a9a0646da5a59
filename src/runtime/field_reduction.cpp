// Numbers made of all elements of fields.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tilewave/field.hpp"

namespace tilewave {

namespace {

// Terms of a sum that are made at once: they stay in the nearest cache.
constexpr std::int64_t terms_at_once = 1024;

template <class T>
T load(const std::byte* p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

void check_type(Dtype type, std::int64_t item_bytes) {
    if (tilewave::item_bytes(type) != item_bytes)
        throw ConfigError("reduce: items of " + std::to_string(tilewave::item_bytes(type)) +
                          " bytes were asked for, the field's have " + std::to_string(item_bytes));
}

bool is_float(Dtype type) {
    return type == Dtype::f4 || type == Dtype::f8;
}

// Bytes from the first stored element of a field to one.
std::int64_t offset_of(const FieldStorage& f, const Index& strides, const Index& at) {
    std::int64_t offset = 0;
    for (int k = 0; k < at.n; ++k) offset += (at[k] - f.storage().lo[k]) * strides[k];
    return offset;
}

// f(first element, the dimension of the row, elements) for each row of the own elements, which go where elements are
// closest.
template <class F>
void for_each_row(const FieldStorage& field, F f) {
    const Box own = field.owned();
    if (own.empty()) return;
    const Index strides = field.binding().stride_bytes;
    int along = 0;
    for (int k = 1; k < own.dims(); ++k)
        if (std::abs(strides[k]) <= std::abs(strides[along])) along = k;
    Index at = own.lo;
    do f(at, along, own.extent(along));
    while (next_point(at, own, 1u << along));
}

// make(terms, first, n): n terms from that of element `first` of a row of n elements on.
template <class Term, class Make>
void add_terms(Reduced& to, const Index& at, std::int64_t n, Make make) {
    Term terms[terms_at_once];
    const Index still = Index::filled(at.n, 0);  // where a term is does not matter
    for (std::int64_t first = 0, now = 0; first < n; first += now) {
        now = std::min(n - first, terms_at_once);
        make(terms, first, now);
        to.add(reinterpret_cast<const std::byte*>(terms), sizeof(Term), now, at, still);
    }
}

}  // namespace

Reduced FieldStorage::reduce(const PointReduction& what, ReducedForm form) {
    check_type(what.type, item_bytes_);
    PointReduction asked = what;
    if (form != ReducedForm::value) asked.type = Dtype::f8;
    Reduced mine(asked);
    const Binding b = binding();
    for_each_row(*this, [&](const Index& at, int along, std::int64_t n) {
        const std::byte* const row = b.data + offset_of(*this, b.stride_bytes, at);
        const std::int64_t step = b.stride_bytes[along];
        if (form == ReducedForm::value) {
            Index unit = Index::filled(at.n, 0);
            unit[along] = 1;
            return mine.add(row, step, n, at, unit);
        }
        with_nest_type(what.type, [&](auto zero) {
            using T = decltype(zero);
            add_terms<double>(mine, at, n, [&](double* terms, std::int64_t first, std::int64_t now) {
                for (std::int64_t i = 0; i < now; ++i)
                    terms[i] = static_cast<double>(load<T>(row + (first + i) * step));
                if (form == ReducedForm::square)
                    for (std::int64_t i = 0; i < now; ++i) terms[i] *= terms[i];
                else
                    for (std::int64_t i = 0; i < now; ++i) terms[i] = std::fabs(terms[i]);
            });
        });
    });
    return join_ranks(context_->transport(), {mine})[0];
}

Reduced FieldStorage::dot(FieldStorage& other, Dtype type, Dtype other_type) {
    check_type(type, item_bytes_);
    check_type(other_type, other.item_bytes_);
    if (other.layout_.shape != layout_.shape)
        throw ConfigError("dot: fields of shapes " + to_string(layout_.shape) + " and " +
                          to_string(other.layout_.shape) + "; they must be equal");
    if (!layout_.same_blocks(other.layout_)) {
        FieldStorage moved = other.copy();
        moved.relayout(layout_);
        return dot(moved, type, other_type);
    }
    const bool floats = is_float(type) || is_float(other_type);
    Reduced mine(PointReduction{Reduction::sum, floats ? Dtype::f8 : Dtype::i8, 0, {}, {}});
    const Binding a = binding(), b = other.binding();
    for_each_row(*this, [&](const Index& at, int along, std::int64_t n) {
        const std::byte* const first_a = a.data + offset_of(*this, a.stride_bytes, at);
        const std::byte* const first_b = b.data + offset_of(other, b.stride_bytes, at);
        const std::int64_t step_a = a.stride_bytes[along], step_b = b.stride_bytes[along];
        with_nest_type(type, [&](auto zero_a) {
            using A = decltype(zero_a);
            with_nest_type(other_type, [&](auto zero_b) {
                using B = decltype(zero_b);
                constexpr bool whole = std::is_integral_v<A> && std::is_integral_v<B>;
                using Term = std::conditional_t<whole, std::uint64_t, double>;  // whole numbers wrap
                using Wide = std::conditional_t<whole, std::int64_t, double>;
                add_terms<Term>(mine, at, n, [&](Term* terms, std::int64_t from, std::int64_t now) {
                    const std::byte *x = first_a + from * step_a, *y = first_b + from * step_b;
                    for (std::int64_t i = 0; i < now; ++i)
                        terms[i] = static_cast<Term>(static_cast<Wide>(load<A>(x + i * step_a))) *
                                   static_cast<Term>(static_cast<Wide>(load<B>(y + i * step_b)));
                });
            });
        });
    });
    return join_ranks(context_->transport(), {mine})[0];
}

}  // namespace tilewave
