// Running communication patterns on a context: blocking, in flight side by side, and buffered sends.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "tilewave/context.hpp"
#include "tilewave/engine/pattern.hpp"

namespace tilewave {

/// A reduction by a function of the caller's: n points, into[i] = left[i] op right[i]. Returns false when it failed,
/// and failure() is then the reason. Any call on the context may invoke it, as any call makes progress with the
/// pattern.
struct UserReduction {
    std::function<bool(std::byte* into, const std::byte* left, const std::byte* right, std::int64_t n)> combine;
    std::function<std::string()> failure;
};

/// One call of a pattern as one rank makes it.
struct PatternCall {
    PatternKind kind = PatternKind::broadcast;
    MatrixView in;   ///< broadcast: read on the root, written elsewhere
    MatrixView out;  ///< not for broadcast; reduce: on the root alone
    int root = 0;
    Reduction op = Reduction::sum;
    UserReduction user;      ///< with op user
    std::int64_t block = 0;  ///< spread and multi_reduce: see PatternProblem
    /// Where this rank's part lies inside its whole matrix: the part's first column; -1: it does not.
    std::int64_t part_inside = -1;
    PatternRequest request;
    bool keep = false;  ///< agree and plan only: start() runs it, any number of times
    /// A spread with no `out`: called with the columns of all ranks once they are known. Before that, where a call like
    /// it came earlier: with the columns of then, and once more if they have changed.
    std::function<MatrixView(std::int64_t)> allocate;
    Caller caller;          ///< its function is described by `kind` where it has no name
    std::string user_name;  ///< with op user: which function; must be equal on all ranks
    std::string outer;  ///< of arrays of more than two dimensions, all extents but the last; must be equal on all ranks
    std::string error;  ///< what the caller has found wrong on this rank
    bool lacks_memory = false;     ///< that is what is wrong
    std::shared_ptr<void> memory;  ///< let go when the handle is gone and nothing is in flight
};

class PatternOperation;

/// A pattern in flight, or made with PatternCall::keep.
class PatternHandle : public RepeatedHandle {
public:
    explicit PatternHandle(std::shared_ptr<PatternOperation> operation);
    /// Valid once the ranks have agreed; of a pattern that is made to be repeated, at once.
    const PatternPlan& plan() const;
    /// Seconds of the last run on this rank, after the agreement; 0 where the matrices travelled with the agreement.
    double time_s() const;

private:
    PatternOperation& operation() const;
};

/// Starts a pattern; collective in effect: the ranks of a context start theirs in one order. Costs
/// an agreement, ceil(log2 ranks) small messages a rank, before the data move or, of small matrices, with them; its
/// errors are raised by wait() and test(). A call with `keep` is agreed on before it returns.
/// Errors so raised on every rank: arguments that differ, matrices that do not fit together, a
/// root, block, algorithm, chunk or number of buffers that is not allowed, `call.error`.
PatternHandle start_pattern(Context& context, PatternCall call);

/// start_pattern() and wait() in one call with less overhead, for small matrices. Where an interrupt ends the call
/// before the pattern is complete, the pattern holds `memory()` until then: it must keep the caller's memory alive.
/// @pre not call.keep (not checked)
void run_pattern(Context& context, PatternCall call, const std::function<std::shared_ptr<void>()>& memory);

/// How buffered sends of a context behave.
struct SendLimits {
    std::int64_t bytes = 256 << 20;  ///< the most that is buffered for messages not yet received
    bool wait = true;                ///< at the limit: wait for receivers (else refuse)
};

/// Copies the matrix and returns; the copy is sent when the receiver is ready. A single copy packs and buffers.
/// Messages with one tag to one rank arrive in order. Not collective. `memory` is released at the end.
/// @pre 0 <= to < size, 0 <= tag <= 2047 (ConfigError)
/// @pre the copy fits in limits.bytes (ConfigError); without limits.wait, in addition to the messages that
///   are waiting already
void send_buffered(Context& context, const MatrixView& matrix, int to, int tag, const SendLimits& limits = {},
                   std::shared_ptr<void> memory = nullptr);

/// Receives what send_buffered() sent from `from` with `tag` into `matrix`. Not collective.
/// A message of another shape or dtype is taken off the wire, then refused by wait() and test().
/// `memory` is released at the end.
/// @pre 0 <= from < size, 0 <= tag <= 2047 (ConfigError)
/// @pre rows, columns and dtype are the message's (ConfigError)
Handle start_receive(Context& context, const MatrixView& matrix, int from, int tag,
                     std::shared_ptr<void> memory = nullptr);

/// Waits until nothing is in flight on this context.
void complete(Context& context);

}  // namespace tilewave
