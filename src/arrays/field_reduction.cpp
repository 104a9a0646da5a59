// Numbers made of all elements of fields.
#include <algorithm>
#include <cmath>
#include <optional>

#include "arrays/tuning.hpp"
#include "context/agreement.hpp"
#include "core/plain_bytes.hpp"
#include "tilewave/field.hpp"

namespace tilewave {

using namespace tuning;

namespace {

// `type`: that of a part where the items are complex.
void check_type(Dtype type, std::int64_t item_bytes, ComplexPart part) {
    const bool half = part != ComplexPart::none && 2 * tilewave::item_bytes(type) == item_bytes;
    if (tilewave::item_bytes(type) != item_bytes && !half)
        throw ConfigError("reduce: items of " + std::to_string(tilewave::item_bytes(type)) +
                          " bytes were asked for, the field's have " + std::to_string(item_bytes));
}

// Bytes from the first stored element of a field to one.
std::int64_t offset_of(const FieldStorage& f, const Index& strides, const Index& at) {
    std::int64_t offset = 0;
    for (int k = 0; k < at.n; ++k) offset += (at[k] - f.storage().lo[k]) * strides[k];
    return offset;
}

// The direction (1, -1) across two dimensions along which neighbours in memory lie, as in skewed storage.
// Empty: none.
Index diagonal(const Index& strides, std::int64_t item_bytes) {
    for (int k = 0; k < strides.n; ++k)
        if (std::abs(strides[k]) == item_bytes) return {};
    for (int a = 0; a < strides.n; ++a)
        for (int b = a + 1; b < strides.n; ++b)
            if (std::abs(strides[a] - strides[b]) == item_bytes)
                return Index::unit(strides.n, a) - Index::unit(strides.n, b);
    return {};
}

// f(first element, direction, elements) for each row of this rank's elements, along the dimension of least stride.
template <class F>
void for_each_row(const FieldStorage& field, F f) {
    const Box owned = field.owned();
    if (owned.empty()) return;
    const Index strides = field.binding().stride_bytes;
    Index at = owned.lo;
    if (const Index across = diagonal(strides, field.item_bytes()); across.n > 0) {
        int a = 0;
        while (across[a] != 1) ++a;
        int b = a;
        while (across[b] != -1) ++b;
        do  // the diagonals begin in the first row, then in the last column
            for (std::int64_t d = 0; d < owned.extent(a) + owned.extent(b) - 1; ++d) {
                const std::int64_t right = std::min(d, owned.extent(b) - 1), down = d - right;
                Index first = at;
                first[a] += down;
                first[b] += right;
                f(first, across, std::min(owned.extent(a) - down, right + 1));
            }
        while (next_point(at, owned, 1u << a | 1u << b));
        return;
    }
    int along = 0;
    for (int k = 1; k < owned.dims(); ++k)
        if (std::abs(strides[k]) <= std::abs(strides[along])) along = k;
    const Index unit = Index::unit(owned.dims(), along);
    do f(at, unit, owned.extent(along));
    while (next_point(at, owned, 1u << along));
}

// Bytes from an element to the next one of a row.
std::int64_t step_of(const Index& strides, const Index& direction) {
    std::int64_t step = 0;
    for (int k = 0; k < strides.n; ++k) step += strides[k] * direction[k];
    return step;
}

// f(first of a, its step, first of b, its step, elements) for the elements of this rank, of which both fields have the
// same: in rows as long as neighbours in both lie at equal distances, in any order.
template <class F>
void for_each_run(const FieldStorage& a, const FieldStorage& b, F f) {
    const Box owned = a.owned();
    if (owned.empty()) return;
    const Binding in_a = a.binding(), in_b = b.binding();
    if (diagonal(in_a.stride_bytes, a.item_bytes()).n > 0)
        return for_each_row(a, [&](const Index& at, const Index& direction, std::int64_t n) {
            f(in_a.data + offset_of(a, in_a.stride_bytes, at), step_of(in_a.stride_bytes, direction),
              in_b.data + offset_of(b, in_b.stride_bytes, at), step_of(in_b.stride_bytes, direction), n);
        });
    struct Loop {
        std::int64_t count, a, b, at;
    };
    std::vector<Loop> loops;
    for (int k = 0; k < owned.dims(); ++k)
        if (owned.extent(k) > 1) loops.push_back({owned.extent(k), in_a.stride_bytes[k], in_b.stride_bytes[k], 0});
    std::ranges::stable_sort(loops, [](const Loop& x, const Loop& y) { return std::abs(x.a) < std::abs(y.a); });
    if (loops.empty()) loops.push_back({1, a.item_bytes(), b.item_bytes(), 0});
    for (std::size_t k = 1; k < loops.size();) {
        Loop& inner = loops[k - 1];
        if (loops[k].a != inner.count * inner.a || loops[k].b != inner.count * inner.b) {
            ++k;
            continue;
        }
        inner.count *= loops[k].count;
        loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(k));
    }
    const std::byte* at_a = in_a.data + offset_of(a, in_a.stride_bytes, owned.lo);
    const std::byte* at_b = in_b.data + offset_of(b, in_b.stride_bytes, owned.lo);
    for (std::size_t k = 0; k < loops.size();) {
        f(at_a, loops[0].a, at_b, loops[0].b, loops[0].count);
        for (k = 1; k < loops.size(); ++k) {
            at_a += loops[k].a;
            at_b += loops[k].b;
            if (++loops[k].at < loops[k].count) break;
            at_a -= loops[k].count * loops[k].a;
            at_b -= loops[k].count * loops[k].b;
            loops[k].at = 0;
        }
    }
}

// n elements with a stride of `step` bytes, converted.
template <class Wide>
using Convert = void (*)(Wide* to, const std::byte* from, std::int64_t step, std::int64_t n);

// By a function of each type, so that what takes two types is not compiled for each pair of them.
template <class Wide>
Convert<Wide> converter(Dtype type) {
    Convert<Wide> found = nullptr;
    with_real_type(type, [&](auto zero) {
        using T = decltype(zero);
        found = [](Wide* to, const std::byte* from, std::int64_t step, std::int64_t n) {
            if (step == sizeof(T))  // vectors
                for (std::int64_t i = 0; i < n; ++i)
                    to[i] = static_cast<Wide>(load<T>(from + i * static_cast<std::int64_t>(sizeof(T))));
            else
                for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<Wide>(load<T>(from + i * step));
        };
    });
    return found;
}

// Terms of row after row, which are added together: short rows cost little more than long ones.
template <class Term>
class Terms {
public:
    // Where a term is does not matter: `at` may be any element.
    Terms(Reduced& to, const Index& at) : to_(to), at_(at) {}
    Terms(const Terms&) = delete;
    Terms& operator=(const Terms&) = delete;

