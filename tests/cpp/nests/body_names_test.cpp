// Bodies whose types have one name are two bodies: ranks that run different ones are told.
#include <gtest/gtest.h>

#include "support/ranks.hpp"
#include "tilewave/tilewave.hpp"

namespace tilewave {

Report run_body_here(Context& context, Field<double>& a);
Report run_body_there(Context& context, Field<double>& a);

TEST(BodyNames, TellLambdasOfTwoFilesApart) {
    const auto errors = errors_on_ranks(2, [](Context& context) {
        Field<double> a(context, {10, 10}, [](const Index&) { return 1.0; });
        EXPECT_NO_THROW(run_body_here(context, a));
        EXPECT_NO_THROW(run_body_there(context, a));
        (context.rank() ? run_body_here : run_body_there)(context, a);
    });
    for (const std::string& error : errors)
        EXPECT_NE(error.find("the ranks were given different arguments"), std::string::npos) << error;
}

}  // namespace tilewave
