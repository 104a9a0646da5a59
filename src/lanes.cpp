#include "tilewave/lanes.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tilewave/transport.hpp"

namespace tilewave {

namespace {

void pin_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    // Best effort: a refused pin costs speed, not results.
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

}  // namespace

std::vector<int> allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cpus;
    if (sched_getaffinity(0, sizeof set, &set)) return cpus;
    for (int c = 0; c < CPU_SETSIZE; ++c)
        if (CPU_ISSET(c, &set)) cpus.push_back(c);
    return cpus;
}

struct Lanes::Pool {
    std::vector<int> cpus;
    std::vector<std::thread> threads;  // lane l is threads[l - 1]
    // The caller writes body and active, then raises round; a worker that sees the new round
    // reads them; the caller leaves run() only when `left` is 0. So nobody reads while they change.
    std::atomic<int> round{0};
    std::atomic<int> left{0};
    const std::function<void(int)>* body = nullptr;
    int active = 0;
    bool stop = false;
    pid_t process = getpid();

    void work(int lane, int seen) {
        if (lane < static_cast<int>(cpus.size())) pin_to(cpus[lane]);
        while (true) {
            Backoff backoff;
            while (round.load(std::memory_order_acquire) == seen) {
                if (backoff.slow())
                    round.wait(seen, std::memory_order_acquire);
                else
                    backoff.pause();
            }
            ++seen;
            if (stop) return;
            if (lane < active) (*body)(lane);
            left.fetch_sub(1, std::memory_order_acq_rel);
        }
    }
    void next_round() {
        left.store(static_cast<int>(threads.size()), std::memory_order_relaxed);
        round.fetch_add(1, std::memory_order_release);
        round.notify_all();
    }
};

Lanes::Lanes(std::vector<int> cpus) : pool_(std::make_unique<Pool>()) { pool_->cpus = std::move(cpus); }

Lanes::~Lanes() {
    if (pool_->process != getpid()) {
        (void)pool_.release();  // a forked child: the threads are the parent's
        return;
    }
    pool_->stop = true;
    pool_->next_round();
    for (auto& t : pool_->threads) t.join();
}

const std::vector<int>& Lanes::cpus() const { return pool_->cpus; }

void Lanes::run(int n, const std::function<void(int)>& body) {
    if (pool_->process != getpid()) {
        std::vector<int> cpus = pool_->cpus;
        (void)pool_.release();
        pool_ = std::make_unique<Pool>();
        pool_->cpus = std::move(cpus);
    }
    Pool& p = *pool_;
    cpu_set_t before;
    const bool pin = !p.cpus.empty() && pthread_getaffinity_np(pthread_self(), sizeof before, &before) == 0;
    const int round = p.round.load(std::memory_order_relaxed);
    while (static_cast<int>(p.threads.size()) < n - 1) {
        const int lane = static_cast<int>(p.threads.size()) + 1;
        p.threads.emplace_back([&p, lane, round] { p.work(lane, round); });
    }
    if (pin) pin_to(p.cpus[0]);
    p.body = &body;
    p.active = n;
    if (n > 1) p.next_round();
    body(0);
    Backoff backoff(Backoff::Kind::shared);
    while (p.left.load(std::memory_order_acquire) > 0) backoff.pause();
    if (pin) (void)pthread_setaffinity_np(pthread_self(), sizeof before, &before);
}

}  // namespace tilewave
