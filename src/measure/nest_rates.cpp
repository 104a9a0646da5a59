#include "measure/nest_rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "context/agreement.hpp"
#include "context/slowest.hpp"
#include "core/concat.hpp"
#include "core/plain_bytes.hpp"
#include "data/checksum.hpp"
#include "measure/rate_store.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

using namespace tuning;

namespace {

using RateList = std::vector<MeasuredRate>;

// Of the numbers that ranks exchange: they add up to the same everywhere.
constexpr double unit_s = 1e-15, most_exchanged_s = 9e3;
constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::max();
// Numbers of a rank: the rate's, its spread, and what it makes of a point of a tile with long rows, which tells who is
// slowest.
constexpr std::size_t each = 6;

// Of all that plans follow from; above 0. 0 for no rates.
std::int64_t number_of(const RateList& rates) {
    if (rates.empty()) return 0;
    std::uint64_t sum = 0;
    for (const MeasuredRate& m : rates) {
        const std::string plan = m.plan.to_string();
        const KernelRate& r = m.rate;
        const std::array numbers{r.point_s, r.row_s, r.tile_s, r.one_lane_factor, static_cast<double>(r.lanes),
                                 m.spread};
        const std::string extents = to_string(m.extents);
        sum = checksum(std::as_bytes(std::span(plan)).data(), static_cast<std::int64_t>(plan.size()), sum);
        sum = checksum(std::as_bytes(std::span(extents)).data(), static_cast<std::int64_t>(extents.size()), sum);
        sum = checksum(std::as_bytes(std::span(numbers)).data(), sizeof numbers, sum);
    }
    return static_cast<std::int64_t>(sum >> 2) + 1;
}

// This rank's numbers, as the fastest CPU would have them; -1: the body raised; none without tiles.
std::array<std::int64_t, each> numbers_of(const std::vector<RateSample>& samples, double disturbed, double speed) {
    std::array<std::int64_t, each> numbers;
    numbers.fill(-1);
    if (samples.empty()) return numbers;
    if (std::ranges::any_of(samples, [](const RateSample& s) { return s.points == 0; })) {
        numbers.fill(nothing);
        return numbers;
    }
    const KernelRate r = fit_rate(samples);
    const double seconds[each] = {r.point_s * speed,
                                  r.row_s * speed,
                                  r.tile_s * speed,
                                  r.one_lane_factor,
                                  std::min(std::max(samples[0].spread, disturbed), 1e3),
                                  speed * samples[0].tile_s / samples[0].points};
    if (std::all_of(seconds, seconds + each, [](double s) { return std::isfinite(s); }))
        std::transform(seconds, seconds + each, numbers.begin(), in_units);
    return numbers;
}

double point_s(const RateSample& sample) {
    return sample.tile_s / std::max(sample.points, 1.0);
}

// The samples of all experiments in which this rank takes part, in their order.
std::vector<std::vector<RateSample>> sampled_in_turn(const std::vector<const RateExperiment*>& some, int visits) {
    std::vector<std::vector<RateSample>> least(some.size());
    for (int visit = 0; visit < visits; ++visit) {
        for (std::size_t e = 0; e < some.size(); ++e) {
            if (interrupt_deferred()) return std::vector<std::vector<RateSample>>(some.size());  // nobody will use them
            const std::vector<RateSample> found = some[e]->sample(some[e]->budget_s / visits);
            if (visit == 0) least[e] = found;
            least[e].resize(std::min(least[e].size(), found.size()));
            for (std::size_t i = 0; i < least[e].size(); ++i)
                if (point_s(found[i]) < point_s(least[e][i])) least[e][i] = found[i];
        }
    }
    return least;
}

// What ranks exchange of all experiments.
std::vector<std::int64_t> sampled(const std::vector<RateExperiment>& all, int visits, double speed,
                                  const std::function<double()>& queued) {
    std::vector<std::int64_t> numbers(each * all.size(), nothing);
    std::vector<const RateExperiment*> some;
    for (const RateExperiment& e : all)
        if (e.takes_part) some.push_back(&e);
    try {
        const double begin_s = now_s(), queued_before_s = queued();
        const std::vector<std::vector<RateSample>> samples = sampled_in_turn(some, visits);
        int lanes = 1;
        for (const RateExperiment* e : some) lanes = std::max(lanes, e->plan->lanes());
        const double disturbed = (queued() - queued_before_s) / std::max(lanes * (now_s() - begin_s), 1e-9);
        auto next = samples.begin();
        for (std::size_t e = 0; e < all.size(); ++e)
            if (all[e].takes_part) std::ranges::copy(numbers_of(*next++, disturbed, speed), &numbers[each * e]);
    } catch (const std::exception&) {  // what is wrong with arguments was found before; it costs the measurement only
        numbers.assign(each * all.size(), -1);
    }
    return numbers;
}

MeasuredRate rate_of(Context& context, const SlowestNumbers& slow, const Plan& plan) {
    MeasuredRate m{plan, {}};
    if (slow.failed || slow.ranks == 0) {
        m.rate = {context.machine().point_s, 0, 0, 0, 0, 1};
        m.note = std::string(not_measured) + ": " +
                 (slow.ranks == 0 ? "no rank has a point to compute"
                                  : "the body raised on the values that it was measured with") +
                 "; a number for any body";
        return m;
    }
    const auto seconds = [&](std::size_t i) { return in_seconds(slow.numbers[i]); };
    m.rate = {seconds(0), seconds(1), seconds(2), 0, seconds(3), plan.lanes()};
    m.spread = seconds(4);
    m.note = concat("measured on ", counted(slow.ranks, "rank"), " at once");
    return m;
}

}  // namespace