    // make(terms, first, n): n terms from that of element `first` of a row of n elements on.
    template <class Make>
    void add(std::int64_t n, Make make) {
        for (std::int64_t first = 0, now = 0; first < n; first += now) {
            if (count_ == terms_at_once) finish();
            now = std::min(n - first, terms_at_once - count_);
            make(terms_ + count_, first, now);
            count_ += now;
        }
    }
    void finish() {
        to_.add(reinterpret_cast<const std::byte*>(terms_), sizeof(Term), count_, at_, Index::filled(at_.n, 0));
        count_ = 0;
    }

private:
    Reduced& to_;
    Index at_;
    std::int64_t count_ = 0;
    Term terms_[terms_at_once];
};

// A product of one part of each factor: bytes from the item to the part.
struct PartsProduct {
    std::int64_t left = 0, right = 0;
    bool minus = false;
};

// The products whose sum a part of a complex product is; `left`, `right`: bytes from the real to the imaginary part of
// a complex factor, 0 of a real one.
std::vector<PartsProduct> products_of(std::int64_t left, std::int64_t right, ComplexPart part) {
    std::vector<PartsProduct> result;
    if (part != ComplexPart::imaginary) {
        result.push_back({});
        if (left && right) result.push_back({left, right, true});
        return result;
    }
    if (right) result.push_back({0, right, false});
    if (left) result.push_back({left, 0, false});
    return result;
}

}  // namespace

