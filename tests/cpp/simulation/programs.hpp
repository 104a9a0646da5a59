// Random programs for the simulated fabric: calls of all families that every rank makes in one order, with the values
// that they must leave.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "context/agreement.hpp"
#include "core/concat.hpp"
#include "support/pattern_trial.hpp"
#include "support/simulated_ranks.hpp"
#include "tilewave/engine/run_schedule.hpp"
#include "tilewave/tilewave.hpp"

namespace tilewave {

// A value that a call has left is not what its definition says.
struct Wrong : std::logic_error {
    using std::logic_error::logic_error;
};
inline void must_be(bool right, const char* what) {
    if (!right) throw Wrong(what);
}

// A rank in its program. `shared` rolls the same on all ranks, `local` does not.
struct ProgramRank {
    Context& context;
    Dice shared, local;
    std::vector<std::shared_ptr<void>>& memory;  // what messages may still read or write after an error

    int rank() const { return context.rank(); }
    int size() const { return context.size(); }
    template <class T, class... Given>
    std::shared_ptr<T> make(Given&&... given) {
        auto made = std::make_shared<T>(std::forward<Given>(given)...);
        memory.push_back(made);
        return made;
    }
};

inline void call_collectives(ProgramRank& at) {
    Transport& t = at.context.transport();
    const int root = static_cast<int>(at.shared(0, at.size() - 1));
    const auto bytes_of = [&](int rank) {
        Dice dice(static_cast<std::uint64_t>(1000 + rank));
        const auto bytes = dice.bytes(dice(0, 5) ? dice(0, 300) : dice(0, 20000));
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    switch (at.shared(0, 3)) {
        case 0: {
            std::string text = at.rank() == root ? bytes_of(root) : "";
            broadcast(t, text, root, at.shared(0, 1) ? 1000 : collective_piece);
            return must_be(text == bytes_of(root), "broadcast of bytes");
        }
        case 1: {
            const auto all = gather(t, bytes_of(at.rank()));
            for (std::size_t r = 0; r < all.size(); ++r)
                must_be(all[r] == bytes_of(static_cast<int>(r)), "gather of bytes");
            return;
        }
        case 2: {
            std::vector<std::int64_t> values{7 - at.rank(), 7 + at.rank()};
            allreduce_min(t, values);
            return must_be(values == std::vector<std::int64_t>{8 - at.size(), 7}, "allreduce_min");
        }
        default: barrier(t);
    }
}

// Descriptions differ now and then, on one rank or several: an error of all.
inline void call_agreement(ProgramRank& at) {
    RankStatus status;
    status.caller = {"one", "here"};
    const bool differs = at.size() > 1 && at.shared(0, 2) == 0, fails = at.shared(0, 3) == 0;
    const auto odd = at.shared(0, at.size() - 1);
    status.description = std::string(static_cast<std::size_t>(at.shared(0, 9000)), 'x');
    if (differs && at.rank() == odd) status.description += "y";
    status.prepared = at.rank() == odd ? 5 : 5 + at.shared(0, 1);
    bool refused = false;
    try {
        const auto other = at.shared(0, 1);
        agree_after(at.context, status, [&] {
            if (fails && at.rank() >= odd) throw KernelError(concat("rank ", at.rank(), " fails"));
        });
        (void)other;
    } catch (const KernelError& e) {
        must_be(fails && e.what() == concat("rank ", odd, " fails"), "whose error it is");
        refused = true;
    } catch (const ConfigError&) {
        must_be(differs && !fails, "an agreement of equals was refused");
        refused = true;
    }
    must_be(refused == (differs || fails), "an agreement of unequals was not refused");
}

inline void call_patterns(ProgramRank& at) {
    std::vector<std::pair<std::shared_ptr<PatternTrial>, PatternHandle>> all;
    for (auto left = at.shared(1, 5); left > 0; --left) {
        auto trial = at.make<PatternTrial>(static_cast<int>(at.shared(0, 1 << 20)), at.context);
        PatternCall call = trial->call();
        call.memory = trial;
        if (at.shared(0, 3) == 0) {
            run_pattern(at.context, call, [trial] { return trial; });
            trial->check();
        } else {
            PatternHandle handle = start_pattern(at.context, call);
            all.emplace_back(std::move(trial), std::move(handle));
        }
    }
    std::shuffle(all.begin(), all.end(), at.local.engine);
    for (auto& [trial, handle] : all) {
        for (auto polls = at.local(0, 3); polls > 0; --polls) handle.test();
        handle.wait();
        trial->check();
    }
}

inline void call_repeated_patterns(ProgramRank& at) {
    auto trial = at.make<PatternTrial>(static_cast<int>(at.shared(0, 1 << 20)), at.context);
    PatternCall call = trial->call();
    if (call.kind == PatternKind::multi_reduce) return;  // it may overwrite what it reads
    call.keep = true;
    call.memory = trial;
    PatternHandle kept = start_pattern(at.context, call);
    for (auto turns = at.shared(1, 4); turns > 0; --turns) {
        kept.start();
        if (at.shared(0, 1)) call_patterns(at);
        kept.wait();
        trial->check();
    }
}

inline void call_sends(ProgramRank& at) {
    const int p = at.size(), to = (at.rank() + 1) % p, from = (at.rank() + p - 1) % p;
    const auto count = at.shared(1, 4);
    const int tag = static_cast<int>(at.shared(0, 2047));
    std::vector<std::pair<std::shared_ptr<Guarded>, Handle>> received;
    for (std::int64_t k = 0; k < count; ++k) {
        const auto rows = at.shared(0, 9), columns = at.shared(0, 5) ? at.shared(0, 30) : at.shared(0, 9000);
        const auto of = [k](int rank) {
            return [k, rank](std::int64_t i, std::int64_t j) { return value(static_cast<int>(k), rank, i, j); };
        };
        Guarded given(rows, columns, at.local(0, 2));
        given.fill(of(at.rank()));
        auto got = at.make<Guarded>(rows, columns, at.local(0, 2));
        const auto receive = [&] {
            received.emplace_back(got, start_receive(at.context, got->view(), from, tag, got));
        };
        const bool first = at.local(0, 1);
        if (first) receive();
        send_buffered(at.context, given.view(), to, tag);
        if (!first) receive();
    }
    for (std::int64_t k = 0; k < count; ++k) {
        auto& [got, handle] = received[static_cast<std::size_t>(k)];
        handle.wait();
        got->expect([&](auto i, auto j) { return value(static_cast<int>(k), from, i, j); }, "buffered send");
    }
}

inline double element(const Index& shape, const Index& at, int turn) {
    double value = turn;
    for (int k = 0; k < at.n; ++k) value = 100 * value + static_cast<double>(floor_mod(at[k], shape[k]));
    return value;
}

inline void call_halos(ProgramRank& at) {
    const int n = static_cast<int>(at.shared(1, 3));
    Index shape = Index::filled(n, 0);
    Halo halo{shape, shape, shape, {}};
    for (int k = 0; k < n; ++k) {
        shape[k] = at.shared(1, 7);
        halo.wraps[k] = at.shared(0, 1);
        halo.below[k] = at.shared(0, std::min<std::int64_t>(shape[k], 3));
        halo.above[k] = at.shared(0, std::min<std::int64_t>(shape[k], 3));
    }
    const auto field = at.make<Field<double>>(at.context, shape, halo, [](const Index&) { return 0; });
    const bool bound = at.shared(0, 1);
    std::optional<HaloHandle> prepared;
    if (bound) prepared.emplace(bind_exchange(at.context, {{&field->storage()}}));
    for (int turn = 1; turn <= 3; ++turn) {
        field->for_each_owned([&](const Index& p, double& value) { value = element(shape, p, turn); });
        if (bound && at.shared(0, 1)) {
            prepared->run();
        } else {
            HaloHandle update = bound ? *prepared : start_exchange(*field);
            if (bound) update.start();
            if (at.shared(0, 1)) call_patterns(at);
            update.wait();
        }
        const Box storage = field->storage().storage();
        if (storage.empty()) continue;
        const Index stride = field->local_strides();
        Index p = storage.lo;
        do {
            std::int64_t offset = 0;
            for (int k = 0; k < n; ++k) offset += (p[k] - storage.lo[k]) * stride[k];
            must_be(field->local()[offset] == element(shape, p, turn), "a halo");
        } while (next_point(p, storage));
    }
}

// A ring on several lanes, again and again: each rank adds what the rank before it has to its own number. A task of one
// rank may fail.
inline void call_schedule(ProgramRank& at) {
    const int lanes = static_cast<int>(at.shared(1, 3)), rank = at.rank(), last = at.size() - 1;
    const auto times = at.shared(1, 4);
    const bool fails = at.shared(0, 2) == 0;
    const auto bad = at.shared(0, last), bad_lane = at.shared(0, lanes - 1), bad_call = at.shared(1, times);
    const Box before{{0}, {1}}, own{{1}, {2}};
    auto& s = *at.make<Schedule>();
    auto& memory = *at.make<std::vector<std::array<std::int64_t, 2>>>(static_cast<std::size_t>(lanes));
    s.rank = rank;
    s.ranks = at.size();
    std::vector<Binding> bindings;
    for (int l = 0; l < lanes; ++l) {
        s.arrays.push_back({8, {{0}, {2}}, own, {}, true});
        memory[static_cast<std::size_t>(l)] = {-1, rank + 1};
        bindings.push_back({reinterpret_cast<std::byte*>(memory[static_cast<std::size_t>(l)].data()), {8}});
        TaskWork task{0, {{l, own}}, {{l, own}}, 1};
        if (rank > 0) task.reads.push_back({l, before});
        s.works.push_back({rank * lanes + l, task});
        s.tiles.push_back({{}, 0, 0, {}, l});
        s.lanes.emplace_back();
        const auto move = [&](int peer, bool send, const Box& region) {
            Message m;
            m.peer = peer;
            m.tag = l;
            m.send = send;
            m.synchronous = send && at.shared(0, 1);
            m.array = l;
            m.region = region;
            m.bytes = 8;
            s.messages.push_back(m);
            const auto number = static_cast<std::int32_t>(s.messages.size() - 1);
            s.lanes.back().push_back({send ? Op::post_send : Op::post_recv, number});
            s.lanes.back().push_back({Op::wait, number});
        };
        if (rank > 0) move(rank - 1, false, before);
        s.lanes.back().push_back({Op::compute, l});
        if (rank < last) move(rank + 1, true, own);
        s.repeated.push_back({0, static_cast<std::int32_t>(s.lanes.back().size())});
    }
    std::int64_t calls = 0;
    const TaskFunction add = [&](const TaskCall& call) {
        auto& sum = *reinterpret_cast<std::int64_t*>(call.writes[0].data);
        sum += rank > 0 ? *reinterpret_cast<const std::int64_t*>(call.reads[1].data) : 1;
        if (fails && rank == bad && call.number % lanes == bad_lane && ++calls == bad_call)
            throw std::runtime_error("asked for");
    };
    try {
        const ScheduleReport report = run_schedule(at.context, s, bindings, {{&add, 1}, {}}, {"ring", "here"}, times);
        if (report.interrupted) throw Interrupted();
    } catch (const KernelError&) {
        return must_be(fails, "a schedule has failed");
    }
    must_be(!fails, "a failure of a task was not reported");
    std::vector<std::int64_t> sums;
    for (int r = 0; r <= rank; ++r) sums.push_back(r + 1);
    for (std::int64_t k = 0; k < times; ++k)
        for (int r = 0; r <= rank; ++r)
            sums[static_cast<std::size_t>(r)] += r ? sums[static_cast<std::size_t>(r - 1)] : 1;
    for (const auto& [in, sum] : memory) must_be(sum == sums.back(), "a ring");
}

inline void call_fields(ProgramRank& at) {
    const Index shape{at.shared(1, 20), at.shared(1, 9)};
    const auto a = at.make<Field<std::int64_t>>(at.context, shape, [](const Index& p) { return 3 * p[0] - p[1]; });
    std::int64_t sum = 0, squares = 0;
    std::vector<std::int64_t> whole;
    for (std::int64_t i = 0; i < shape[0]; ++i)
        for (std::int64_t j = 0; j < shape[1]; ++j) {
            whole.push_back(3 * i - j);
            sum += whole.back();
            squares += whole.back() * whole.back();
        }
    switch (at.shared(0, 2)) {
        case 0: {
            const auto got = a->gather();
            return must_be(at.rank() > 0 || got == whole, "gather of a field");
        }
        case 1: return must_be(a->sum() == sum, "sum of a field");
        default: return must_be(a->dot(*a) == squares, "dot of a field");
    }
}

// Two nests in turn, as bound ones or as a chain, against plain loops; the first one's body may fail.
inline constexpr auto reads_before = reads({-1, 0}, {0, -1}, {1, 1});
inline constexpr auto reads_ahead = reads({0, 1}, {1, 0});
inline constexpr auto reads_heat = reads({-1, 0, 0}, {-1, -1, 0}, {-1, 1, 0}, {-1, 0, -1}, {-1, 0, 1});
inline void call_nests(ProgramRank& at) {
    const std::int64_t n = at.shared(3, 24), m = at.shared(3, 24), times = at.shared(1, 4), steps = at.shared(1, 7);
    const bool fails = at.shared(0, 3) == 0, in_time = at.shared(0, 1), chained = at.shared(0, 1);
    const auto first = [](const Index& p) { return static_cast<double>((7 * p[0] + 13 * p[1]) % 11) - 3.5; };
    PlanRequest request;
    request.planning = Planning::quick;
    request.grouping = at.shared(0, 1) ? GroupingKind::hyperplane : GroupingKind::vertical;
    request.schedule = at.shared(0, 1) ? ScheduleKind::overlapping : ScheduleKind::blocking;
    request.slices = static_cast<int>(at.shared(1, 2));
    request.chunk_bytes = at.shared(24, 300);
    const auto a = at.make<Field<double>>(at.context, Index{n, m}, first);
    const auto limit = at.make<double>(1e300);
    const auto down = [limit](auto x) {
        if (x(-1, 0) > *limit) throw std::runtime_error("asked for");
        return 0.5 * (x(-1, 0) + x(0, -1)) - 0.25 * x(1, 1);
    };
    const auto up = [](auto x) { return 0.5 * x(0, 1) - 0.125 * x(1, 0); };
    const auto spread = [](auto x) {
        return 0.5 * x(-1, 0, 0) + 0.125 * (x(-1, -1, 0) - x(-1, 1, 0) + x(-1, 0, -1) - x(-1, 0, 1));
    };
    BoundNest one = bind(at.context, {}, request, down, writes<reads_before>(*a));
    BoundNest two = in_time ? bind(at.context, {.steps = steps}, {}, spread, writes<reads_heat>(*a))
                            : bind(at.context, {.reverse = {0, 1}}, request, up, writes<reads_ahead>(*a));
    const auto interrupted = [](bool yes) {
        if (yes) throw Interrupted();
    };
    const auto run_all = [&] {
        if (chained) return interrupted(chain(at.context, {&one, &two}).run(times).interrupted);
        for (std::int64_t k = 0; k < times; ++k) {
            interrupted(one.run().interrupted);
            interrupted(two.run().interrupted);
        }
    };
    if (fails) *limit = -1e300;
    try {
        run_all();
    } catch (const KernelError&) {
        return must_be(fails, "a nest has failed");
    } catch (const InternalError& e) {
        if (!fails || std::string(e.what()).find("asked for") == std::string::npos) throw;
        return;
    }
    must_be(!fails, "a failure of a body was not reported");
    const auto got = a->gather();
    if (at.rank() > 0) return;
    std::vector<double> b;
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < m; ++j) b.push_back(first({i, j}));
    const auto place = [m](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * m + j); };
    for (std::int64_t k = 0; k < times; ++k) {
        for (std::int64_t i = 1; i + 1 < n; ++i)
            for (std::int64_t j = 1; j + 1 < m; ++j)
                b[place(i, j)] = 0.5 * (b[place(i - 1, j)] + b[place(i, j - 1)]) - 0.25 * b[place(i + 1, j + 1)];
        for (std::int64_t i = n - 2; i >= 0 && !in_time; --i)
            for (std::int64_t j = m - 2; j >= 0; --j)
                b[place(i, j)] = 0.5 * b[place(i, j + 1)] - 0.125 * b[place(i + 1, j)];
        for (std::int64_t t = 0; t < steps && in_time; ++t) {
            const std::vector<double> c = b;
            for (std::int64_t i = 1; i + 1 < n; ++i)
                for (std::int64_t j = 1; j + 1 < m; ++j)
                    b[place(i, j)] = 0.5 * c[place(i, j)] + 0.125 * (c[place(i - 1, j)] - c[place(i + 1, j)] +
                                                                     c[place(i, j - 1)] - c[place(i, j + 1)]);
        }
    }
    must_be(got == b, "two nests in turn");
}

