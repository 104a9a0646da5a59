// A rank's timeline as few bytes: what a run sends of it at its end.
#pragma once
#include <string>

#include "tilewave/timeline.hpp"

namespace tilewave {

/// Events and requests in a few bytes each in place of 80 and 48, as they are but for their times: these come back to
/// half a nanosecond, the order of any two as it was.
/// @pre all of one rank; a lane's events follow each other
std::string timeline_bytes(const Timeline& timeline);

/// Adds what timeline_bytes() has made of another rank's timeline.
/// @pre `bytes` are whole (InternalError)
void add_timeline(const std::string& bytes, Timeline& to);

}  // namespace tilewave
