// What a pattern's call needs to move its data: plan, schedule, staging buffers. Kept for the next call
// that is like it, since to make them costs several times a small transfer.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "exchange.hpp"
#include "execution.hpp"
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
        friend bool operator==(const Key&, const Key&) = default;
    };
    static Key key(const PatternCall& call);

    /// What this rank says when the ranks compare, and what they agreed on then.
    struct Words {
        Key key;
        std::string description;
        std::vector<std::int64_t> given, agreed;
    };

    PatternTransfer(Context& context, Words words, const PatternProblem& problem, PatternPlan plan, const PatternCall& call);

    const Words& words() const { return words_; }
    const PatternPlan& plan() const { return plan_; }
    const PatternProblem& problem() const { return problem_; }
    /// Whether it is the transfer of a call whose key is its own, now that `agreed` is known and so is call.out.
    bool fits(const std::vector<std::int64_t>& agreed, const PatternCall& call) const;
    /// Ready to run for `call`, which must live on, with messages that bear `tag`.
    void aim(PatternCall& call, int tag);
    Execution& execution() { return *execution_; }
    std::int64_t buffer_bytes() const { return schedule_.buffer_bytes(); }

    /// An idle one whose key is `key`, to be used by the caller alone; null where there is none.
    static std::shared_ptr<PatternTransfer> take(Exchange& exchange, const Key& key);
    /// For the calls to come. Its messages must be over.
    static void give_back(Exchange& exchange, std::shared_ptr<PatternTransfer> transfer);

private:
    Words words_;
    PatternProblem problem_;
    PatternPlan plan_;
    std::int64_t out_stride_;
    std::unique_ptr<Transport> port_;
    Schedule schedule_;
    std::vector<Binding> bindings_;
    Kernel kernel_;
    Combine combine_;
    ExecuteOptions options_;
    std::unique_ptr<Execution> execution_;  // the last: it refers to the others
};

}  // namespace tilewave