// A random program on 1 to 8 ranks; where asked for, with a fault of one rank at a random moment.
class SimulatedRun {
public:
    explicit SimulatedRun(std::uint64_t seed, bool faulty = false)
        : seed_(seed), dice_(seed * 2 + faulty), ranks_(static_cast<int>(dice_(1, 8))), simulation_(seed, ranks_) {
        calls_ = dice_(1, 4);
        outcomes_.resize(static_cast<std::size_t>(ranks_));
        memory_.resize(outcomes_.size());
        using Fault = SimulatedRanks::Fault;
        if (faulty) {
            fault_ = static_cast<Fault>(dice_(0, 4));
            victim_ = static_cast<int>(dice_(0, ranks_ - 1));
            const auto at = dice_(0, 3) ? dice_(1, 1500) : dice_(1, 100000);
            if (fault_ == Fault::none)
                leaves_before_ = dice_(0, calls_ - 1);
            else
                simulation_.plan_fault(fault_, victim_, at, dice_(0, 3));
        }
        errors_ = simulation_.run([this](Context& context) { program(context); });
    }
    std::uint64_t hash() const { return simulation_.hash(); }
    std::string text() const {
        std::string ends;
        for (std::size_t r = 0; r < outcomes_.size(); ++r)
            for (const std::string& outcome : outcomes_[r])
                ends += concat("rank ", static_cast<int>(r), ": ", outcome, "\n");
        return concat("seed ", static_cast<std::int64_t>(seed_), " on ", ranks_, " ranks, fault ",
                      static_cast<int>(fault_), " of rank ", victim_, ":\n", names_, ends, simulation_.last_events());
    }
    SimulatedRanks::Fault fault() const { return fault_; }
    bool struck() const { return simulation_.struck() || leaves_before_ >= 0; }

