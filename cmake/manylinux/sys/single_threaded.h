// In place of glibc's header, which version 2.28 has not: g++'s library asks it whether to count references without
// atomic operations. Never.
#pragma once
constexpr bool __libc_single_threaded = false;
