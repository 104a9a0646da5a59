// Fields that points of a nest update: by values that its body gives, at places or in any order.
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tilewave/engine/kernel.hpp"
#include "tilewave/nest.hpp"

namespace tilewave {

/// Calls a body for rows of points, and updates fields by what it gives. What is updated in any order is memory of this
/// rank, of the whole field, and goes to the field after a run.
class UpdatedFields {
public:
    /// What `body` refers to must live on. Local.
    /// @pre a row of values of each updated field has room in `room_bytes` (ConfigError)
    /// @pre at most max_places places of the body and values (ConfigError)
    UpdatedFields(const Kernel& body, const NestProblem& nest, std::span<const ArrayReads> arrays);
    UpdatedFields(const UpdatedFields&) = delete;
    UpdatedFields& operator=(const UpdatedFields&) = delete;

    /// That of the problem; it refers to this.
    Kernel kernel() const;
    /// Before a run: no point has been there. Local.
    void begin();
    /// After a run: updates the fields by what all ranks' points have given; nothing after another end(). Collective.
    void end();
    /// Fields that are updated in any order.
    bool has(const FieldStorage* field) const;

private:
    struct Updated {
        UpdatedArray what;
        Update op;
        std::optional<Dtype> type;
        FieldStorage* field;
        std::int64_t item_bytes, first = 0;  // of an element; bytes to that of loop indices 0
        Index strides = {};                  // in bytes, by loop
        Index axes = {};
        std::int64_t bytes = 0;  // found in any order; of last values with a byte for each, 1 where there is one
        std::shared_ptr<std::byte[]> found = {},
                                     other = {};  // copies of this rank's lanes, and room for another rank's
        std::int64_t copies(std::size_t all) const { return op == Update::last ? 1 : static_cast<std::int64_t>(all); }
        std::int64_t elements() const { return field->layout().whole().points(); }
    };
    static constexpr std::int64_t room_bytes = 8192;

    std::int64_t compute(char* const* ptr, const std::int64_t* step, std::int64_t n, const std::int64_t* index,
                         const std::int64_t* direction) const;
    std::pair<std::size_t, std::unique_lock<std::mutex>> free_copy() const;
    static void update(const Updated& of, std::size_t copy, const std::byte* values, std::int64_t n, const Index& index,
                       const Index& direction);
    static void keep_last(const Updated& of, const std::byte* values, std::int64_t n, const Index& index,
                          const Index& direction);
    void give(const Updated& of) const;

    Kernel body_;
    std::vector<int> places_;  // NestProblem::places
    std::size_t problem_places_;
    int dims_;
    std::int64_t share_bytes_, most_points_;  // of the room: for one field; values of any
    std::vector<Updated> all_;
    std::size_t copies_;  // of what is found: as many as lanes, where they have room
    std::unique_ptr<std::mutex[]> locks_;
    bool begun_ = false;
};

}  // namespace tilewave
