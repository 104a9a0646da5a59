#include "nests/choose_together.hpp"

#include <algorithm>

#include "nests/tuning.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

using namespace tuning;

namespace {

using RateList = std::vector<MeasuredRate>;

// An alternative with kernels for it, and what is known of the body's rate on its tiles.
struct Contender {
    Alternative alternative;
    std::shared_ptr<SampledNest> first = {};
    std::vector<std::shared_ptr<SampledNest>> others = {};
    double bringing_s = 0;
};

struct Best {
    std::size_t at = 0;
    Choice choice;
    std::vector<double> times = {};  // by contender
};

bool skewed(const Contender& c) {
    return c.alternative.request.storage == StorageKind::skewed;
}

// The same of a loop that runs in the other direction: its rate is that of this one.
std::string either_direction(const Index& loop) {
    const auto first = std::find_if(loop.begin(), loop.end(), [](std::int64_t factor) { return factor != 0; });
    Index positive = loop;
    if (first != loop.end() && *first < 0)
        for (std::int64_t& factor : positive.v) factor = -factor;
    return to_string(positive);
}

class Choosing {
public:
    Choosing(Context& context, const PlanCall* call, KernelMaker& maker)
        : context_(context), call_(call), maker_(maker), machine_(context.machine()) {}

    std::optional<ChosenPlan> run() {
        std::exception_ptr error;
        try {
            if (call_) prepare();
        } catch (...) {
            error = std::current_exception();
        }
        const bool all = agree_on_rates(context_, !call_ || error != nullptr, rates_);
        if (error) std::rethrow_exception(error);
        if (!all) return std::nullopt;
        read_stored();
        if (!measure(not_measured_yet())) return std::nullopt;
        for (Contender& c : contenders_)
            if (contenders_.size() > 1 && call_->in_place && skewed(c)) c.bringing_s = c.first->bringing_s();
        std::optional<Best> best;
        bool brief = false;
        for (std::size_t c = 0; c < contenders_.size(); ++c) brief = brief || is_brief(contenders_[c], rates_[c]);
        for (int round = 0; round < (brief ? 0 : most_more_rates); ++round) {
            const std::optional<Experiment> next = next_to_measure(best);
            std::vector<std::int64_t> goes_on{next.has_value()};
            allreduce_min(context_.transport(), goes_on);
            if (goes_on[0] == 0) break;
            if (!measure({*next})) return std::nullopt;
            best.reset();
        }
        remember();
        return chosen(best ? *best : this->best(true));
    }

private:
    using Experiment = std::pair<std::size_t, std::shared_ptr<SampledNest>>;  // of which contender

    int ranks(const Contender& c) const { return c.alternative.on_one_rank ? 1 : context_.size(); }

    // The alternatives, with kernels, and what this rank remembers of their rates. Local.
    void prepare() {
        for (Alternative& a : listed()) {
            Contender c{std::move(a)};
            c.first = maker_.prepare(c.alternative, c.alternative.plan, nullptr);
            for (const Plan& plan : c.alternative.others)
                c.others.push_back(maker_.prepare(c.alternative, plan, c.first.get()));
            contenders_.push_back(std::move(c));
        }
        // Point by point is never faster than vectors: arrays as they are pay only where they need not be brought into
        // another order.
        const auto slow = [&](const Contender& c) { return !skewed(c) && !c.first->vectors() && !call_->in_place; };
        if (!std::all_of(contenders_.begin(), contenders_.end(), slow)) std::erase_if(contenders_, slow);
        for (const Contender& c : contenders_) rates_.push_back(remembered(c));
    }

    std::vector<Alternative> listed() {
        if (call_->plan) return {planned_alternative(call_->problem, context_.size(), call_->request, *call_->plan)};
        PlanRequest request = call_->request;
        request.threads = std::min(request.threads, call_->lanes_here.value_or(request.threads));
        const bool fixed = request.row || request.storage == StorageKind::plain;
        const bool across = !fixed && skewed_row(call_->problem).n > 0 && maker_.vectors_across(call_->problem);
        std::vector<Alternative> all = alternatives(call_->problem, context_.size(), request, machine_, across);
        for (Alternative& a : all) a.request.threads = call_->request.threads;
        return all;
    }

