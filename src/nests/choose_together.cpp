#include "nests/choose_together.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "data/checksum.hpp"
#include "measure/tile_samples.hpp"
#include "nests/tuning.hpp"
#include "plan/nests/rates.hpp"
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
    BodyRates body = {};     // but for its rates, of which all ranks have the same
    double bringing_s = -1;  // below 0: not measured
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
    const auto first = std::ranges::find_if(loop, [](std::int64_t factor) { return factor != 0; });
    Index positive = loop;
    if (first != loop.end() && *first < 0)
        for (std::int64_t& factor : positive.v) factor = -factor;
    return to_string(positive);
}

class Choosing {
public:
    Choosing(Context& context, const PlanCall* call, KernelMaker& maker)
        : context_(context),
          call_(call),
          maker_(maker),
          machine_(context.machine()),
          clock_(context.component<PlanningClock>().now),
          begin_s_(clock_()) {}

    std::optional<ChosenPlan> run() {
        here([&] {
            if (call_) prepare();
        });
        std::vector<std::int64_t> least{-in_units(known_.spent_s), known_.settled, in_units(known_.run_s),
                                        in_units(call_ ? call_->ran_s : 0)};
        const bool all = agree_on_rates(context_, !call_ || failed_, rates_, least);
        if (failed_) std::rethrow_exception(failed_);
        if (!all) return std::nullopt;
        known_.spent_s = in_seconds(-least[0]);
        known_.settled = least[1] != 0;
        known_.run_s = in_seconds(least[2]);
        ran_s_ = in_seconds(least[3]);
        if (!read_stored()) return std::nullopt;
        spending_.before_s = known_.spent_s;
        spending_.settled = known_.settled;
        if (!measure_first()) return std::nullopt;
        std::optional<Best> best;
        if (!measure_more(best)) return std::nullopt;
        if (failed_) std::rethrow_exception(failed_);
        // A launch elsewhere has more lanes than samples here have measured tiles for.
        if (!best) best = best_brought(call_->lanes_here ? Unmeasured::as_nearest : Unmeasured::left_out);
        remember(*best);
        return chosen(std::move(*best));
    }

private:
    using Experiment = std::pair<std::size_t, std::shared_ptr<SampledNest>>;  // of which contender

    // Does what may fail on this rank alone; its error waits for the next agreement.
    template <class Local>
    void here(Local local) {
        if (!failed_) try {
                local();
            } catch (...) {
                failed_ = std::current_exception();
            }
    }
    // That agreement, in which numbers become the least of all ranks'. False where another rank has failed. Collective.
    bool agreed(std::vector<std::int64_t>& least) {
        least.push_back(!failed_);
        allreduce_min(context_.transport(), least);
        if (failed_) std::rethrow_exception(failed_);
        const bool all = least.back() != 0;
        least.pop_back();
        return all;
    }
    bool agreed() {
        std::vector<std::int64_t> nothing;
        return agreed(nothing);
    }

    // Seconds of this rank, what compiling took aside.
    double spent_s() const { return clock_() - begin_s_ - compiling_s_; }
    template <class Make>
    auto compiled(Make make) {
        const double begin_s = clock_();
        auto made = make();
        compiling_s_ += clock_() - begin_s;
        return made;
    }
    std::shared_ptr<SampledNest> made(const Contender& c, const Plan& plan) {
        return compiled([&] { return maker_.prepare(c.alternative, plan, c.first.get()); });
    }

    Planning planning() const { return call_->request.planning; }
    bool thorough() const { return planning() == Planning::thorough; }
    double budget_s() const {
        if (thorough()) return std::numeric_limits<double>::infinity();
        if (planning() == Planning::quick) return quick_budget_s;
        return std::max({auto_budget_s, known_.run_s, ran_s_ * part_of_runs});
    }
    // The same on all ranks.
    double left_s() const { return budget_s() - spending_.before_s - spending_.spent_s; }

    int ranks(const Contender& c) const { return c.alternative.on_one_rank ? 1 : context_.size(); }

