// What the predictor does before it begins: which messages may meet, which host a rank is on, what it refuses.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/concat.hpp"
#include "predict/simulation.hpp"
#include "schedule/whole.hpp"

namespace tilewave {

namespace {

void require(bool ok, const std::string& what) {
    if (!ok) throw ConfigError("predict: " + what);
}

void require_time(double s, const std::string& what) {
    require(std::isfinite(s) && s >= 0, concat(what, " is ", s, "; 0 or more is allowed"));
}

void check_link(const Link& l, const std::string& which) {
    const std::pair<double, const char*> times[] = {{l.latency_s, ".latency_s"},     {l.send_s, ".send_s"},
                                                    {l.receive_s, ".receive_s"},     {l.byte_s, ".byte_s"},
                                                    {l.busy_byte_s, ".busy_byte_s"}, {l.burst_bytes, ".burst_bytes"}};
    for (const auto& [s, name] : times) require_time(s, which + name);
    require(l.eager_bytes >= 0, concat(which, ".eager_bytes is ", l.eager_bytes, "; 0 or more is allowed"));
    for (double h : {l.hidden_polled, l.hidden_unpolled})
        require(h >= 0 && h <= 1, concat("a hidden part of ", which, " is ", h, "; 0 to 1 is allowed"));
}

// Numbers for keys as they come.
class Numbers {
public:
    explicit Numbers(std::size_t most) {
        std::size_t size = 16;
        while (size < 2 * most) size *= 2;
        slots_.resize(size);
    }
    std::int32_t of(std::int64_t ranks, std::int64_t tag) {
        const std::size_t mask = slots_.size() - 1;
        const auto mixed = (static_cast<std::size_t>(ranks) * 0x9e3779b97f4a7c15u) ^
                           (static_cast<std::size_t>(tag) * 0xc2b2ae3d27d4eb4fu);
        for (std::size_t i = (mixed ^ mixed >> 32) & mask;; i = (i + 1) & mask) {
            Slot& s = slots_[i];
            if (s.number >= 0 && (s.ranks != ranks || s.tag != tag)) continue;
            if (s.number < 0) s = {ranks, tag, count_++};
            return s.number;
        }
    }
    std::int32_t count() const { return count_; }

private:
    struct Slot {
        std::int64_t ranks = 0, tag = 0;
        std::int32_t number = -1;
    };
    std::vector<Slot> slots_;
    std::int32_t count_ = 0;
};

// What the steps of a rank name is there, and can be posted so.
void check_steps(const Schedule& s) {
    if (const auto found = damage(s))
        throw ConfigError(concat("predict: rank ", s.rank, ", ", found->entry, ": ", found->why));
    for (std::size_t l = 0; l < s.lanes.size(); ++l)
        for (std::size_t i = 0; i < s.lanes[l].size(); ++i) {
            const Step& step = s.lanes[l][i];
            if (step.op != Op::post_recv && step.op != Op::post_send) continue;
            const Message& m = s.messages[step.item];
            if (m.peer == s.rank || m.send != (step.op == Op::post_send))
                throw ConfigError("predict: " + describe(s, static_cast<int>(l), i) + " cannot be posted so");
        }
}

}  // namespace

Simulation::Simulation(std::span<const Schedule> schedules, const Machine& machine, const Rates& rates,
                       const PredictOptions& options)
    : schedules_(schedules), machine_(machine), rates_(rates), options_(options) {
    check();
    for (const Schedule& s : schedules_) {
        ranks_.push_back({static_cast<std::int32_t>(lanes_.size()), 0, {}, {}, 0, false});
        for (std::size_t l = 0; l < s.lanes.size(); ++l) {
            Lane& lane = lanes_.emplace_back();
            lane.rank = s.rank;
            lane.number = static_cast<std::int32_t>(l);
            if (options_.record) lane.ends.reserve(s.lanes[l].size());
            if (runs_round_robin(s)) {
                lane.thread = static_cast<std::int32_t>(threads_.size()) + lane.number % options_.threads;
                continue;
            }
            if (!s.lanes[l].empty() &&
                std::ranges::all_of(s.lanes[l], [](const Step& step) { return step.op == Op::await; }))
                ranks_.back().helped = true;
        }
        for (int t = 0; runs_round_robin(s) && t < options_.threads; ++t)
            threads_.push_back(
                {ranks_.back().first_lane, RoundRobin(t, options_.threads, static_cast<int>(s.lanes.size()))});
    }
    parts_.resize(lanes_.size());
    set_up_messages();
    set_up_work();
    set_up_cpus();
    // Of messages that are faster than a stream of their bytes the difference was sent ahead.
    const Link& l = machine_.other_host;
    burst_bytes_ = l.burst_bytes;
    for (std::size_t i = 0; i < l.transfer_s.x.size(); ++i) {
        const double bytes = l.transfer_s.x[i], seconds = l.transfer_s.y[i];
        const double ahead = std::min(bytes - (seconds - l.latency_s) / l.byte_s, bytes);
        if (seconds < 0.8 * bytes * l.byte_s) burst_bytes_ = std::max(burst_bytes_, ahead);
    }
}

void Simulation::check() const {
    for (std::size_t r = 0; r < schedules_.size(); ++r) {
        const Schedule& s = schedules_[r];
        require(s.rank == static_cast<int>(r) && s.ranks == static_cast<int>(schedules_.size()),
                concat("schedule ", r, " of ", schedules_.size(), " is for rank ", s.rank, " of ", s.ranks,
                       "; allowed: those of all ranks, in order"));
        check_steps(s);
        check_rates(s);
    }
    for (const KernelRate& rate : rates_.kernels) {
        require_time(rate.point_s, "point_s");
        require_time(rate.row_s, "row_s");
        require_time(rate.tile_s, "tile_s");
        require(rate.spread >= 0 && rate.spread <= 1, concat("spread is ", rate.spread, "; 0 to 1 is allowed"));
    }
    for (const OperationRate& rate : rates_.operations) {
        require_time(rate.call_s, "call_s");
        require_time(rate.amount_s, "amount_s");
    }
    require_time(options_.poll_period_s, "poll_period_s");
    require(options_.threads >= 0, concat("threads is ", options_.threads, "; 0 or more is allowed"));
    require_time(machine_.hand_over_s, "hand_over_s");
    require_time(machine_.poll_s, "poll_s");
    require_time(machine_.step_s, "step_s");
    check_link(machine_.same_host, "same_host");
    check_link(machine_.other_host, "other_host");
    require(
        machine_.set_of.empty() || machine_.set_of.size() >= schedules_.size(),
        concat("set_of says where ", machine_.set_of.size(), " ranks are, the schedules are for ", schedules_.size()));
    for (std::size_t r = 0; r < machine_.set_of.size(); ++r) {
        const std::int32_t s = machine_.set_of[r];
        require(s >= 0 && static_cast<std::size_t>(s) < machine_.set_cpus.size() && machine_.set_cpus[s] > 0,
                concat("set_of names set ", s, ", of which set_cpus knows no CPUs"));
    }
    if (const auto wrong = machine_.network.wrong()) require(false, "network." + *wrong);
    if (machine_.network.topology != NetworkShape::unknown)
        for (std::size_t r = 0; r < machine_.host_of.size(); ++r) {
            const std::int32_t h = machine_.host_of[r];
            require(h >= 0 && h < machine_.network.nodes(),
                    concat("host_of has ", h, ", and the network has nodes 0 to ", machine_.network.nodes() - 1));
        }
    require(machine_.speeds.empty() || (machine_.speeds.size() >= schedules_.size() &&
                                        std::ranges::all_of(machine_.speeds, [](double s) { return s > 0 && s <= 1; })),
            concat("speeds has ", machine_.speeds.size(), " entries for the schedules of ", schedules_.size(),
                   " ranks; allowed: for each rank a number above 0, at most 1, or none"));
    require(machine_.host_of.empty() || machine_.host_of.size() >= schedules_.size(),
            concat("host_of says where ", machine_.host_of.size(), " ranks are, the schedules are for ",
                   schedules_.size()));
}

void Simulation::set_up_messages() {
    host_.assign(schedules_.size(), 0);
    Numbers hosts(schedules_.size());
    if (!machine_.host_of.empty())
        for (std::size_t r = 0; r < schedules_.size(); ++r) host_[r] = hosts.of(machine_.host_of[r], 0);
    if (machine_.network.topology != NetworkShape::unknown) {
        if (!machine_.host_of.empty())
            for (std::size_t r = 0; r < schedules_.size(); ++r) host_[r] = machine_.host_of[r];
        flows_.emplace(machine_.network, machine_.other_host.byte_s);
    }
    const auto cards = static_cast<std::int32_t>(machine_.network.cards);
    std::vector<std::int32_t> on_host(std::max<std::size_t>(static_cast<std::size_t>(hosts.count()), 1));
    cards_.resize(on_host.size() * static_cast<std::size_t>(cards));
    if (!flows_)
        for (std::size_t r = 0; r < schedules_.size(); ++r)
            ranks_[r].card = host_[r] * cards + on_host[host_[r]]++ % cards;
    std::size_t messages = 0;
    for (std::size_t r = 0; r < schedules_.size(); ++r) {
        ranks_[r].first_half = static_cast<std::int32_t>(messages);
        messages += schedules_[r].messages.size();
    }
    halves_.reserve(messages);
    meetings_.reserve(messages / 2 + 1);
    Numbers channels(messages / 2 + 1);
    for (const Schedule& s : schedules_)
        for (const Message& m : s.messages) {
            Half& h = halves_.emplace_back();
            h.m = &m;
            h.rank = s.rank;
            const std::int64_t from = m.send ? s.rank : m.peer, to = m.send ? m.peer : s.rank;
            h.channel = channels.of(from << 32 | to, m.tag);
        }
    channels_.resize(channels.count());
}

void Simulation::set_up_cpus() {
    if (machine_.set_of.empty()) return;
    std::vector<Cpus> sets(machine_.set_cpus.size());
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
        const Lane& lane = lanes_[l];
        const auto& steps = schedules_[lane.rank].lanes[lane.number];
        const bool works = std::ranges::any_of(steps, [](const Step& s) { return s.op == Op::compute; });
        if (works) sets[machine_.set_of[lane.rank]].lanes.push_back(static_cast<std::int32_t>(l));
    }
    for (std::size_t s = 0; s < sets.size(); ++s) {
        sets[s].count = machine_.set_cpus[s];
        std::set<std::pair<bool, std::int32_t>> workers;  // threads of several lanes, and lanes
        for (const std::int32_t l : sets[s].lanes) {
            const std::int32_t thread = lanes_[l].thread;
            workers.insert({thread < 0, thread < 0 ? l : thread});
        }
        if (static_cast<double>(workers.size()) <= sets[s].count) continue;
        for (const std::int32_t l : sets[s].lanes) lanes_[l].cpus = static_cast<std::int32_t>(cpus_.size());
        cpus_.push_back(std::move(sets[s]));
    }
}