Reduced FieldStorage::reduce(const PointReduction& what, ReducedForm form, ComplexPart part) {
    check_type(what.type, item_bytes_, part);
    if (part != ComplexPart::none && (form == ReducedForm::value) == (part == ComplexPart::both))
        throw ConfigError(
            "reduce: of complex items one part, or the magnitudes or squares of both, were to be asked for");
    const std::int64_t to_imaginary = part == ComplexPart::none ? 0 : tilewave::item_bytes(what.type);
    PointReduction asked = what;
    const bool as_they_are = form == ReducedForm::value && (what.op != Reduction::sum || !is_float(what.type));
    if (!as_they_are) asked.type = Dtype::f8;
    Reduced result(asked);
    const Binding b = binding();
    if (as_they_are) {
        for_each_row(*this, [&](const Index& at, const Index& direction, std::int64_t n) {
            const std::byte* const row = b.data + offset_of(*this, b.stride_bytes, at);
            result.add(part == ComplexPart::imaginary ? row + to_imaginary : row, step_of(b.stride_bytes, direction), n,
                       at, direction);
        });
        return reduce_over_ranks(context_->transport(), {result})[0];
    }
    Terms<double> all(result, owned().lo);
    const Convert<double> convert = converter<double>(what.type);
    for_each_run(*this, *this,
                 [&](const std::byte* row, std::int64_t step, const std::byte*, std::int64_t, std::int64_t n) {
                     if (what.type == Dtype::f8 && form == ReducedForm::value && part == ComplexPart::none &&
                         step == sizeof(double) && n >= terms_at_once)
                         return result.add(row, step, n, owned().lo, Index::filled(owned().dims(), 0));
                     all.add(n, [&](double* terms, std::int64_t first, std::int64_t now) {
                         const std::byte* const from = row + first * step;
                         convert(terms, part == ComplexPart::imaginary ? from + to_imaginary : from, step, now);
                         if (form == ReducedForm::value) return;
                         if (to_imaginary > 0) {
                             double others[terms_at_once];
                             convert(others, from + to_imaginary, step, now);
                             if (form == ReducedForm::magnitude)
                                 for (std::int64_t i = 0; i < now; ++i) terms[i] = std::hypot(terms[i], others[i]);
                             else
                                 for (std::int64_t i = 0; i < now; ++i)
                                     terms[i] = terms[i] * terms[i] + others[i] * others[i];
                             return;
                         }
                         if (form == ReducedForm::square)
                             for (std::int64_t i = 0; i < now; ++i) terms[i] *= terms[i];
                         else
                             for (std::int64_t i = 0; i < now; ++i) terms[i] = std::fabs(terms[i]);
                     });
                 });
    all.finish();
    return reduce_over_ranks(context_->transport(), {result})[0];
}

Reduced FieldStorage::dot(FieldStorage& other, Dtype type, Dtype other_type, ComplexPart part) {
    check_type(type, item_bytes_, part);
    check_type(other_type, other.item_bytes_, part);
    if (other.layout_.shape != layout_.shape)
        throw ConfigError("dot: fields of shapes " + to_string(layout_.shape) + " and " +
                          to_string(other.layout_.shape) + "; they must be equal");
    if (!layout_.same_blocks(other.layout_)) {
        std::optional<FieldStorage> moved;
        agree_after(*context_, "a product with a field in other blocks", [&] { moved.emplace(other.copy()); });
        moved->relayout(layout_);
        return dot(*moved, type, other_type, part);
    }
    const bool floats = is_float(type) || is_float(other_type);
    const std::vector<PartsProduct> products =
        products_of(tilewave::item_bytes(type) != item_bytes_ ? tilewave::item_bytes(type) : 0,
                    tilewave::item_bytes(other_type) != other.item_bytes_ ? tilewave::item_bytes(other_type) : 0, part);
    Reduced result(PointReduction{Reduction::sum, floats ? Dtype::f8 : Dtype::i8, 0, {}, {}});
    const auto add = [&](auto zero) {
        using Term = decltype(zero);
        const Convert<Term> convert_a = converter<Term>(type), convert_b = converter<Term>(other_type);
        Terms<Term> all(result, owned().lo);
        for_each_run(*this, other,
                     [&](const std::byte* first_a, std::int64_t step_a, const std::byte* first_b, std::int64_t step_b,
                         std::int64_t n) {
                         for (const PartsProduct& p : products)
                             all.add(n, [&](Term* terms, std::int64_t from, std::int64_t now) {
                                 Term factors[terms_at_once];
                                 convert_a(terms, first_a + from * step_a + p.left, step_a, now);
                                 convert_b(factors, first_b + from * step_b + p.right, step_b, now);
                                 for (std::int64_t i = 0; i < now; ++i) terms[i] *= factors[i];
                                 if (p.minus)
                                     for (std::int64_t i = 0; i < now; ++i) terms[i] = Term{} - terms[i];
                             });
                     });
        all.finish();
    };
    if (floats)
        add(double{});
    else
        add(std::uint64_t{});  // whole numbers wrap
    return reduce_over_ranks(context_->transport(), {result})[0];
}

}  // namespace tilewave