    // The alternatives, with kernels, and what this rank remembers of their rates. Local.
    void prepare() {
        for (Alternative& a : listed()) {
            Contender c{std::move(a)};
            c.first = made(c, c.alternative.plan);
            for (const Plan& plan : c.alternative.others) c.others.push_back(made(c, plan));
            contenders_.push_back(std::move(c));
        }
        // Point by point is never faster than vectors: arrays as they are pay only where they need not be brought into
        // another order.
        const auto slow = [&](const Contender& c) { return !skewed(c) && !c.first->vectors() && !call_->in_place; };
        if (!std::ranges::all_of(contenders_, slow)) std::erase_if(contenders_, slow);
        for (Contender& c : contenders_) {
            const std::string key = body_key(c);
            const auto same =
                std::ranges::find(contenders_, key, [&](const Contender& other) { return body_key(other); });
            body_of_.push_back(static_cast<std::size_t>(same - contenders_.begin()));
            const BodyRates* const body = context_.component<KnownRates>().find(key);
            rates_.push_back(body && &*same == &c ? body->rates : RateList());
            take(c, body ? *body : BodyRates());
        }
        if (known_.run_s == 0)
            known_.run_s = sure_part * Machine().point_s * points(contenders_[0]) * call_->blocks /
                           contenders_[0].first->plan().lanes();
    }

    // What is known of this call.
    void take(Contender& c, const BodyRates& body) {
        c.body.calls = body.calls;
        c.body.date = body.date;
        const PlannedCall call = body.call(number_of(c));
        if (&c == &contenders_[0] && call.run_s > 0) known_ = call;
        c.bringing_s = call.bringing_s;
    }

    // Of what a rank has of the arrays.
    std::int64_t array_bytes() const {
        return element_bytes(contenders_[0].alternative.problem, contenders_[0].first->plan());
    }

    double points(const Contender& c) const {
        return static_cast<double>(c.alternative.problem.space.points()) / ranks(c);
    }

