#include "core/avx2.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#ifdef TILEWAVE_AVX2
// Linux lists what processor and system have, without the compiler's help.
TEST(Avx2, IsFoundWhereLinuxListsIt) {
    std::ostringstream all;
    all << std::ifstream("/proc/cpuinfo").rdbuf();
    ASSERT_NE(all.str().find("flags"), std::string::npos);
    EXPECT_EQ(tilewave::has_avx2, all.str().find(" avx2") != std::string::npos);
}
#endif
