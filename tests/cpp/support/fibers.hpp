// Ranks that take turns on one thread, thousands of them in one test: a rank that waits lets the next one go on.
#pragma once
#include <cxxabi.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "context/agreement.hpp"
#include "context/progress_engine.hpp"
#include "support/memory_limit.hpp"

namespace tilewave {

class Fibers {
public:
    /// Which of the ranks that are left goes on; below 0: none, ever.
    using Next = std::function<int(const std::vector<int>& left)>;

    /// Calls body(rank) on each of some ranks; gives the text of each rank's exception, or "". Without `next` the ranks
    /// go on in order.
    static std::vector<std::string> run(int ranks, const std::function<void(int)>& body, const Next& next = {}) {
        Fibers all(ranks, body);
        const Here here(&all);
        std::vector<int> left(static_cast<std::size_t>(ranks));
        std::iota(left.begin(), left.end(), 0);
        std::size_t at = 0;
        while (!left.empty()) {
            const int rank = next ? next(left) : left[at < left.size() ? at : at = 0];
            if (rank < 0) break;
            all.resume(rank);
            if (all.fibers_[rank].over)
                std::erase(left, rank);
            else
                ++at;
        }
        for (const int rank : left) all.fibers_[rank].stack.at = nullptr;  // what lies there is never destroyed
        std::vector<std::string> errors;
        for (Fiber& fiber : all.fibers_) errors.push_back(std::move(fiber.error));
        return errors;
    }
    /// The rank that calls this ends at its next pause, by an exception that is no std::exception.
    static void kill() { current()->fibers_[current()->rank_].killed = true; }

private:
    struct Killed {};
    static constexpr std::size_t stack_bytes = 512 << 10, most_idle = 16;
    // What belongs to a thread, and here to each rank.
    struct OfThread {
        std::vector<std::weak_ptr<ProgressEngine>> engines;
        std::byte exceptions[sizeof(void*) + sizeof(unsigned)] = {};
        MemoryGrant grant;
        bool interrupted = false;

        void exchange() {
            std::swap(grant, memory_grant());
            const bool here = interrupt_deferred();
            defer_interrupt(std::exchange(interrupted, here));
            std::swap(engines, engines_of_thread());
            std::byte other[sizeof exceptions];
            std::memcpy(other, abi::__cxa_get_globals(), sizeof other);
            std::memcpy(abi::__cxa_get_globals(), exceptions, sizeof exceptions);
            std::memcpy(exceptions, other, sizeof other);
        }
    };
    struct Stack {
        void* at;
        Stack() {
            if (!idle().empty()) {
                at = idle().back();
                idle().pop_back();
            } else {
                at = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
            }
        }
        Stack(Stack&& other) noexcept : at(std::exchange(other.at, nullptr)) {}
        ~Stack() {
            if (at && idle().size() < most_idle)
                idle().push_back(at);
            else if (at)
                munmap(at, stack_bytes);
        }
        static std::vector<void*>& idle() {
            static std::vector<void*> stacks;
            return stacks;
        }
    };
    struct Fiber {
        Stack stack;
        ucontext_t context = {};  // where it begins
        jmp_buf place = {};       // where it goes on: unlike a change of contexts, a jump calls no system
        OfThread of_thread;
        std::string error;
        bool begun = false, over = false, killed = false;
    };
    struct Here {
        explicit Here(Fibers* all) {
            current() = all;
            Backoff::instead = [] { current()->yield(); };
        }
        ~Here() { Backoff::instead = nullptr; }
    };

    Fibers(int ranks, const std::function<void(int)>& body) : body_(body), fibers_(static_cast<std::size_t>(ranks)) {
        for (Fiber& fiber : fibers_) make(fiber);
    }
    static void make(Fiber& fiber) {
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.at;
        fiber.context.uc_stack.ss_size = stack_bytes;
        makecontext(&fiber.context, [] { current()->begin(); }, 0);
    }
    static Fibers*& current() {
        thread_local Fibers* all = nullptr;
        return all;
    }
    void resume(int rank) {
        rank_ = rank;
        Fiber& fiber = fibers_[rank];
        fiber.of_thread.exchange();
        if (_setjmp(scheduler_) == 0) {
            if (std::exchange(fiber.begun, true)) _longjmp(fiber.place, 1);
            setcontext(&fiber.context);
        }
        fibers_[rank_].of_thread.exchange();
    }
    void yield() {
        const int rank = rank_;
        if (_setjmp(fibers_[rank].place) == 0) _longjmp(scheduler_, 1);
        if (fibers_[rank].killed && !fibers_[rank].over) throw Killed();
    }
    void begin() {
        const int rank = rank_;
        try {
            body_(rank);
        } catch (const std::exception& e) {
            fibers_[rank].error = e.what();
        } catch (const Killed&) {
            fibers_[rank].error = "killed";
        }
        fibers_[rank].over = true;
        yield();
    }

    const std::function<void(int)>& body_;
    std::vector<Fiber> fibers_;
    jmp_buf scheduler_ = {};
    int rank_ = 0;
};

}  // namespace tilewave
