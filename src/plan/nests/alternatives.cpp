// How the loops and arrays of a nest may lie, before tiles are cut.
#include <algorithm>

#include "plan/nests/planner.hpp"
#include "problem/choice_checks.hpp"

namespace tilewave {

namespace {

// Whether the user says how tiles are cut, so that their coordinates are the loops'.
bool cuts_are_given(const PlanRequest& r) {
    return r.grid || r.tile || r.factors || r.mapping_dim || r.skew || r.temporal_block;
}

class Alternatives {
public:
    Alternatives(int ranks, const PlanRequest& request, const Machine& machine, bool rows_across)
        : ranks_(ranks), request_(request), machine_(machine), rows_across_(rows_across) {}

    std::vector<Alternative> of(const SweepProblem& problem) {
        const bool free = !request_.row && (request_.storage ? *request_.storage == StorageKind::skewed
                                                             : !without(problem.paths_off, FastPath::skewed));
        if (free && rows_across_ && problem.window.along < 0) {
            if (const Index row = skewed_row(problem); row.n) {
                if (!cuts_are_given(request_)) along_rows(problem, row);
                across(problem, row);
            }
        }
        if (!request_.storage || *request_.storage == StorageKind::plain || request_.row || found_.empty())
            add(problem, request_);
        if (found_.empty() && ranks_ > 1 && padding_) return on_one_rank(problem);
        if (found_.empty()) std::rethrow_exception(refused_);
        return std::move(found_);
    }

    // What rank 0 can do for all. @pre on one rank
    std::vector<Alternative> on_one_rank(const SweepProblem& problem) {
        std::vector<Alternative> all = Alternatives(1, request_, machine_, rows_across_).of(problem);
        for (Alternative& a : all) a.on_one_rank = true;
        return all;
    }

private:
    // Rows that go down the longer side of a rank's block.
    void across(const SweepProblem& problem, const Index& row) {
        PlanRequest r = request_;
        r.row = row;
        r.storage = StorageKind::skewed;
        try {
            r.row = row_of_blocks(problem, make_plan(problem, ranks_, r, machine_));
        } catch (const ConfigError&) {
            refused_ = std::current_exception();  // its rows would be mostly padding, or it cannot be cut as asked
            return;
        }
        add(problem, r);
    }

    // Tiles cut along the rows, where time steps then go together or ranks have long rows so, however low a tile is.
    void along_rows(const SweepProblem& problem, const Index& row) {
        const Index skew = skew_for_time(problem, ranks_, request_.threads, row, machine_);
        if (!skew.n) return;
        const SweepProblem other = problem.skewed(static_cast<int>(skew[0]), static_cast<int>(skew[1]));
        PlanRequest r = request_;
        r.skew = skew;
        if (const Index along = skewed_row(other); along.n) {
            r.row = along;
            r.storage = StorageKind::skewed;
        }
        try {
            if (ranks_ == 1 && make_plan(other, ranks_, r, machine_).temporal_block == 1) return;
        } catch (const ConfigError&) {
            return;
        }
        add(other, r);
    }

    void add(const SweepProblem& problem, const PlanRequest& r) {
        try {
            Plan plan = make_plan(problem, ranks_, r, machine_);
            if (ranks_ > 1 && !request_.grid && mostly_padding(problem, plan)) {
                padding_ = true;
                return;
            }
            found_.push_back({problem, r, std::move(plan)});
            if (found_.back().plan.temporal_block == 1 || r.temporal_block) return;
            PlanRequest separate = r;  // whether temporal blocking pays is for the rates to say
            separate.temporal_block = 1;
            found_.back().others.push_back(make_plan(problem, ranks_, separate, machine_));
        } catch (const ConfigError&) {
            refused_ = std::current_exception();
        }
    }

