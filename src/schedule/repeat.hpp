// Schedules with a block of steps that runs again and again.
#pragma once
#include <span>
#include <vector>

#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// Where a step of a lane stands.
enum class Section : std::uint8_t { before, block, after };
Section section_of(const Schedule& schedule, std::size_t lane, std::size_t step);

/// What one repetition adds to each lane's counter. In repetition k, from 0 on, `signal` and `await` mean their counts
/// and k times that of their lane; behind the block k is the last one.
/// @pre a range for each lane, or none (not checked)
std::vector<std::int32_t> growth(const Schedule& schedule);

/// How the steps of a lane follow each other.
class Repetitions {
public:
    Repetitions() = default;
    Repetitions(const Schedule& schedule, std::size_t lane, std::int64_t times)
        : times_(schedule.repeated.empty() ? 1 : times) {
        if (times_ > 1) range_ = schedule.repeated[lane];
    }
    /// The place and the repetition of the `i`-th step that the lane takes.
    std::size_t step(std::int64_t i) const {
        const std::int64_t length = range_.end - range_.begin;
        if (times_ == 1 || i < range_.begin) return static_cast<std::size_t>(i);
        if (i < range_.begin + times_ * length)
            return static_cast<std::size_t>(range_.begin + (i - range_.begin) % length);
        return static_cast<std::size_t>(i - (times_ - 1) * length);
    }
    /// From the step just taken, or from the begin (step 0), to the next.
    void advance(std::size_t& step, std::int64_t& repetition) const {
        if (times_ == 1 || step != static_cast<std::size_t>(range_.end)) return;
        if (range_.begin == range_.end) {
            repetition = times_ - 1;
        } else if (repetition + 1 < times_) {
            step = static_cast<std::size_t>(range_.begin);
            ++repetition;
        }
    }

private:
    std::int64_t times_ = 1;
    StepRange range_;
};

/// A schedule that does the same without a block: its steps `times` times, works, tiles and messages of each repetition
/// with other numbers; where they are of later time steps, as one nest of all of them. Works of the block are
/// those whose numbers lie between those of its tiles, of all ranks. For proofs and predictions of a few repetitions.
/// @pre times >= 1; a range for each lane, or none (not checked)
std::vector<Schedule> unrolled(std::span<const Schedule> schedules, std::int64_t times);

/// Numbers of the works that tiles of the blocks belong to: the first, and one behind the last; equal where none do.
struct WorkRange {
    std::int64_t begin = 0, end = 0;
};
WorkRange repeated_works(std::span<const Schedule> schedules);

/// A block of all steps of `schedule`, so that it runs as often as asked: steps wait for those steps of other lanes of
/// the repetition before that touch the same elements, buffers or messages. Local and pure; costs the square of the
/// steps at worst, where there are several lanes.
/// @pre no block yet (ConfigError)
Schedule repeatable(const Schedule& schedule);

}  // namespace tilewave
