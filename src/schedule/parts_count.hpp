// Where the time of one lane goes, step by step.
#pragma once
#include <algorithm>
#include <span>

#include "tilewave/engine/timeline.hpp"

namespace tilewave {

inline constexpr double Parts::* all_parts[] = {&Parts::total_s, &Parts::fill_s, &Parts::compute_s,   &Parts::pack_s,
                                                &Parts::post_s,  &Parts::wait_s, &Parts::hand_over_s, &Parts::drain_s};

/// The steps of one lane in order; each begins where the one before ended, or later.
class PartsCount {
public:
    void add(Op op, double begin_s, double end_s) {
        if (!begun_) first_ = last_ = begin_s;
        begun_ = true;
        works_ = works_ || op != Op::await;
        p_.post_s += begin_s - last_;
        const double t = end_s - begin_s;
        last_ = end_s;
        switch (op) {
            case Op::compute:
                if (!computed_) {  // what was before is how long the pipeline takes to reach the lane
                    p_.fill_s = p_.post_s + p_.wait_s + p_.hand_over_s;
                    p_.post_s = p_.wait_s = p_.hand_over_s = 0;
                }
                computed_ = true;
                p_.compute_s += t;
                break;
            case Op::pack:
            case Op::unpack:
            case Op::combine: p_.pack_s += t; break;
            case Op::wait: p_.wait_s += t; break;
            case Op::await: p_.hand_over_s += t; break;
            default: p_.post_s += t;
        }
    }
    /// Nothing until then: the lane waited for the others between two blocks of steps.
    void pause(double until_s) {
        if (!begun_) return;
        p_.hand_over_s += until_s - last_;
        last_ = until_s;
    }
    bool begun() const { return begun_; }
    /// It has steps, and is no helper, which only waits for others.
    bool works() const { return works_; }
    /// Of a run from begin_s to end_s.
    Parts of(double begin_s, double end_s) const {
        Parts p = p_;
        (computed_ ? p.fill_s : p.wait_s) += first_ - begin_s;
        p.drain_s = end_s - last_;
        return p;
    }

private:
    Parts p_;
    bool begun_ = false, works_ = false, computed_ = false;
    double first_ = 0, last_ = 0;
};

/// Over all lanes that work of a run from begin_s to end_s.
inline Parts average(std::span<const PartsCount> lanes, double begin_s, double end_s) {
    Parts all;
    const auto n =
        static_cast<double>(std::ranges::count_if(lanes, [](const PartsCount& lane) { return lane.works(); }));
    for (const PartsCount& lane : lanes) {
        if (!lane.works()) continue;
        const Parts one = lane.of(begin_s, end_s);
        for (const auto part : all_parts) all.*part += one.*part / n;
    }
    all.total_s = end_s - begin_s;
    return all;
}

}  // namespace tilewave
