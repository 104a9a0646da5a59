#include "run/run_ending.hpp"

#include <limits>
#include <utility>

#include "context/agreement.hpp"

namespace tilewave {

namespace {

// What this rank has to say of its own end; fine, too, where it was stopped for another one's.
Statement statement_of(const Outcome& o, const std::function<std::string(const Failure&)>& explain, int rank) {
    Statement mine;
    try {
        if (o.failure) return {Statement::Kind::kernel, explain(*o.failure), ""};
        o.must_have_run();
    } catch (const KernelError& e) {  // of a task: it says where
        return {Statement::Kind::kernel, e.what(), ""};
    } catch (...) {
        blame(mine, std::current_exception(), "in a run on rank " + std::to_string(rank));
        if (mine.kind == Statement::Kind::resources) mine.error += "; the arrays that are written now hold anything";
    }
    return mine;
}

// What is called while this rank waits for others.
class Meanwhile {
public:
    template <class F>
    Meanwhile(Transport& t, F& f) : t_(t), before_(std::exchange(t.meanwhile, [&f] { f(); })) {}
    ~Meanwhile() { t_.meanwhile = std::move(before_); }
    Meanwhile(const Meanwhile&) = delete;
    Meanwhile& operator=(const Meanwhile&) = delete;

private:
    Transport& t_;
    std::function<void()> before_;
};

}  // namespace

RunEnding agree_on_end(Transport& t, Alarms& alarms, const Outcome& o, std::int64_t failed_block, const CallTimes& call,
                       const std::function<std::string(const Failure&)>& explain,
                       const std::function<bool(double)>& heartbeat) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    const auto slowest = [](double seconds) { return -static_cast<std::int64_t>(seconds * 1e9); };
    const bool failed = o.failure || o.error;
    // Others may compute for long yet.
    bool late = false;
    const auto look = [&] {
        (void)alarms.heard();
        if (late || o.interrupted || !heartbeat || !heartbeat(-1)) return;
        late = true;
        alarms.raise();
    };
    const Meanwhile looking(t, look);
    std::vector<std::int64_t> v{failed ? failed_block * t.size() + t.rank() : none,
                                o.interrupted ? 0 : 1,
                                o.stopped || alarms.raised() ? 0 : 1,
                                slowest(o.time_s),
                                slowest(call.moving_s),
                                slowest(call.call_s)};
    allreduce_min(t, v);
    if (v[2] == 0) alarms.settle();
    if (v[0] == none && v[1] != 0 && v[2] == 0) {  // a rank that waited here has stopped the others
        std::vector<std::int64_t> interrupted{late ? 0 : 1};
        allreduce_min(t, interrupted);
        v[1] = interrupted[0];
    }
    if (v[0] != none) {
        const int from = static_cast<int>(v[0] % t.size());
        const Statement mine = t.rank() == from ? statement_of(o, explain, from) : Statement();
        std::string text = static_cast<char>(mine.kind) + mine.error;
        broadcast(t, text, from);
        throw_as(static_cast<Statement::Kind>(text[0]), text.substr(1));
    }
    if (v[1] != 0 && v[2] == 0) throw InternalError("a run was stopped, and no rank says why");
    const auto seconds = [&](std::size_t i) { return static_cast<double>(-v[i]) * 1e-9; };
    return {v[1] == 0, seconds(3), seconds(4), seconds(5)};
}

}  // namespace tilewave
