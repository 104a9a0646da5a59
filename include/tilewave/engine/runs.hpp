// Sequences with a value for each rank.
#pragma once
#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <vector>

namespace tilewave {

/// A sequence of numbers, kept as runs of equal ones or of ones that grow by one: the hosts of ranks that were placed
/// in blocks take one entry a host, however many ranks there are.
template <class T>
class Runs {
public:
    Runs() = default;
    Runs(std::initializer_list<T> values) {
        for (const T& value : values) push_back(value);
    }
    explicit Runs(const std::vector<T>& values) {
        for (const T& value : values) push_back(value);
    }
    std::size_t size() const { return runs_.empty() ? 0 : runs_.back().end; }
    bool empty() const { return runs_.empty(); }
    void clear() { runs_.clear(); }
    void push_back(T value) { append(value, 1); }
    /// `count` times the same value.
    void append(T value, std::size_t count) {
        if (count == 0) return;
        const std::size_t before = size();
        if (!runs_.empty()) {
            Run& last = runs_.back();
            const std::size_t n = before - begin_of(runs_.size() - 1);
            if (n == 1 && count == 1 && value == last.first + 1) last.step = 1;
            const bool follows = value == last.first + last.step * static_cast<T>(n);
            if (follows && (last.step == 0 || count == 1)) {
                last.end += count;
                return;
            }
        }
        runs_.push_back({before + count, value, 0});
    }
    /// Log of the number of runs. @pre at < size() (not checked)
    T operator[](std::size_t at) const {
        const auto run =
            std::upper_bound(runs_.begin(), runs_.end(), at, [](std::size_t a, const Run& r) { return a < r.end; });
        return run->first + run->step * static_cast<T>(at - begin_of(static_cast<std::size_t>(run - runs_.begin())));
    }
    std::size_t count(T value) const
        requires std::integral<T>
    {
        std::size_t found = 0;
        for (std::size_t k = 0; k < runs_.size(); ++k) {
            const Run& r = runs_[k];
            const std::size_t n = r.end - begin_of(k);
            if (r.step == 0)
                found += r.first == value ? n : 0;
            else
                found += r.first <= value && value < r.first + static_cast<T>(n);
        }
        return found;
    }
    std::vector<T> values() const {
        std::vector<T> all;
        for (std::size_t k = 0; k < size(); ++k) all.push_back((*this)[k]);
        return all;
    }

private:
    struct Run {
        std::size_t end;  // one past its last place
        T first, step;
    };
    std::size_t begin_of(std::size_t run) const { return run ? runs_[run - 1].end : 0; }
    std::vector<Run> runs_;
};

}  // namespace tilewave