    /// What is wrong; empty: nothing.
    std::string wrong() const {
        using Fault = SimulatedRanks::Fault;
        if (simulation_.hung()) return "hung";
        const bool ends =
            leaves_before_ >= 0 || ((fault_ == Fault::death || fault_ == Fault::transport) && simulation_.struck());
        std::string allowed = ends                      ? "mpi"
                              : !simulation_.struck()   ? ""
                              : fault_ == Fault::memory ? "memory"
                                                        : "interrupt";
        for (std::size_t r = 0; r < outcomes_.size(); ++r) {
            const std::string who = concat("rank ", static_cast<int>(r));
            const bool is_victim = static_cast<int>(r) == victim_;
            if (is_victim && fault_ == Fault::death && simulation_.struck()) continue;
            if (!errors_[r].empty() && !(ends && errors_[r].starts_with("mpi")))
                return concat(who, " ended by ", errors_[r]);
            for (std::size_t k = 0; k < outcomes_[r].size(); ++k) {
                const std::string& outcome = outcomes_[r][k];
                if (!outcome.empty() && (allowed.empty() || !outcome.starts_with(allowed)))
                    return concat(who, ": ", outcome);
                if (!ends && outcome.empty() != outcomes_[0][k].empty())
                    return concat("call ", static_cast<int>(k), " has ended on rank 0 by '", outcomes_[0][k], "', on ",
                                  who, " by '", outcome, "'");
            }
        }
        if (!ends && simulation_.left_over())
            return concat(static_cast<std::int64_t>(simulation_.left_over()), " messages or receives are left");
        return "";
    }

private:
    struct Family {
        const char* name;
        void (*call)(ProgramRank&);
    };
    static constexpr Family families[] = {{"collectives", call_collectives},
                                          {"agreement", call_agreement},
                                          {"patterns", call_patterns},
                                          {"repeated patterns", call_repeated_patterns},
                                          {"sends", call_sends},
                                          {"halos", call_halos},
                                          {"schedule", call_schedule},
                                          {"fields", call_fields},
                                          {"nests", call_nests}};

