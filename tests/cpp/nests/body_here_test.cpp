// A body in a function that this file keeps to itself; body_names_test.cpp has more of it.
#include "tilewave/tilewave.hpp"

namespace tilewave {

static Report run_body(Context& context, Field<double>& a) {
    constexpr auto north = reads({-1, 0});
    return run(context, {}, [](auto v) { return v(-1, 0) + 1; }, writes<north>(a));
}

Report run_body_here(Context& context, Field<double>& a) {
    return run_body(context, a);
}

}  // namespace tilewave
