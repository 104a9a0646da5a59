#include "execute/lanes/lanes.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "core/clock.hpp"
#include "execute/lanes/cpu_set.hpp"
#include "tilewave/engine/transport.hpp"

namespace tilewave {

namespace {

void pin_to(int cpu) {
    // Best effort: a refused pin costs speed, not results.
    CpuSet set(cpu + 1);
    set.add(cpu);
    (void)pthread_setaffinity_np(pthread_self(), set.bytes(), set.get());
}

// The turns of a worker: four times the number of its runs, and what it does in the last one. Of runs that it has no
// CPU for the caller makes the end.
enum Doing : unsigned { over, invited, inside };
constexpr unsigned number_of(unsigned turn) {
    return turn & ~3u;
}
constexpr Doing doing(unsigned turn) {
    return static_cast<Doing>(turn & 3u);
}

}  // namespace

struct Lanes::Pool {
    // Lanes that a run does not need are not woken for it.
    struct Worker {
        std::atomic<unsigned> turn{over};  // wraps after 2^30 runs: only its changes count
        std::thread thread;
    };
    std::vector<int> cpus;
    std::deque<Worker> workers;  // lane l is workers[l - 1]
    // The caller writes these, then invites those that work; it leaves run() only when all turns are over. A worker
    // reads them only while it is inside.
    const std::function<bool(int)>* body = nullptr;
    std::atomic<bool> failed{false};
    std::atomic<double> spin_s{0};
    std::exception_ptr error;  // of the first lane that failed, whichever that is
    std::atomic<bool> stop{false};
    pid_t process = getpid();

    // Whether it is over. What the body throws is the caller's to see: a thread that it left would end the process.
    bool call(int lane) {
        try {
            return (*body)(lane);
        } catch (...) {
            if (!failed.exchange(true)) error = std::current_exception();
            return true;
        }
    }
    void work(int lane, std::atomic<unsigned>& turn) {
        if (lane < static_cast<int>(cpus.size())) pin_to(cpus[lane]);
        for (;;) {
            Backoff backoff;
            unsigned now = turn.load(std::memory_order_acquire);
            for (; doing(now) == over; now = turn.load(std::memory_order_acquire)) {
                if (backoff.slow())
                    turn.wait(now, std::memory_order_acquire);
                else
                    backoff.pause();
            }
            if (stop) return;
            take_part(lane, turn, now);
        }
    }
    // Until its turn is over.
    void take_part(int lane, std::atomic<unsigned>& turn, unsigned invitation) {
        const unsigned number = number_of(invitation);
        const double spins = spin_s, end = spins > 0 ? now_s() + spins : 0;
        Backoff backoff(spins > 0 ? Backoff::Kind::dedicated : Backoff::Kind::shared);
        for (;; backoff.pause()) {
            if (end > 0 && backoff.yielding() && now_s() < end) backoff.restart();
            unsigned now = invitation;
            if (!turn.compare_exchange_strong(now, number | inside, std::memory_order_acq_rel)) return;
            const bool done = call(lane);
            turn.store(number | (done ? over : invited), std::memory_order_release);
            if (done) return;
        }
    }
    void invite(std::size_t count) {
        for (std::size_t w = 0; w < count; ++w) {
            std::atomic<unsigned>& turn = workers[w].turn;
            turn.store(number_of(turn.load(std::memory_order_relaxed)) + 4 + invited, std::memory_order_release);
            turn.notify_one();
        }
    }
    // Waits for workers; `lent`: for none that waits itself, or has not begun.
    void end_turns(std::size_t count, bool lent) {
        for (std::size_t w = 0; w < count; ++w) {
            Backoff backoff(Backoff::Kind::shared);
            std::atomic<unsigned>& turn = workers[w].turn;
            for (unsigned now = turn.load(std::memory_order_acquire); doing(now) != over;
                 now = turn.load(std::memory_order_acquire)) {
                if (lent && doing(now) == invited &&
                    turn.compare_exchange_strong(now, number_of(now) | over, std::memory_order_acq_rel))
                    break;
                backoff.pause();
            }
        }
    }
};

Lanes::Lanes(std::vector<int> cpus) : pool_(std::make_unique<Pool>()) {
    pool_->cpus = std::move(cpus);
}

Lanes::~Lanes() {
    if (pool_->process != getpid()) {
        (void)pool_.release();  // a forked child: the threads are the parent's
        return;
    }
    pool_->stop = true;
    pool_->invite(pool_->workers.size());
    for (auto& w : pool_->workers) w.thread.join();
}

const std::vector<int>& Lanes::cpus() const {
    return pool_->cpus;
}

void Lanes::reserve(int n) {
    if (pool_->process != getpid()) {
        std::vector<int> cpus = pool_->cpus;
        (void)pool_.release();
        pool_ = std::make_unique<Pool>();
        pool_->cpus = std::move(cpus);
    }
    Pool& p = *pool_;
    while (static_cast<int>(p.workers.size()) < n - 1) {
        const int lane = static_cast<int>(p.workers.size()) + 1;
        Pool::Worker& worker = p.workers.emplace_back();
        try {
            worker.thread = std::thread([&p, lane, &worker] { p.work(lane, worker.turn); });
        } catch (...) {
            p.workers.pop_back();
            throw;
        }
    }
}

void Lanes::run(int n, const std::function<void(int)>& body, bool brief) {
    const auto once = [&](int lane) {
        body(lane);
        return true;
    };
    run(n, once, brief, 0, false);
}

void Lanes::run_lent(int n, const std::function<bool(int)>& body, bool brief, double spin_s) {
    run(n, body, brief, spin_s, true);
}

void Lanes::run(int n, const std::function<bool(int)>& body, bool brief, double spin_s, bool lent) {
    reserve(n);
    Pool& p = *pool_;
    std::optional<CpuSet> before;
    const bool there = brief && !p.cpus.empty() && sched_getcpu() == p.cpus[0];
    if (!p.cpus.empty() && !there) before = CpuSet::of_thread();
    if (before) pin_to(p.cpus[0]);
    const std::size_t workers = static_cast<std::size_t>(std::max(n, 1)) - 1;
    p.body = &body;
    p.failed = false;
    p.spin_s = spin_s;
    p.invite(workers);
    p.call(0);
    p.end_turns(workers, lent);
    if (before) (void)pthread_setaffinity_np(pthread_self(), before->bytes(), before->get());
    if (p.failed) std::rethrow_exception(std::exchange(p.error, nullptr));
}

}  // namespace tilewave
