#include "nests/visited_elements.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "transport/collectives.hpp"

namespace tilewave {

VisitedElements::VisitedElements(std::span<const StepElements> elements, std::int64_t steps,
                                 std::span<const ArrayReads> arrays, bool updated)
    : elements_(elements) {
    for (const StepElements& each : elements) {
        const auto is_it = [&](const ArrayReads& a) {
            return a.written && a.field == each.field && !a.row && (updated || !a.update);
        };
        const auto array = std::ranges::find_if(arrays, is_it);
        const std::int64_t item = item_bytes(each.type);
        if (array == arrays.end())
            throw ConfigError(
                "elements: a field was given that the nest does not write in time; allowed: with steps, fields that "
                "it writes");
        if (std::ssize(each.values) != steps * std::ssize(each.at) * item)
            throw ConfigError("elements: " + std::to_string(std::ssize(each.values) / item) + " values for " +
                              std::to_string(each.at.size()) + " elements and " + std::to_string(steps) +
                              " steps were given; allowed: one for each element and step");
        std::vector<std::int64_t>& subscripts = subscripts_.emplace_back();
        for (const Index& at : each.at) {
            const Box all{Index::filled(array->shape.n, 0), array->shape};
            if (at.n != array->shape.n || !all.contains(at))
                throw ConfigError("elements: " + to_string(at) + " was given; allowed: inside a field of shape " +
                                  to_string(array->shape));
            subscripts.insert(subscripts.end(), at.begin(), at.end());
        }
        const auto updated = [](const ArrayReads& a) { return a.update.has_value(); };  // a nest in time has no others
        points_.push_back({static_cast<int>(array - arrays.begin() - std::count_if(arrays.begin(), array, updated)),
                           {},
                           each.values.data(),
                           item,
                           each.added ? add_item(each.type, each.type) : nullptr});
        if (!each.added) std::ranges::fill(each.values, std::byte{});
    }
    for (std::size_t k = 0; k < points_.size(); ++k) points_[k].subscripts = subscripts_[k];
}

void VisitedElements::visit(std::int64_t step) const {
    for (std::size_t n = 0; n < elements_.size(); ++n) {
        FieldStorage& field = *elements_[n].field;
        const Binding memory = field.binding();
        const LocalPart here{memory.data, memory.stride_bytes, field.storage().lo, field.owned()};
        const StepPoints& points = points_[n];
        const auto count = std::ssize(elements_[n].at);
        for (std::int64_t k = 0; k < count; ++k) {
            const Index& at = elements_[n].at[static_cast<std::size_t>(k)];
            if (!here.owned.contains(at)) continue;
            std::byte* const value = points.values + (step * count + k) * points.value_bytes;
            if (points.add)
                points.add(here.at(at), value, 1);
            else
                std::memcpy(value, here.at(at), static_cast<std::size_t>(points.value_bytes));
        }
    }
}

void VisitedElements::gather(Context& context) const {
    for (const StepElements& each : elements_) {
        if (each.added) continue;
        std::vector<std::byte> other(each.values.size());
        allreduce(context.transport(), each.values, other,
                  [&] { std::ranges::transform(each.values, other, each.values.begin(), std::bit_or()); });
    }
}

}  // namespace tilewave
