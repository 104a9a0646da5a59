// What g++'s static library, compiled for glibc 2.32 or later, asks of libc: are we alone? No; other threads may be.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