void Simulation::set_up_work() {
    for (std::size_t r = 0; r < schedules_.size(); ++r) {
        const Schedule& s = schedules_[r];
        ranks_[r].works.assign(s.works.size(), nullptr);
        for (std::size_t w = 0; w < s.works.size(); ++w) {
            const NestWork* nest = s.works[w].nest();
            if (!nest) continue;
            TileWork*& found = ranks_[r].works[w];
            for (const auto& known : works_)
                if (known->serves(s, *nest)) found = known.get();
            if (found) continue;
            works_.push_back(std::make_unique<TileWork>(s, *nest));
            found = works_.back().get();
        }
    }
}

void Simulation::check_rates(const Schedule& s) const {
    const auto given = [&](std::int32_t number, std::size_t count, const char* what) {
        require(number >= 0 && static_cast<std::size_t>(number) < count,
                concat("a work of rank ", s.rank, " names ", what, " ", number,
                       ", of which no rate is given; there are ", count));
    };
    for (const Work& work : s.works) {
        if (const TaskWork* task = work.task()) given(task->operation, rates_.operations.size(), "operation");
        if (const NestWork* nest = work.nest(); nest && rates_.kernels.size() != 1)
            given(nest->kernel, rates_.kernels.size(), "kernel");
    }
}

}  // namespace tilewave
