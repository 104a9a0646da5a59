#include "arrays/converted_array.hpp"

#include <algorithm>

#include "arrays/conversion.hpp"
#include "arrays/tuning.hpp"
#include "context/progress_engine.hpp"
#include "data/rows.hpp"

namespace tilewave {

ConvertedArray::ConvertedArray(Context& context, int array, const Binding& whole, const NestArray& n,
                               const Layout& layout, const MemoryOrder& order, int time_buffers)
    : array_(array), item_bytes_(n.item_bytes), extents_(layout.shape), stored_(layout.storage(0)), whole_(whole) {
    memory_ = context.engine()->spare->lend(order.items * item_bytes_ * time_buffers);
    binding_.data = memory_.get() + order.first * item_bytes_;
    binding_.stride_bytes = order.stride;
    for (auto& s : binding_.stride_bytes.v) s *= item_bytes_;
    if (!stored_.empty())  // memory begins with the halo
        for (int k = 0; k < stored_.dims(); ++k) binding_.data -= stored_.lo[k] * binding_.stride_bytes[k];
}

std::byte* ConvertedArray::at(const Index& element) const {
    std::byte* data = binding_.data;
    if (!stored_.empty())
        for (int k = 0; k < element.n; ++k) data += element[k] * binding_.stride_bytes[k];
    return data;
}

void ConvertedArray::copy_in(Context& context) const {
    copy_on_lanes(context, binding_.data, binding_.stride_bytes, whole_.data, whole_.stride_bytes, extents_,
                  item_bytes_);
    wrap();
}

// The halo of one dimension after the other, each with the halos of those before it: corners come out right.
void ConvertedArray::wrap() const {
    if (stored_.empty()) return;
    Box layer{Index::filled(extents_.n, 0), extents_};
    for (int k = 0; k < extents_.n; ++k) {
        for (std::int64_t to = stored_.lo[k]; to < stored_.hi[k]; ++to) {
            const std::int64_t from = floor_mod(to, extents_[k]);
            if (from == to) continue;
            const Box one = layer.with(k, to, to + 1);
            Index source = one.lo;
            source[k] = from;
            copy_box(at(one.lo), binding_.stride_bytes, at(source), binding_.stride_bytes, one.hi - one.lo,
                     item_bytes_);
        }
        layer = layer.with(k, stored_.lo[k], stored_.hi[k]);
    }
}

void ConvertedArray::copy_back(Context& context, const SweepProblem& problem) const {
    if (!problem.written(array_)) return;
    copy_on_lanes(context, whole_.data, whole_.stride_bytes, binding_.data, binding_.stride_bytes, extents_,
                  item_bytes_);
}

double ConvertedArray::copy_s(Context& context, const SweepProblem& problem) {
    std::int64_t items = 1;
    for (auto n : extents_) items *= n;
    if (items == 0) return 0;
    const std::int64_t all = extents_[0];
    const double pieces = std::max<double>(1.0, static_cast<double>(items) / tuning::tried_items);
    extents_[0] = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(all) / pieces));
    Binding copy{nullptr, row_major_strides(Box{Index::filled(extents_.n, 0), extents_}, item_bytes_)};
    std::int64_t bytes = item_bytes_;
    for (auto n : extents_) bytes *= n;
    const auto target = context.engine()->spare->lend(bytes);
    copy.data = target.get();
    copy_in(context);  // memory that nobody has touched yet is slower: not timed
    const double begin = now_s();
    if (problem.written(array_))
        copy_on_lanes(context, copy.data, copy.stride_bytes, binding_.data, binding_.stride_bytes, extents_,
                      item_bytes_);
    copy_in(context);
    return (now_s() - begin) * static_cast<double>(all) / static_cast<double>(extents_[0]);
}

}  // namespace tilewave
