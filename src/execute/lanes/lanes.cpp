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

}  // namespace

struct Lanes::Pool {
    // Lanes that a run does not need are not woken for it.
    struct Worker {
        std::atomic<unsigned> round{0};  // wraps after 2^32 runs: only its changes count
        std::thread thread;
    };
    std::vector<int> cpus;
    std::deque<Worker> workers;  // lane l is workers[l - 1]
    // The caller writes body, then raises the rounds of those that work; a worker that sees a new round
    // reads it; the caller leaves run() only when `left` is 0. So nobody reads while it changes.
    std::atomic<int> left{0};
    const std::function<void(int)>* body = nullptr;
    std::atomic<bool> failed{false};
    std::exception_ptr error;  // of the first lane that failed, whichever that is
    bool stop = false;
    pid_t process = getpid();

    // What the body throws is the caller's to see: a thread that it left would end the process.
    void call(int lane) {
        try {
            (*body)(lane);
        } catch (...) {
            if (!failed.exchange(true)) error = std::current_exception();
        }
    }
    void work(int lane, std::atomic<unsigned>& round) {
        if (lane < static_cast<int>(cpus.size())) pin_to(cpus[lane]);
        for (unsigned seen = 0;; ++seen) {
            Backoff backoff;
            while (round.load(std::memory_order_acquire) == seen) {
                if (backoff.slow())
                    round.wait(seen, std::memory_order_acquire);
                else
                    backoff.pause();
            }
            if (stop) return;
            call(lane);
            left.fetch_sub(1, std::memory_order_acq_rel);
        }
    }
    void next_round(std::size_t count) {
        left.store(static_cast<int>(count), std::memory_order_relaxed);
        for (std::size_t w = 0; w < count; ++w) {
            workers[w].round.fetch_add(1, std::memory_order_release);
            workers[w].round.notify_one();
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
    pool_->next_round(pool_->workers.size());
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
            worker.thread = std::thread([&p, lane, &worker] { p.work(lane, worker.round); });
        } catch (...) {
            p.workers.pop_back();
            throw;
        }
    }
}

void Lanes::run(int n, const std::function<void(int)>& body, bool brief) {
    reserve(n);
    Pool& p = *pool_;
    std::optional<CpuSet> before;
    const bool there = brief && !p.cpus.empty() && sched_getcpu() == p.cpus[0];
    if (!p.cpus.empty() && !there) before = CpuSet::of_thread();
    if (before) pin_to(p.cpus[0]);
    p.body = &body;
    p.failed = false;
    if (n > 1) p.next_round(static_cast<std::size_t>(n - 1));
    p.call(0);
    Backoff backoff(Backoff::Kind::shared);
    while (p.left.load(std::memory_order_acquire) > 0) backoff.pause();
    if (before) (void)pthread_setaffinity_np(pthread_self(), before->bytes(), before->get());
    if (p.failed) std::rethrow_exception(std::exchange(p.error, nullptr));
}

}  // namespace tilewave
