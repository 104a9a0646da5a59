// Files that later processes find again: kernels of Python's bodies, and rates. And files that only the user may have
// written.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace tilewave::file_cache {

/// Files that are stored; beyond, those go that were not used for the longest time.
inline constexpr std::size_t most_files = 1024;

/// The folder: $TILEWAVE_CACHE_DIR, else $XDG_CACHE_HOME/tilewave, else ~/.cache/tilewave. Empty: nothing is stored, as
/// where TILEWAVE_CACHE_DIR is empty.
std::string folder();

/// What was stored for `key` in a file with this ending, which is ".kernel" or ".rates". The key is compared as a
/// whole, a checksum covers all, and only the user can have written the file: code from it is run.
std::optional<std::string> find(const std::string& key, const std::string& ending);

/// Stores data for a key where a file can be written, as a whole or not at all. Of other files only those are removed
/// that a cache has written: names and first bytes tell.
void store(const std::string& key, const std::string& ending, const std::string& data, std::size_t most = most_files);

/// Reads a regular file, of at most 256 MB, if only the user can have written it.
/// @returns why not; empty: it was read
std::string read_private(const std::string& path, std::string& bytes);

/// Writes a file that read_private() reads, as a whole or not at all; makes its folder.
/// @returns whether it was written: not where others can write the folder, or it is another user's
bool write_private(const std::string& path, const std::string& bytes);

/// Removes the user's files whose writing a process has begun and not ended, ".tilewave-" with 32 digits and ".part".
void remove_unfinished(const std::string& folder);

}  // namespace tilewave::file_cache