    // Equal where a rate serves, on arrays of any shape that lie in the same order.
    std::string body_key(const Contender& c) const {
        const Plan& plan = c.first->plan();
        std::string text = call_->body + "\nloops";
        const IndexMatrix& loops = c.alternative.problem.loops;
        for (int k = 0; k < loops.n; ++k) text += " " + either_direction(loops.row[k]);
        return text + (c.alternative.on_one_rank ? " on one rank" : "") + ", " + std::to_string(plan.lanes()) +
               " lanes, row " + to_string(plan.row) + (plan.storage == StorageKind::skewed ? " skewed" : "");
    }
    std::string rate_key(const Contender& c) const {
        const Box& space = c.alternative.problem.space;
        return body_key(c) + "\n" + call_->memory + "\nextents " + to_string(space.hi - space.lo);
    }

    // The rates of a body on arrays of these shapes; where a run is brief those of any shapes.
    RateList remembered(const Contender& c) {
        KnownRates& known = context_.component<KnownRates>();
        if (const RateList* rates = known.find(rate_key(c)); rates && !rates->empty()) return *rates;
        const RateList* same_body = known.find(body_key(c));
        RateList others = same_body ? *same_body : RateList();
        if (!is_brief(c, others)) return {};
        for (MeasuredRate& rate : others) rate.of_all_tiles = true;
        return others;
    }

    // Whether the plan by rules, with these rates, takes less than what is worth a measurement. The same on all ranks
    // with the same rates.
    bool is_brief(const Contender& c, const RateList& rates) const {
        if (rates.empty()) return false;
        try {
            const SweepProblem& problem = c.alternative.problem;
            const KernelRate rate = rate_for(problem, c.first->plan(), machine_, rates);
            return evaluate(problem, c.first->plan(), machine_, rate).time_s * call_->blocks < least_run_s;
        } catch (const ConfigError&) {
            return false;
        }
    }

    // From disk, where nothing is known. Collective.
    void read_stored() {
        RateStore& store = context_.component<RateStore>();
        if (store.launch.value_or("").empty()) return;
        for (std::size_t c = 0; c < contenders_.size(); ++c) {
            const std::string digest = contenders_[c].first->digest();
            keys_.push_back(digest.empty() ? digest : digest + "\n" + rate_key(contenders_[c]));
            if (rates_[c].empty()) rates_[c] = store.read(context_, keys_.back());
        }
        for (const RateList& rates : rates_) before_.push_back(rates.size());
        store.begin();
    }

    // To disk and into memory.
    void remember() {
        int lanes = 1;
        for (const Contender& c : contenders_) lanes = std::max(lanes, c.first->plan().lanes());
        for (std::size_t c = 0; c < keys_.size() && context_.rank() == 0; ++c)
            if (rates_[c].size() > before_[c]) context_.component<RateStore>().store(keys_[c], rates_[c], lanes);
        KnownRates& known = context_.component<KnownRates>();
        for (std::size_t c = 0; c < contenders_.size(); ++c) {
            known.store(rate_key(contenders_[c]), rates_[c]);
            known.store(body_key(contenders_[c]), rates_[c]);
        }
    }

    std::vector<Experiment> not_measured_yet() const {
        std::vector<Experiment> all;
        const auto lacks = [&](std::size_t c, const std::shared_ptr<SampledNest>& one) {
            return rates_[c].empty() ||
                   !rate_is_measured(contenders_[c].alternative.problem, one->plan(), machine_, rates_[c]);
        };
        for (std::size_t c = 0; c < contenders_.size(); ++c)
            if (lacks(c, contenders_[c].first)) all.emplace_back(c, contenders_[c].first);
        for (std::size_t c = 0; c < contenders_.size(); ++c)
            for (const auto& other : contenders_[c].others)
                if (lacks(c, other)) all.emplace_back(c, other);
        return all;
    }

