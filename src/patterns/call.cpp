#include "patterns/call.hpp"

#include "data/rows.hpp"

namespace tilewave {

namespace {

std::string shape(const MatrixView& m) {
    return std::to_string(m.rows) + "x" + std::to_string(m.cols) + " " + to_string(m.type);
}

void check_view(const MatrixView& m, const std::string& what) {
    if (m.rows < 0 || m.cols < 0) throw ConfigError(what + " has shape " + shape(m) + "; extents >= 0 are allowed");
    if (m.rows > 1 && m.cols > 0 && (m.row_stride_bytes < m.row_bytes() || m.row_stride_bytes % m.item_bytes()))
        throw ConfigError(what + " has a row stride of " + std::to_string(m.row_stride_bytes) +
                          " bytes; allowed: a multiple of " + std::to_string(m.item_bytes()) +
                          " that is at least the row's " + std::to_string(m.row_bytes()));
}

}  // namespace

std::string check_call(const PatternCall& c, int rank, int ranks) {
    try {
        const std::string name = to_string(c.kind);
        if (!c.error.empty()) return c.error;
        if (c.root < 0 || c.root >= ranks)
            throw ConfigError(name + ": root " + std::to_string(c.root) + " was given; allowed: 0 to " +
                              std::to_string(ranks - 1));
        check_view(c.in, name + ": the matrix");
        const bool gets =
            !c.allocate && c.kind != PatternKind::broadcast && (c.kind != PatternKind::reduce || rank == c.root);
        if (gets) check_view(c.out, name + ": out");
        if (gets && c.in.type != c.out.type)
            throw ConfigError(name + ": the matrix is " + to_string(c.in.type) + ", out is " + to_string(c.out.type) +
                              "; they must be equal");
        if (gets && (c.in.rows != c.out.rows || (c.kind == PatternKind::reduce && c.in.cols != c.out.cols)))
            throw ConfigError(name + ": the matrix is " + shape(c.in) + ", out is " + shape(c.out) +
                              (has_parts(c.kind) ? "; they need equally many rows" : "; they must be equal"));
        const bool reduces = c.kind == PatternKind::reduce || c.kind == PatternKind::multi_reduce;
        if (reduces && c.op != Reduction::user && !combine_row(c.op, c.in.type))
            throw ConfigError(name + ": op '" + to_string(c.op) + "' of " + to_string(c.in.type) + " was asked for; " +
                              (c.in.type == Dtype::b1 ? "allowed: 'max' (any), 'min' (all), or integers, to count"
                                                      : "complex numbers have no order"));
        return "";
    } catch (const ConfigError& e) {
        return e.what();
    }
}

std::string describe(const PatternCall& c) {
    std::string text = to_string(c.kind);
    // Parts of a spread differ in columns; the whole must not.
    text += c.kind == PatternKind::spread ? " of " + std::to_string(c.in.rows) + " rows of " + to_string(c.in.type)
                                          : " of " + shape(c.in);
    if (!c.outer.empty()) text += " (rows " + c.outer + ")";
    if (!has_parts(c.kind)) text += ", root " + std::to_string(c.root);
    if (has_parts(c.kind)) text += ", block " + (c.block ? std::to_string(c.block) : "none");
    if (c.kind == PatternKind::reduce || c.kind == PatternKind::multi_reduce)
        text += std::string(", op ") + to_string(c.op) + (c.user_name.empty() ? "" : " " + c.user_name);
    const auto choice = [](std::int64_t n) { return n ? std::to_string(n) : "auto"; };
    text += std::string(", algorithm ") + to_string(c.request.algorithm) + ", chunk_bytes " +
            choice(c.request.chunk_bytes) + ", buffers " + choice(c.request.buffers);
    return text + (c.keep ? ", start=False" : "");
}

}  // namespace tilewave
