#include <algorithm>
#include <optional>
#include <utility>

#include "arrays/matrix_move.hpp"
#include "data/memory.hpp"
#include "dense/plans.hpp"

namespace tilewave {

namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 60;  // of a rank's part of a matrix

// Bytes of a rank's part; they are counted where there can be so many.
std::int64_t bytes_of(const Box& owned, Dtype type) {
    std::int64_t bytes = item_bytes(type);
    bool fits = true;
    for (int k = 0; k < owned.dims(); ++k)
        fits = fits && !__builtin_mul_overflow(bytes, std::max<std::int64_t>(owned.extent(k), 1), &bytes);
    if (!fits || bytes > most_bytes)
        throw ConfigError("matrix: a part of " + std::to_string(owned.extent(0)) + " x " +
                          std::to_string(owned.extent(1)) + " elements was given; allowed: at most 2^60 bytes");
    return owned.empty() ? 0 : bytes;
}

}  // namespace

BlockCyclic by_block_rows(std::int64_t rows, std::int64_t columns, int ranks, std::int64_t block) {
    return {{rows, ranks, block}, {columns, 1, 0}};
}

BlockCyclic by_block_columns(std::int64_t rows, std::int64_t columns, int ranks, std::int64_t block) {
    return {{rows, 1, 0}, {columns, ranks, block}};
}

MatrixStorage::MatrixStorage(Context& context, const BlockCyclic& layout, Dtype type)
    : MatrixStorage(context, layout, type, nullptr) {
    require(type == Dtype::f4 || type == Dtype::f8 || is_complex(type),
            std::string("matrix: dtype ") + to_string(type) +
                " was given; allowed: float32, float64, complex64, complex128");
    require(layout.ranks() <= context.size(), "matrix: a grid of " + std::to_string(layout.ranks()) +
                                                  " ranks was given; allowed: at most " +
                                                  std::to_string(context.size()));
    memory_ = aligned_memory(bytes_of(owned_, type));
}

MatrixStorage::MatrixStorage(Context& context, const BlockCyclic& layout, Dtype type,
                             std::shared_ptr<std::byte[]> memory)
    : context_(&context),
      layout_(layout),
      type_(type),
      owned_(layout.owned(context.rank())),
      memory_(std::move(memory)) {}

MatrixStorage::MatrixStorage(const MatrixStorage& other)
    : MatrixStorage(*other.context_, other.layout_, other.type_, aligned_memory(other.bytes())) {
    std::copy_n(other.data(), other.bytes(), data());
}

MatrixStorage& MatrixStorage::operator=(MatrixStorage other) noexcept {
    context_ = other.context_;
    layout_ = other.layout_;
    type_ = other.type_;
    owned_ = other.owned_;
    memory_ = std::move(other.memory_);
    return *this;
}

Binding MatrixStorage::binding() const {
    const std::int64_t item = item_bytes(type_);
    return {memory_.get(), {item, std::max<std::int64_t>(1, rows()) * item}};
}

Weights MatrixStorage::weights() const {
    return layout_.ranks() == context_->size() ? layout_.weights() : Weights();
}

std::string MatrixStorage::text() const {
    const auto& [r, c] = std::pair{layout_.rows, layout_.columns};
    const Weights of_rows = r.weights(), of_columns = c.weights();
    const std::string weights =
        of_rows.empty() && of_columns.empty() ? "" : ", weights " + to_string(of_rows) + " x " + to_string(of_columns);
    const auto by = [](auto a, auto b) { return std::to_string(a) + " x " + std::to_string(b); };
    return "a matrix of " + by(r.extent, c.extent) + " " + to_string(type_) + " on " + by(r.parts, c.parts) +
           " ranks, blocks of " + by(r.block, c.block) + weights +
           (layout_.ranks_by_column ? ", ranks by columns" : "");
}

MatrixStorage MatrixStorage::redistributed(const BlockCyclic& layout) const {
    std::optional<MatrixStorage> made;
    std::optional<ReadyMove> move;
    begin_call(*context_, "redistributed", [&] {
        made.emplace(*context_, layout, type_);
        move.emplace(*context_, MatrixMove(layout_, layout, item_bytes(type_), context_->size()));
        return text() + " to " + made->text();
    });
    move->run(binding(), made->binding());
    return std::move(*made);
}

void MatrixStorage::gather(const std::function<std::byte*()>& place) const {
    std::byte* to = nullptr;
    begin_call(*context_, "gather", [&] {
        to = place();
        return text();
    });
    const MatrixStorage whole = redistributed({{layout_.rows.extent, 1, 0}, {layout_.columns.extent, 1, 0}});
    std::copy_n(whole.data(), whole.bytes(), to);
}

}  // namespace tilewave