    // False where some rank was interrupted. Collective.
    bool measure(const std::vector<Experiment>& some) {
        if (some.empty()) return true;
        std::vector<RateExperiment> all;
        for (const auto& [c, nest] : some) {
            const Contender& of = contenders_[c];
            const Box& space = of.alternative.problem.space;
            double points = 1;
            for (int k = 0; k < space.dims(); ++k)
                points *= static_cast<double>(std::max<std::int64_t>(space.extent(k), 0));
            all.push_back({&nest->plan(), points / ranks(of), !of.alternative.on_one_rank || context_.rank() == 0,
                           [&nest = *nest](double budget_s) { return nest.sample(budget_s); }});
        }
        const std::optional<RateList> found = measure_rates(context_, all);
        for (std::size_t i = 0; found && i < some.size(); ++i) rates_[some[i].first].push_back((*found)[i]);
        return found.has_value();
    }

    // The best plan, if tiles like its have not been measured; `best`: the same plan where they have, else nothing.
    // Also nothing where that fails: the last choice says why. Local.
    std::optional<Experiment> next_to_measure(std::optional<Best>& best) {
        best.reset();
        try {
            Best found = this->best(false);
            if (found.choice.measured) {
                best = std::move(found);
                return std::nullopt;
            }
            const Candidate& first = found.choice.ranked[0];
            if (first.time_s * call_->blocks < least_run_s) return std::nullopt;
            const Contender& c = contenders_[found.at];
            return Experiment{found.at, maker_.prepare(c.alternative, first.plan, c.first.get())};
        } catch (const std::exception&) {
            return std::nullopt;
        }
    }

    // What takes least, bringing arrays included; the same on all ranks.
    Best best(bool measured_only) const {
        Best best;
        double least = 0;
        for (std::size_t c = 0; c < contenders_.size(); ++c) {
            Choice choice = of(contenders_[c], rates_[c], measured_only);
            const double time_s = choice.ranked[0].time_s;
            const double total_s = time_s * call_->blocks + contenders_[c].bringing_s;
            best.times.push_back(time_s);
            if (c > 0 && total_s >= least) continue;
            least = total_s;
            best.at = c;
            best.choice = std::move(choice);
        }
        return best;
    }
    Choice of(const Contender& c, const RateList& rates, bool measured_only) const {
        const Alternative& a = c.alternative;
        if (!call_->plan) {
            PlannerOptions options;
            options.measured_only = measured_only;
            return choose_plan(a.problem, ranks(c), a.request, machine_, rates, options);
        }
        Choice choice;
        choice.rate = rate_for(a.problem, a.plan, machine_, rates);
        choice.ranked.push_back(evaluate(a.problem, a.plan, machine_, choice.rate));
        return choice;
    }

    ChosenPlan chosen(Best best) const {
        ChosenPlan all{best.at, contenders_[best.at].first, std::move(best.choice), rates_[best.at].back(), {}};
        all.rate.plan = all.choice.ranked[0].plan;
        all.rate.rate = all.choice.rate;
        for (std::size_t c = 0; c < contenders_.size(); ++c)
            all.times.push_back({contenders_[c].alternative, best.times[c], contenders_[c].bringing_s});
        return all;
    }

    Context& context_;
    const PlanCall* call_;
    KernelMaker& maker_;
    const Machine machine_;
    std::vector<Contender> contenders_;
    std::vector<RateList> rates_;      // by contender
    std::vector<std::string> keys_;    // of rates on disk
    std::vector<std::size_t> before_;  // rates that were known then
};

}  // namespace

std::optional<ChosenPlan> choose_together(Context& context, const PlanCall* call, KernelMaker& maker) {
    return Choosing(context, call, maker).run();
}

}  // namespace tilewave
