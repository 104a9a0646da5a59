#include "nests/field_copy.hpp"

#include "data/memory.hpp"
#include "generate/copy/copy.hpp"

namespace tilewave {

bool FieldCopy::in_place() const {
    return context_.size() == 1 &&
           field_->binding().stride_bytes == row_major_strides(field_->layout().whole(), field_->item_bytes());
}

std::byte* FieldCopy::data() const {
    if (!in_place()) return memory_.get();
    const Binding stored = field_->binding();
    const Index first = field_->layout().storage(0).lo;  // before element 0 where it has a halo
    std::byte* found = stored.data;
    for (int d = 0; d < first.n; ++d) found -= first[d] * stored.stride_bytes[d];
    return found;
}

void FieldCopy::make(CollectiveRun& run, ExecuteOptions options) {
    if (in_place()) return;
    const std::int64_t item = field_->item_bytes();
    Binding from = field_->binding();
    if (version_ != field_->version()) {
        Index stride = from.stride_bytes;
        for (auto& s : stride.v) s /= item;
        const auto generate = everywhere_ ? spread_schedule : gather_schedule;
        execution_.reset();
        schedule_ = generate(field_->layout(), item, context_.rank(), context_.size(), std::int64_t{1} << 20, stride);
        execution_.emplace(*schedule_);
        version_ = field_->version();
    }
    const Box& whole = schedule_->arrays[1].storage;
    if (!memory_ && !whole.empty()) run.obtain([&] { memory_ = aligned_memory(whole.points() * item); });
    options.record = options.events = false;
    const Binding both[] = {from, {memory_.get(), row_major_strides(field_->layout().whole(), item)}};
    run.move({&*execution_}, both, std::move(options));
}

}  // namespace tilewave