std::int64_t in_units(double seconds) {
    return std::llround(std::min(seconds, most_exchanged_s) / unit_s);
}
double in_seconds(std::int64_t units) {
    return static_cast<double>(units) * unit_s;
}

PlannedCall BodyRates::call(std::uint64_t number) const {
    for (const PlannedCall& c : calls)
        if (c.number == number) return c;
    return {number};
}

void BodyRates::remember(const PlannedCall& call) {
    std::erase_if(calls, [&](const PlannedCall& c) { return c.number == call.number; });
    if (calls.size() == most_planned_calls) calls.erase(calls.begin());
    calls.push_back(call);
}

bool agree_on_rates(Context& context, bool failed, std::vector<RateList>& all, std::vector<std::int64_t>& least) {
    const std::int64_t count = failed ? -1 : static_cast<std::int64_t>(all.size());
    std::vector<std::int64_t> counts{count, -count};
    allreduce_min(context.transport(), counts);
    if (counts[0] < 0 || counts[0] != -counts[1]) return false;
    std::vector<std::int64_t> numbers;
    for (const RateList& rates : all) numbers.push_back(number_of(rates));
    for (std::size_t r = 0; r < all.size(); ++r) numbers.push_back(-numbers[r]);
    append(numbers, least);
    allreduce_min(context.transport(), numbers);
    std::copy(numbers.end() - static_cast<std::ptrdiff_t>(least.size()), numbers.end(), least.begin());
    for (std::size_t r = 0; r < all.size(); ++r)
        if (numbers[r] != -numbers[all.size() + r]) all[r].clear();
    return true;
}

std::optional<Measured> measure_rates(Context& context, const std::vector<RateExperiment>& all, int visits,
                                      const std::function<double()>& spent) {
    Transport& transport = context.transport();
    const double speed = context.machine().speed(context.rank());
    barrier(transport);  // ranks of one host share its memory: they measure at the same time
    const auto numbers = sampled(all, visits, speed, context.component<PlanningClock>().queued);
    const std::vector<SlowestNumbers> slow = slowest(transport, numbers, each, nothing);
    std::vector<std::int64_t> least{!interrupt_deferred(), -in_units(spent())};
    allreduce_min(transport, least);
    if (least[0] == 0) return std::nullopt;
    Measured found{{}, in_seconds(-least[1])};
    for (std::size_t e = 0; e < all.size(); ++e) found.rates.push_back(rate_of(context, slow[e], *all[e].plan));
    return found;
}

}  // namespace tilewave
