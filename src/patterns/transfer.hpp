// Plan, schedule and staging buffers of a pattern's call, cached for the next call like it: making them costs several
// times a small transfer.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "context/agreement.hpp"
#include "context/progress_engine.hpp"
#include "execute/execution.hpp"
#include "tilewave/patterns.hpp"

namespace tilewave {

class PatternTransfer {
public:
    /// All of a call but the addresses of its matrices, its function and its number.
    struct Key {
        PatternKind kind;
        std::int64_t rows, columns, stride, out_rows, out_columns, out_stride;
        Dtype type, out_type;
        int root;
        Reduction op;
        std::int64_t block, part_inside;
        Algorithm algorithm;
        std::int64_t chunk_bytes;
        int buffers;
        bool allocates;
        std::string user_name, outer, function;
        friend bool operator==(const Key&, const Key&) = default;
    };
    static Key key(const PatternCall& call);

    /// What the ranks compare, and what they agreed on. The first two numbers of `given` are a hash of `agreed` and of
    /// the parts' columns, and its negative, where this rank has the memory for the call already, else 0. `agreed` is
    /// without these two.
    struct Compared {
        Key key;
        std::shared_ptr<const HashedStatus> status;
        std::vector<std::int64_t> given, agreed;
    };
    static constexpr std::size_t memory_numbers = 2;

    PatternTransfer(Context& context, Compared compared, const PatternProblem& problem,
                    std::shared_ptr<const PatternPlan> plan, const PatternCall& call);

    const Compared& compared() const { return compared_; }
    const std::shared_ptr<const PatternPlan>& plan() const { return plan_; }
    const PatternProblem& problem() const { return problem_; }
    /// Whether it fits a call of equal key and agreement, now that call.out is known.
    bool fits(const PatternCall& call) const { return out_stride_ == call.out.row_stride_bytes; }
    /// Ready to run for `call`, which must live on, with messages of tag `tag`.
    void set_tag_and_memory(PatternCall& call, int tag);
    Execution& execution() { return *execution_; }
    const Combine& combine() const { return combine_; }
    /// They stay allocated between calls.
    std::int64_t buffer_bytes() const { return schedule_.buffer_bytes(); }

    /// An idle one whose key is `key`, to be used by the caller alone; null where there is none.
    static std::shared_ptr<PatternTransfer> take(ProgressEngine& engine, const Key& key);
    /// For the calls to come. Its messages must be over.
    static void give_back(ProgressEngine& engine, std::shared_ptr<PatternTransfer> transfer);

private:
    Compared compared_;
    PatternProblem problem_;
    std::shared_ptr<const PatternPlan> plan_;
    std::int64_t out_stride_;
    std::unique_ptr<Transport> port_;
    Schedule schedule_;
    std::vector<Binding> bindings_;
    Combine combine_;
    ExecuteOptions options_;
    std::unique_ptr<Execution> execution_;  // the last: it refers to the others
};

}  // namespace tilewave
