// A fixed set of pinned threads, one a lane; the caller is lane 0.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "execute/lanes/cpus.hpp"

namespace tilewave {

/// Threads that stay between runs. Lane l runs on cpus[l]; with no cpus given nothing is pinned.
class Lanes {
public:
    explicit Lanes(std::vector<int> cpus = {});
    ~Lanes();
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;

    /// Calls body(lane) for lanes 0..n-1 at once and returns when all have; lane 0 is the caller,
    /// whose affinity is restored afterwards. `brief`: the body is so short that the caller is not pinned where it is
    /// on its CPU already: pinning and restoring take 6 us.
    /// @throws what the first lane threw that failed, when all have returned
    void run(int n, const std::function<void(int)>& body, bool brief = false);
    /// The same of a body that returns false where its lane waits for others, and is called again. Once body(0) has
    /// returned, lanes that wait, or whose thread has not had a CPU yet, are called no more. `spin_s`: seconds for
    /// which a lane that waits keeps its CPU; 0 where there are more threads than CPUs.
    /// @pre body(0) returns true, when nothing is left to be done (not checked)
    void run_lent(int n, const std::function<bool(int)>& body, bool brief, double spin_s);
    /// Starts the threads that run(n, ...) needs.
    /// @throws std::system_error where the system has none left; those that were started stay
    void reserve(int n);
    const std::vector<int>& cpus() const;

private:
    void run(int n, const std::function<bool(int)>& body, bool brief, double spin_s, bool lent);
    struct Pool;
    std::unique_ptr<Pool> pool_;
};

}  // namespace tilewave
