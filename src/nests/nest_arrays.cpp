#include "nests/nest_arrays.hpp"

#include <algorithm>

#include "data/rows.hpp"

namespace tilewave {

NestArrays::NestArrays(Context& context, std::span<const ArrayReads> given, std::span<const NestOperandPart> operands,
                       const PreparedSweep& sweep) {
    for (int a = 0; a < static_cast<int>(operands.size()); ++a) {
        const NestOperandPart& part = operands[static_cast<std::size_t>(a)];
        const ArrayReads& array = given[static_cast<std::size_t>(part.array)];
        RunArray& made = all_.emplace_back();
        if (part.whole) {
            made.whole = whole_part(a, array, part);
        } else if (array.row) {
            windows_.push_back(std::make_unique<FieldStorage>(context, array.shape, array.item_bytes));
            made.field = windows_.back().get();
            rows_.push_back({array.field, made.field, {}, {}, {}, array.item_bytes, true});
        } else if (array.window && !sweep.in_window(a)) {
            made.field = stored(context, array);
            made.anew = true;
        } else if (array.window) {
            const std::vector<std::int64_t> elements = sweep.initial(a);
            const auto dims = static_cast<std::size_t>(array.shape.n),
                       item = static_cast<std::size_t>(array.item_bytes);
            // One more: memory that nobody reads stands for no elements.
            auto& values = memory_.emplace_back((elements.size() / dims + 1) * item);
            for (std::size_t n = 0; n * dims < elements.size(); ++n)
                array.window->initial(Index(std::span(elements).subspan(n * dims, dims)), values.data() + n * item);
            made.initial = values.data();
            made.same = false;
        } else {
            made.field = array.field;
        }
    }
}

// A part of a field, of which zeros stand for all.
Binding NestArrays::whole_part(int number, const ArrayReads& array, const NestOperandPart& part) {
    const Box all{Index::filled(array.shape.n, 0), array.shape};
    auto found = std::ranges::find(whole_, array.field, &WholeField::field);
    if (found == whole_.end()) {
        const auto& zeros = memory_.emplace_back(static_cast<std::size_t>((all.points() + 1) * array.item_bytes));
        whole_.push_back({array.field, zeros.data()});
        found = whole_.end() - 1;
    }
    found->arrays.push_back(number);
    Binding memory{const_cast<std::byte*>(found->stand_in), row_major_strides(all, array.item_bytes)};
    for (int d = 0; d < part.scale.n; ++d) {
        memory.data += part.residue[d] * memory.stride_bytes[d];
        memory.stride_bytes[d] *= part.scale[d];
    }
    return memory;
}

// A window as a field.
FieldStorage* NestArrays::stored(Context& context, const ArrayReads& array) {
    FieldStorage& field =
        *windows_.emplace_back(std::make_unique<FieldStorage>(context, array.shape, array.item_bytes));
    const Box owned = field.owned();
    if (owned.empty()) return &field;
    const Binding memory = field.binding();
    const LocalPart part{memory.data, memory.stride_bytes, field.storage().lo, owned};
    Index at = owned.lo;
    do array.window->initial(at, part.at(at));
    while (next_point(at, owned));
    return &field;
}

}  // namespace tilewave
