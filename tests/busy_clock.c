// A library to be loaded before others (LD_PRELOAD): the clock of a machine on which other programs run.
// Now and then the clock is some milliseconds ahead, and then it runs at half its speed until it is right again.
// It never goes back, and it is at most 20 ms ahead, so waits end when they should. No test may depend on it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

typedef int (*GetTime)(clockid_t, struct timespec *);

static const long long nanoseconds = 1000000000;  // of a second
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long long before, ahead;
static uint64_t state;

static GetTime right_clock(void) {
    static GetTime found;
    if (!found) found = (GetTime)dlsym(RTLD_NEXT, "clock_gettime");
    return found;
}

static void unlocked(void) { pthread_mutex_init(&mutex, NULL); }

__attribute__((constructor)) static void begin(void) {
    struct timespec now;
    right_clock()(CLOCK_MONOTONIC, &now);
    state = (uint64_t)now.tv_nsec;
    pthread_atfork(NULL, NULL, unlocked);
}

// SplitMix64.
static uint64_t random_number(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

int clock_gettime(clockid_t id, struct timespec *t) {
    if (id != CLOCK_MONOTONIC) return right_clock()(id, t);
    pthread_mutex_lock(&mutex);
    const int failed = right_clock()(id, t);
    const long long now = t->tv_nsec + t->tv_sec * nanoseconds;
    ahead -= (now - before) / 2;
    if (ahead < 0) ahead = 0;
    before = now;
    const uint64_t drawn = random_number();
    const int kind = (int)(drawn % 10);  // 0: another program has the CPU for up to 10 ms; 1 to 4: for up to 0.1 ms
    if (ahead < 10000000 && kind < 5) ahead += (long long)((drawn >> 8) % (kind ? 100000 : 10000000));
    const long long shown = now + ahead;
    pthread_mutex_unlock(&mutex);
    t->tv_sec = shown / nanoseconds;
    t->tv_nsec = shown % nanoseconds;
    return failed;
}
