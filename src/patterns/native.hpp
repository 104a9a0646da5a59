// A pattern by MPI's collective, which needs matrices without gaps between rows.
#pragma once
#include <vector>

#include "tilewave/engine/transport.hpp"
#include "tilewave/patterns.hpp"

namespace tilewave {

/// One rank's side of such a call, and copies of its matrices without gaps where the caller's have some.
class NativePattern {
public:
    /// Gets memory for what post() copies. `columns`: of each rank's part, or of the matrix where there are no parts.
    /// @throws std::bad_alloc
    void prepare(const PatternCall& call, std::vector<std::int64_t> columns, int rank);
    /// Copies what must be copied, and posts the library's call with id 0.
    void post(const PatternCall& call, int rank, Transport& port);
    /// Copies what the call brought to where the caller wants it. @pre the call is over
    void take_results(const PatternCall& call, int rank);
    std::int64_t buffer_bytes() const { return static_cast<std::int64_t>(given_.size() + got_.size()); }

private:
    NativeCall native_;
    std::vector<std::byte> given_, got_;
};

}  // namespace tilewave