    static std::string outcome_of(const std::function<void()>& call) {
        try {
            call();
            return "";
        } catch (const MpiError& e) {
            return concat("mpi: ", e.what());
        } catch (const OutOfResources& e) {
            return concat("memory: ", e.what());
        } catch (const std::bad_alloc&) {
            return "memory: of this rank";
        } catch (const Interrupted& e) {
            return concat("interrupt: ", e.what());
        } catch (const std::exception& e) {
            return e.what();
        }
    }

    void program(Context& context) {
        Dice order(seed_);
        const auto rank = static_cast<std::size_t>(context.rank());
        auto& outcomes = outcomes_[rank];
        for (std::int64_t k = 0; k < calls_; ++k) {
            if (k == leaves_before_ && context.rank() == victim_) {
                if (dice_(0, 1)) context.end();
                return;
            }
            const auto& family = families[static_cast<std::size_t>(order(0, std::ssize(families) - 1))];
            const std::uint64_t its = seed_ * 64 + static_cast<std::uint64_t>(k);
            ProgramRank at{context, Dice(its), Dice(its * 8 + rank), memory_[rank]};
            if (context.rank() == 0) names_ += concat(family.name, "\n");
            // What a rank lacks in a call of its own is its own error.
            const bool spared = family.call == call_sends;
            simulation_.spare(context.rank(), fault_ == SimulatedRanks::Fault::memory && spared);
            std::string outcome = outcome_of([&] { family.call(at); });
            memory_grant() = {};
            simulation_.note('O', context.rank(), outcome);
            outcomes.push_back(outcome);
            if (outcome.starts_with("mpi")) return context.end();
        }
        outcomes.push_back(outcome_of([&] { complete(context); }));
    }

    std::uint64_t seed_;
    Dice dice_;
    int ranks_;
    std::int64_t calls_ = 0, leaves_before_ = -1;
    SimulatedRanks::Fault fault_ = SimulatedRanks::Fault::none;
    int victim_ = -1;
    std::vector<std::vector<std::string>> outcomes_;            // by rank
    std::vector<std::vector<std::shared_ptr<void>>> memory_{};  // by rank: others may still send to one that has ended
    std::vector<std::string> errors_;
    std::string names_;
    SimulatedRanks simulation_;
};

}  // namespace tilewave
