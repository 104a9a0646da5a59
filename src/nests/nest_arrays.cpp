#include "nests/nest_arrays.hpp"

#include <algorithm>

#include "data/rows.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

NestArrays::NestArrays(Context& context, std::span<const ArrayReads> given, std::span<const NestOperandPart> operands,
                       const PreparedSweep& sweep) {
    for (std::size_t a = 0; a < operands.size(); ++a) {
        const ArrayReads& array = given[static_cast<std::size_t>(operands[a].array)];
        RunArray& made = all_.emplace_back();
        if (operands[a].whole)
            made.whole = copy_of(array, operands[a]);
        else
            made.field = array.field;
        if (!array.window) continue;
        if (!sweep.in_window(static_cast<int>(a))) {
            stored_.push_back({std::make_unique<FieldStorage>(context, array.shape, array.item_bytes), array.window});
            made.field = stored_.back().field.get();
            continue;
        }
        const std::vector<std::int64_t> elements = sweep.initial(static_cast<int>(a));
        const auto dims = static_cast<std::size_t>(array.shape.n);
        // One more: memory that nobody reads stands for no elements.
        auto& values = initial_.emplace_back((elements.size() / dims + 1) * static_cast<std::size_t>(array.item_bytes));
        for (std::size_t n = 0; n * dims < elements.size(); ++n)
            array.window->initial(Index(std::span(elements).subspan(n * dims, dims)),
                                  values.data() + n * static_cast<std::size_t>(array.item_bytes));
        made.initial = values.data();
        made.same = false;
    }
}

// A part of the copy of a field, which is made once.
Binding NestArrays::copy_of(const ArrayReads& array, const NestOperandPart& part) {
    const Box all{Index::filled(array.shape.n, 0), array.shape};
    auto found = std::ranges::find(copies_, array.field, &Copy::field);
    if (found == copies_.end()) {
        copies_.push_back({array.field, std::vector<std::byte>(static_cast<std::size_t>(
                                            all.points() * array.item_bytes + array.item_bytes))});
        found = copies_.end() - 1;
    }
    Binding memory{found->memory.data(), row_major_strides(all, array.item_bytes)};
    for (int d = 0; d < part.scale.n; ++d) {
        memory.data += part.residue[d] * memory.stride_bytes[d];
        memory.stride_bytes[d] *= part.scale[d];
    }
    return memory;
}

void NestArrays::copy_again(Context& context) {
    for (Copy& copy : copies_) {
        std::byte* const data = copy.memory.data();
        const std::int64_t bytes = std::ssize(copy.memory) - copy.field->item_bytes();
        copy.field->gather(data);
        broadcast(context.transport(), std::span(data, static_cast<std::size_t>(bytes)), 0,
                  [&](std::int64_t n) { return n == bytes ? data : nullptr; });
    }
}

void NestArrays::begin() {
    for (const Stored& s : stored_) {
        const Box owned = s.field->owned(), storage = s.field->storage();
        if (owned.empty()) continue;
        const Binding memory = s.field->binding();
        Index at = owned.lo;
        do {
            std::int64_t offset = 0;
            for (int d = 0; d < at.n; ++d) offset += (at[d] - storage.lo[d]) * memory.stride_bytes[d];
            s.window->initial(at, memory.data + offset);
        } while (next_point(at, owned));
    }
}

}  // namespace tilewave
