// Sets of CPUs of any number: cpu_set_t ends at 1,024.
#pragma once

#include <sched.h>

#include <cerrno>
#include <optional>
#include <vector>

namespace tilewave {

class CpuSet {
public:
    /// Empty, with room for CPUs below `cpus` at least.
    explicit CpuSet(int cpus) : words_((static_cast<std::size_t>(cpus) + word_bits - 1) / word_bits) {}

    /// Those that the calling thread may run on.
    static std::optional<CpuSet> of_thread() {
        for (int cpus = CPU_SETSIZE;; cpus *= 2) {  // the kernel refuses smaller sets than its mask with EINVAL
            CpuSet set(cpus);
            if (sched_getaffinity(0, set.bytes(), set.get()) == 0) return set;
            if (errno != EINVAL || cpus > (1 << 20)) return {};
        }
    }
    /// @pre 0 <= cpu < size()
    void add(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), get()); }
    /// @pre 0 <= cpu < size()
    bool has(int cpu) const { return CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes(), get()); }
    int size() const { return static_cast<int>(words_.size() * word_bits); }
    std::size_t bytes() const { return words_.size() * sizeof(unsigned long); }
    cpu_set_t* get() { return reinterpret_cast<cpu_set_t*>(words_.data()); }
    const cpu_set_t* get() const { return reinterpret_cast<const cpu_set_t*>(words_.data()); }

private:
    static constexpr std::size_t word_bits = 8 * sizeof(unsigned long);
    std::vector<unsigned long> words_;  // the kernel's layout
};

}  // namespace tilewave
