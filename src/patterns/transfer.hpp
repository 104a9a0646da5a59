// What a pattern's call needs to move its data: plan, schedule, staging buffers. Kept for the next call
// that is like it, since to make them costs several times a small transfer.
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
    /// All of a call but where its matrices lie, its function and its number: calls of equal keys say and do the same.
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

    /// What this rank says when the ranks compare, and what they agreed on then. The first two numbers given say
    /// whether it has the memory for the call already: a hash of `agreed`, and its negative; 0 where it has not.
    /// `agreed` is without these two.
    struct Words {
        Key key;
        std::shared_ptr<const Said> said;
        std::vector<std::int64_t> given, agreed;
    };
    static constexpr std::size_t memory_numbers = 2;

    /// Takes the comparison over, unless it throws.
    PatternTransfer(Context& context, Words words, const PatternProblem& problem,
                    std::shared_ptr<const PatternPlan> plan, const PatternCall& call,
                    std::unique_ptr<Comparison>& comparison);

    const Words& words() const { return words_; }
    const std::shared_ptr<const PatternPlan>& plan() const { return plan_; }
    /// Of the call that made it, for the calls like it.
    std::unique_ptr<Comparison>& comparison() { return comparison_; }
    const PatternProblem& problem() const { return problem_; }
    /// Whether it is the transfer of a call whose key is its own and for which the same was agreed, now that call.out
    /// is known.
    bool fits(const PatternCall& call) const { return out_stride_ == call.out.row_stride_bytes; }
    /// Ready to run for `call`, which must live on, with messages that bear `tag`.
    void set_tag_and_memory(PatternCall& call, int tag);
    Execution& execution() { return *execution_; }
    const Combine& combine() const { return combine_; }
    std::int64_t buffer_bytes() const { return schedule_.buffer_bytes(); }
    /// Of all that it keeps between calls.
    std::int64_t memory_bytes() const { return buffer_bytes() + comparison_->agreement.memory_bytes(); }

    /// An idle one whose key is `key`, to be used by the caller alone; null where there is none.
    static std::shared_ptr<PatternTransfer> take(ProgressEngine& engine, const Key& key);
    /// For the calls to come. Its messages must be over.
    static void give_back(ProgressEngine& engine, std::shared_ptr<PatternTransfer> transfer);

private:
    Words words_;
    PatternProblem problem_;
    std::shared_ptr<const PatternPlan> plan_;
    std::int64_t out_stride_;
    std::unique_ptr<Comparison> comparison_;
    Schedule schedule_;
    std::vector<Binding> bindings_;
    Combine combine_;
    ExecuteOptions options_;
    std::unique_ptr<Execution> execution_;  // the last: it refers to the others
};

}  // namespace tilewave
