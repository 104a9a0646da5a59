#include "patterns/native.hpp"

#include "data/rows.hpp"

namespace tilewave {

namespace {

void copy_matrix(const MatrixView& to, const MatrixView& from) {
    const std::int64_t item = from.item_bytes();
    copy_box(to.data, {to.row_stride_bytes, item}, from.data, {from.row_stride_bytes, item}, {from.rows, from.cols},
             item);
}

// The same matrix without gaps between rows, in memory that starts at `data`.
MatrixView dense(MatrixView m, std::byte* data) {
    m.data = data;
    m.row_stride_bytes = m.row_bytes();
    return m;
}

// copy(part of the whole, the same part in memory where the parts follow each other)
template <class Copy>
void for_parts(const MatrixView& whole, const std::vector<std::int64_t>& columns, std::byte* data, Copy copy) {
    std::int64_t first = 0;
    for (std::int64_t n : columns) {
        const MatrixView part = whole.columns(first, n);
        copy(part, dense(part, data));
        data += part.bytes();
        first += n;
    }
}

}  // namespace

// MPI's collectives need matrices without gaps, and parts one after another.
void NativePattern::prepare(const PatternCall& call, std::vector<std::int64_t> columns, int rank) {
    const bool root = rank == call.root;
    const bool gets = call.kind != PatternKind::broadcast && (call.kind != PatternKind::reduce || root);
    native_.columns = std::move(columns);
    if (call.kind == PatternKind::multi_reduce || !call.in.contiguous()) given_.resize(call.in.bytes());
    if (gets && (call.kind == PatternKind::spread || !call.out.contiguous())) got_.resize(call.out.bytes());
}

void NativePattern::post(const PatternCall& call, int rank, Transport& port) {
    native_.kind = call.kind;
    native_.in = call.in;
    native_.out = call.out;
    native_.root = call.root;
    native_.op = call.op;
    if (call.kind == PatternKind::multi_reduce) {
        for_parts(call.in, native_.columns, given_.data(),
                  [](const MatrixView& part, const MatrixView& to) { copy_matrix(to, part); });
        native_.in.data = given_.data();
    } else if (!given_.empty()) {
        native_.in = dense(call.in, given_.data());
        if (call.kind != PatternKind::broadcast || rank == call.root) copy_matrix(native_.in, call.in);
    }
    if (!got_.empty()) native_.out = dense(call.out, got_.data());
    port.post_native(0, native_);
}

void NativePattern::take_results(const PatternCall& call, int rank) {
    const bool root = rank == call.root;
    switch (call.kind) {
        case PatternKind::broadcast:
            if (!root && native_.in.data != call.in.data) copy_matrix(call.in, native_.in);
            break;
        case PatternKind::reduce:
            if (root && native_.out.data != call.out.data) copy_matrix(call.out, native_.out);
            break;
        case PatternKind::spread:
            for_parts(call.out, native_.columns, got_.data(),
                      [](const MatrixView& part, const MatrixView& from) { copy_matrix(part, from); });
            break;
        case PatternKind::multi_reduce:
            if (native_.out.data != call.out.data) copy_matrix(call.out, native_.out);
            break;
    }
}

}  // namespace tilewave
