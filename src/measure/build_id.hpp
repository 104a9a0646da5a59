// Which machine code a function of the program is.
#pragma once
#include <string>

namespace tilewave {

/// The build ID of the program or library that contains `code`, and its offset there: equal for equal machine code.
/// Empty where a linker has written no build ID.
std::string code_digest(const void* code);

}  // namespace tilewave