    int ranks_;
    const PlanRequest& request_;
    const Machine& machine_;
    bool rows_across_, padding_ = false;
    std::vector<Alternative> found_;
    std::exception_ptr refused_;
};

// Steps that are gathered by all ranks and lanes; none where the nest or the request is none for it.
std::vector<Alternative> gathered(const SweepProblem& problem, int ranks, const PlanRequest& request,
                                  const Machine& machine) {
    if (problem.gathers < 0 || (ranks == 1 && request.threads == 1)) return {};
    try {
        const SweepProblem steps = problem.gathered();
        return {{steps, request, make_plan(steps, ranks, request, machine)}};
    } catch (const ConfigError&) {
        return {};
    }
}

bool shared(const SweepProblem& p) {
    for (int k = 0; k < p.dims(); ++k)
        if (p.may_cut(k)) return true;
    return false;
}

// With the weights that were given, in the coordinates of a skew that was given.
SweepProblem cut_by(const SweepProblem& even, const Weights& weights, const Index& skew, int ranks) {
    const SweepProblem problem = even.weighted(weights, ranks);
    if (skew.n == 0) return problem;
    if (skew.n != 2 || skew[0] < 0 || skew[1] >= problem.dims())
        throw ConfigError("skew " + to_string(skew) + ": allowed: two loop indices, or none");
    SweepProblem cut = problem.skewed(static_cast<int>(skew[0]), static_cast<int>(skew[1]));
    if (ranks > 1 && shared(problem) && !shared(cut))
        throw ConfigError("skew " + to_string(skew) + " was given; so no loop index can be cut over " +
                          std::to_string(ranks) + " ranks; allowed: another or none");
    return cut;
}

}  // namespace

Alternative planned_alternative(const SweepProblem& problem, int ranks, const PlanRequest& request, const Plan& plan,
                                const Machine& machine) {
    const bool gather = plan.generator == GeneratorKind::gather;
    // Other time steps of the same nest have points, and are gathered.
    if (gather && problem.space.empty()) return alternatives(problem, ranks, request, machine, false).front();
    Alternative found = gather && problem.gathers >= 0 ? Alternative{problem.gathered(), request, plan}
                                                       : Alternative{cut_by(problem, plan.weights, plan.skew, ranks),
                                                                     request, plan, ranks > 1 && !shared(problem)};
    plan.validate(found.problem, found.on_one_rank ? 1 : ranks);
    return found;
}

std::vector<Alternative> alternatives(const SweepProblem& problem, int ranks, const PlanRequest& request,
                                      const Machine& machine, bool rows_across) {
    if (std::vector<Alternative> all = gathered(problem, ranks, request, machine); !all.empty()) {
        if (request.grid || request.generator) return all;  // so it was asked for
        SweepProblem in_order = problem;
        in_order.gathers = -1;
        try {
            for (Alternative& a : alternatives(in_order, ranks, request, machine, rows_across))
                all.push_back(std::move(a));
        } catch (const ConfigError&) {  // as tiles of more than one lane are asked for
        }
        return all;
    }
    const SweepProblem cut =
        cut_by(problem, request.weights.value_or(Weights()), request.skew.value_or(Index()), ranks);
    if (ranks > 1 && !shared(problem)) {
        if (request.grid) {  // as many ranks as there are, but along loops that stay whole
            check_grid(*request.grid, problem.dims(), ranks);
            check_cuts(problem, *request.grid);
        }
        return Alternatives(ranks, request, machine, rows_across).on_one_rank(cut);
    }
    std::vector<Alternative> all = Alternatives(ranks, request, machine, rows_across).of(cut);
    const Weights unequal = request.weights || !cut.cuts.empty() ? Weights() : machine.weights(ranks, request.threads);
    if (unequal.empty() || all[0].on_one_rank || has_tasks(all[0].plan)) return all;
    PlanRequest in_proportion = request;
    in_proportion.weights = unequal;
    for (Alternative& a : Alternatives(ranks, in_proportion, machine, rows_across).of(cut.weighted(unequal, ranks)))
        all.push_back(std::move(a));
    return all;
}

}  // namespace tilewave