    std::vector<Alternative> listed() {
        if (call_->plan)
            return {planned_alternative(call_->problem, context_.size(), call_->request, *call_->plan, machine_)};
        PlanRequest request = call_->request;
        request.threads = std::min(request.threads, call_->lanes_here.value_or(request.threads));
        const bool fixed = request.row || request.storage == StorageKind::plain;
        const bool across = !fixed && skewed_row(call_->problem).n > 0 &&
                            compiled([&] { return maker_.vectors_across(call_->problem); });
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
        return text + (c.alternative.on_one_rank ? " on one rank" : "") + ", row " + to_string(plan.row) +
               (plan.storage == StorageKind::skewed ? " skewed" : "") + (has_tasks(plan) ? " by tasks" : "");
    }
    // Equal for equal calls.
    std::uint64_t number_of(const Contender& c) const {
        const Box& space = c.alternative.problem.space;
        const std::string text = body_key(c) + "\n" + call_->memory + "\nextents " + to_string(space.hi - space.lo) +
                                 "\n" + std::to_string(call_->blocks) + "\n" + call_->request.to_string() +
                                 std::to_string(call_->request.threads) + (call_->plan ? call_->plan->to_string() : "");
        return checksum(std::as_bytes(std::span(text)).data(), static_cast<std::int64_t>(text.size()));
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

    // From disk, where nothing is known. False where another rank has failed. Collective.
    bool read_stored() {
        RateStore& store = context_.component<RateStore>();
        if (store.launch.value_or("").empty()) return true;
        here([&] {
            for (const Contender& c : contenders_) {
                const std::string digest = c.first->digest();
                keys_.push_back(digest.empty() ? digest : digest + "\n" + body_key(c));
            }
        });
        if (!agreed()) return false;
        for (std::size_t c = 0; c < contenders_.size(); ++c) {
            if (!rates_of(c).empty()) continue;
            const BodyRates body = store.read(context_, keys_[c]);
            rates_of(c) = body.rates;
            take(contenders_[c], body);
        }
        return true;
    }

    // To disk and into memory.
    void remember(const Best& best) {
        const bool was_settled = known_.settled;
        known_.settled = spending_.settled;
        known_.spent_s = spending_.before_s + spending_.spent_s;
        known_.run_s = best.choice.ranked[0].time_s * call_->blocks;
        spending_.budget_s = budget_s();
        for (std::size_t c = 0; c < contenders_.size(); ++c) {
            BodyRates body = contenders_[c].body;
            body.rates = rates_of(c);
            PlannedCall call = c == 0 ? known_ : PlannedCall{};
            call.number = number_of(contenders_[c]);
            call.bringing_s = contenders_[c].bringing_s;
            const bool news = spending_.samples > 0 || known_.settled != was_settled ||
                              body.call(call.number).bringing_s != call.bringing_s;
            body.remember(call);
            if (news && c < keys_.size() && context_.rank() == 0) context_.component<RateStore>().store(keys_[c], body);
            context_.component<KnownRates>().store(body_key(contenders_[c]), std::move(body));
        }
    }

    // What an alternative lacks so that nothing can be said of it. False where some rank was interrupted or has
    // failed. Collective.
    bool measure_first() {
        std::vector<Experiment> all;
        here([&] { all = lacking(); });
        if (!agreed()) return false;
        // Half of the budget is for what the best plan then lacks.
        return all.empty() || measure(all, left_s() / (2 * static_cast<double>(all.size())) - beyond_s_);
    }
    std::vector<Experiment> lacking() {
        std::vector<Experiment> all;
        const std::int64_t passed = std::min(array_bytes(), 2 * machine_.shared_cache_bytes);
        beyond_s_ = sampled_byte_s * static_cast<double>(std::min(passed, most_displaced));
        std::size_t count = 0;
        for (const Contender& c : contenders_) count += 1 + c.others.size();
        const bool time_for_all = left_s() > static_cast<double>(count) * (least_sample_s + beyond_s_);
        const auto lacks = [&](std::size_t c, const std::shared_ptr<SampledNest>& one) {
            const bool is_first = one == contenders_[c].first;
            if (rates_of(c).empty()) return body_of_[c] == c && (is_first || time_for_all);
            const SweepProblem& problem = contenders_[c].alternative.problem;
            if (known_.settled || is_brief(contenders_[c], rates_of(c))) return false;
            if (thorough()) return !rate_is_measured(problem, one->plan(), machine_, rates_of(c));
            if (planning() == Planning::quick || !time_for_all) return false;
            if (call_->plan || !is_first) return !rate_is_measured(problem, one->plan(), machine_, rates_of(c));
            // Rates of one alternative on arrays in the caches do not compare with those of another in memory.
            const int level = PlanRates(problem, machine_, rates_of(c)).tile_class(one->plan()).arrays;
            return std::ranges::none_of(rates_of(c), [&](const MeasuredRate& m) {
                return PlanRates(problem, machine_, {&m, 1}).level_of(m) == level;
            });
        };
        for (std::size_t c = 0; c < contenders_.size(); ++c)
            if (lacks(c, contenders_[c].first)) all.emplace_back(c, contenders_[c].first);
        for (std::size_t c = 0; c < contenders_.size(); ++c)
            for (const auto& other : contenders_[c].others)
                if (lacks(c, other)) all.emplace_back(c, other);
        return all;
    }

    // False where some rank was interrupted or has failed. Collective.
    bool measure(const std::vector<Experiment>& some, double each_s) {
        std::vector<RateExperiment> all;
        here([&] { all = experiments(some, each_s); });
        if (!agreed()) return false;
        const bool small = array_bytes() < machine_.shared_cache_bytes / 4;
        const bool twice = all.size() > 1 && (thorough() || (small && all[0].budget_s >= 2 * least_sample_s));
        const std::optional<Measured> found = measure_rates(context_, all, twice ? 2 : 1, [&] { return spent_s(); });
        if (!found) return false;
        double total_s = 0;
        for (const RateExperiment& e : all) total_s += e.budget_s;
        spending_.samples += static_cast<int>(some.size());
        beyond_s_ = std::max(found->spent_s - spending_.spent_s - total_s, 0.0) / static_cast<double>(some.size());
        spending_.spent_s = found->spent_s;
        here([&] { take(some, *found); });
        return true;
    }
    // What was measured takes the place of what is stored, with the numbers that are surer. Local.
    void take(const std::vector<Experiment>& some, const Measured& found) {
        for (std::size_t i = 0; i < some.size(); ++i) {
            const std::size_t c = some[i].first;
            RateList& rates = rates_of(c);
            const SweepProblem& problem = contenders_[c].alternative.problem;
            MeasuredRate now = found.rates[i];
            std::erase_if(rates, [&](const MeasuredRate& m) {
                if (!is_stored(m) || !rate_is_measured(problem, now.plan, machine_, {&m, 1})) return false;
                if (m.spread < now.spread) now.rate = m.rate, now.spread = m.spread;
                return true;
            });
            if (rates.size() == most_rates_of_a_body) rates.erase(rates.begin());
            now.extents = extents_of(problem);
            rates.push_back(std::move(now));
        }
    }
    std::vector<RateExperiment> experiments(const std::vector<Experiment>& some, double each_s) {
        std::vector<RateExperiment> all;
        for (const auto& [c, nest] : some) {
            const Contender& of = contenders_[c];
            // A small nest is not measured for much longer than it runs.
            const double run_s = 10 * Machine().point_s * points(of);
            const double most_s = std::min(rate_budget_s, std::max(least_rate_budget_s, run_s));
            const bool window = of.alternative.problem.window.along >= 0;  // whose tiles are large
            all.push_back({&nest->plan(), !of.alternative.on_one_rank || context_.rank() == 0,
                           [&nest = *nest](double seconds) { return nest.sample(seconds); },
                           std::min(most_s, std::max(each_s, window ? least_rate_budget_s : least_sample_s))});
        }
        for (std::size_t i = 0; i < some.size() && some.size() > 1; ++i)
            if (all[i].takes_part) compiled([&] { return some[i].second->start(), true; });
        for (std::size_t i = 0; i < some.size(); ++i) try {
                if (all[i].takes_part) compiled([&] { return some[i].second->compile(), true; });
            } catch (const std::exception&) {  // sample() says so, on all ranks
            }
        return all;
    }

    // What the best plan lacks, again and again; `best`: the plan, if tiles like its are measured, else nothing. False
    // where some rank was interrupted or has failed. Collective.
    bool measure_more(std::optional<Best>& best) {
        if (planning() == Planning::quick || (!known_.settled && left_s() < least_sample_s)) return true;
        for (int round = 0; round < most_more_rates; ++round) {
            std::optional<Experiment> next;
            here([&] {
                bool again = false;
                next = next_to_measure(best, again);
                if (known_.settled && !again) next.reset();  // what is hoped by rates of other arrays came later
            });
            std::vector<std::int64_t> least{next.has_value(), -in_units(spent_s())};
            if (!agreed(least)) return false;
            spending_.spent_s = in_seconds(-least[1]);
            if (least[0] == 0) {
                spending_.settled = true;
                break;
            }
            const double left_s = this->left_s() + (known_.settled ? spending_.before_s : 0) - beyond_s_;
            if (left_s < least_sample_s) {
                spending_.not_measured = hoped_;
                best.reset();
                break;
            }
            if (!measure({*next}, left_s / 3)) return false;
            best.reset();
        }
        return true;
    }

    // The best plan, if tiles like its have not been measured, or (`again`) by another process and beside other work;
    // `best`: the same plan, if they have, or a plan of a short run. Local.
    std::optional<Experiment> next_to_measure(std::optional<Best>& best, bool& again) {
        best.reset();
        Best found = best_brought(Unmeasured::hoped);
        hoped_ = found.choice.ranked[0];
        const std::size_t at = found.at;
        known_.run_s = hoped_->time_s * call_->blocks;
        const bool is_brief = known_.run_s < least_run_s, measured = found.choice.measured;
        again = measured && !is_brief && is_stored(found.choice.nearest) &&
                found.choice.nearest.spread > context_.component<RateStore>().renewed_spread;
        if (measured)
            best = std::move(found);
        else if (is_brief)
            best = best_brought(Unmeasured::as_nearest);
        if ((measured || is_brief) && !again) return std::nullopt;
        return Experiment{at, made(contenders_[at], hoped_->plan)};
    }

    // Whether the plan decides about bringing arrays.
    bool brings(const Contender& c) const { return contenders_.size() > 1 && call_->in_place && skewed(c); }
    // What that takes; as long as it is not measured, at least.
    double bringing_s(const Contender& c) const {
        if (!brings(c)) return 0;
        if (c.bringing_s >= 0) return c.bringing_s;
        return least_brought_byte_s * static_cast<double>(element_bytes(c.alternative.problem, c.first->plan()));
    }
    // It is measured only for an alternative that would win: that takes as long as bringing.
    Best best_brought(Unmeasured unmeasured) {
        for (;;) {
            Best found = best(unmeasured);
            Contender& c = contenders_[found.at];
            if (!brings(c) || c.bringing_s >= 0) return found;
            c.bringing_s = c.first->bringing_s();
        }
    }

    // What takes least, bringing arrays included; the same on all ranks.
    Best best(Unmeasured unmeasured) const {
        Best best;
        double least = 0;
        for (std::size_t c = 0; c < contenders_.size(); ++c) {
            Choice choice = of(contenders_[c], rates_of(c), unmeasured);
            const double time_s = choice.ranked[0].time_s;
            const double total_s = time_s * call_->blocks + bringing_s(contenders_[c]);
            best.times.push_back(time_s);
            if (c > 0 && total_s >= least) continue;
            least = total_s;
            best.at = c;
            best.choice = std::move(choice);
        }
        return best;
    }
    // Alternatives that differ in who has which points only share rates.
    RateList& rates_of(std::size_t c) { return rates_[body_of_[c]]; }
    const RateList& rates_of(std::size_t c) const { return rates_[body_of_[c]]; }
    Choice of(const Contender& c, const RateList& rates, Unmeasured unmeasured) const {
        const Alternative& a = c.alternative;
        if (!call_->plan) {
            PlannerOptions options;
            options.unmeasured = unmeasured;
            const double steps = searched_steps_s * budget_s();
            if (!call_->lanes_here && steps < static_cast<double>(options.most_steps))
                options.most_steps = std::max(least_searched_steps, static_cast<std::int64_t>(steps));
            return choose_plan(a.problem, ranks(c), a.request, machine_, rates, options);
        }
        Choice choice;
        choice.rate = rate_for(a.problem, a.plan, machine_, rates);
        choice.nearest = nearest_rate(a.problem, a.plan, machine_, rates);
        choice.measured = rate_is_measured(a.problem, a.plan, machine_, rates);
        choice.ranked.push_back(evaluate(a.problem, a.plan, machine_, choice.rate));
        return choice;
    }

    ChosenPlan chosen(Best best) const {
        ChosenPlan all{best.at, contenders_[best.at].first, std::move(best.choice), {}, {}, spending_};
        all.rate = all.choice.nearest;
        all.rate.plan = all.choice.ranked[0].plan;
        all.rate.rate = all.choice.rate;
        for (std::size_t c = 0; c < contenders_.size(); ++c)
            all.times.push_back({contenders_[c].alternative, best.times[c], bringing_s(contenders_[c])});
        return all;
    }

    Context& context_;
    const PlanCall* call_;
    KernelMaker& maker_;
    const Machine machine_;
    std::vector<Contender> contenders_;
    std::vector<RateList> rates_;       // by contender, but for those that share others'
    std::vector<std::size_t> body_of_;  // by contender: the first one with the same rates
    std::vector<std::string> keys_;     // of rates on disk
    const std::function<double()> clock_;
    const double begin_s_;
    double compiling_s_ = 0, ran_s_ = 0;
    double beyond_s_ = 0;  // that the last samples took in addition to their budget
    PlannedCall known_;
    Spending spending_;
    std::optional<Candidate> hoped_;
    std::exception_ptr failed_;  // of this rank, which the others do not know yet
};

}  // namespace

RunsOfPlan::RunsOfPlan(const Spending& spending, double ran) : ran_s(ran) {
    if (!spending.settled && spending.budget_s > quick_budget_s)
        enough_s = std::max(2 * ran, (spending.before_s + spending.spent_s + rate_budget_s) / part_of_runs);
}

std::optional<ChosenPlan> choose_together(Context& context, const PlanCall* call, KernelMaker& maker) {
    return Choosing(context, call, maker).run();
}

}  // namespace tilewave
