#include "tilewave/report.hpp"

#include <cstdio>

namespace tilewave {

const Timeline& Report::timeline() const {
    if (!timeline_) timeline_ = make_timeline ? make_timeline() : Timeline{};
    return *timeline_;
}

std::string Report::to_string() const {
    char line[512];
    std::snprintf(line, sizeof line,
                  "plan           %s\nranks x threads %d x %d\nmeasured time  %.6g s\npoints         %lld (%.4g "
                  "/s)\noverlap ratio  %.3f\n",
                  plan.to_string().c_str(), ranks, threads, time_s, static_cast<long long>(points), points_per_s(),
                  overlap_ratio);
    return line;
}

}  // namespace tilewave
