// The exceptions that cross the library's boundary.
#pragma once
#include <stdexcept>
#include <string>

namespace tilewave {

/// What the caller gave cannot be done; the message names it and what is allowed.
/// Becomes `ConfigError` (a `ValueError`) in Python.
struct ConfigError : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// The MPI library returned an error; the message is our call and MPI's text.
struct MpiError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The kernel raised at a point; the message has the rank, the point and the reason. After it the
/// written array holds what was computed before the failure and is otherwise unspecified.
struct KernelError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The caller's heartbeat asked a wait to end; what is in flight stays in flight.
/// Becomes KeyboardInterrupt in Python.
struct Interrupted : std::runtime_error {
    explicit Interrupted(const std::string& text = "interrupted") : std::runtime_error(text) {}
};

/// Memory or threads ran out, on any rank: every rank of the call raises it. Becomes MemoryError in Python.
struct OutOfResources : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A broken invariant of Tilewave itself: a bug to report.
struct InternalError : std::logic_error {
    using std::logic_error::logic_error;
};

/// @throws InternalError with `what` unless `ok`.
inline void ensure(bool ok, const char* what) {
    if (!ok) throw InternalError(std::string("internal error: ") + what);
}

}  // namespace tilewave
