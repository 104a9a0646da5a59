#include "data/file_cache.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/plain_bytes.hpp"
#include "data/checksum.hpp"

namespace tilewave::file_cache {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "tilewave cache 1";
constexpr off_t most_bytes = off_t{256} << 20;  // far above what is stored
// Seconds since its last change after which an unfinished file belongs to no running process.
constexpr std::time_t abandoned_s = 86400;

class Descriptor {
public:
    Descriptor(const std::string& path, int flags) : number(open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
    Descriptor(const Descriptor&) = delete;
    ~Descriptor() {
        if (number >= 0) close(number);
    }
    const int number;
};

bool is_private(const struct stat& s) {
    return s.st_uid == geteuid() && !(s.st_mode & (S_IWGRP | S_IWOTH));
}

bool is_of_user(const struct stat& s) {
    return S_ISREG(s.st_mode) && s.st_uid == geteuid();
}

std::string folder_of(const std::string& path) {
    const std::string folder = fs::path(path).parent_path();
    return folder.empty() ? "." : folder;
}

std::uint64_t sum_of(std::string_view text, std::uint64_t begin) {
    return checksum(reinterpret_cast<const std::byte*>(text.data()), static_cast<std::int64_t>(text.size()), begin);
}

std::string digits(std::uint64_t high, std::uint64_t low) {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                  static_cast<unsigned long long>(low));
    return text;
}

std::string path_of(const std::string& key, const std::string& ending) {
    const std::string where = folder();
    return where.empty() ? where : where + "/" + digits(sum_of(key, 1), sum_of(key, 2)) + ending;
}

// What a file begins with; the key and the data follow.
std::string head_of(std::string_view key, std::string_view data) {
    std::string head(magic);
    put(head, key.size());
    put(head, sum_of(data, sum_of(key, key.size())));
    return head;
}
constexpr std::size_t head_bytes = magic.size() + sizeof(std::size_t) + sizeof(std::uint64_t);

bool write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t done = ::write(file, bytes.data(), bytes.size());
        if (done <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(done));
    }
    return true;
}

bool read_all(int file, std::string& bytes) {
    for (std::size_t got = 0; got < bytes.size();) {
        const ssize_t more = read(file, bytes.data() + got, bytes.size() - got);
        if (more <= 0) return false;
        got += static_cast<std::size_t>(more);
    }
    return true;
}

// Calls visit(path, status) of the files whose names are 32 digits between these.
template <class Visit>
void for_files(const std::string& folder, std::string_view begin, std::string_view end, Visit visit) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), none; !error && entry != none; entry.increment(error)) {
        const std::string name = entry->path().filename();
        const bool fits = name.size() == begin.size() + 32 + end.size() && name.starts_with(begin) &&
                          name.ends_with(end) &&
                          name.find_first_not_of("0123456789abcdef", begin.size()) == begin.size() + 32;
        struct stat s;  // none where another process has removed it
        if (fits && lstat(entry->path().c_str(), &s) == 0) visit(entry->path().string(), s);
    }
}

// Whether a cache has begun to write a file.
bool is_of_a_cache(const std::string& path) {
    const Descriptor file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    struct stat s;
    if (file.number < 0 || fstat(file.number, &s) != 0 || !is_of_user(s)) return false;
    std::string begin(std::min(magic.size(), static_cast<std::size_t>(s.st_size)), '\0');
    return read_all(file.number, begin) && magic.starts_with(begin);
}

void remove_oldest(const std::string& folder, std::size_t most) {
    std::vector<std::pair<std::array<std::int64_t, 2>, std::string>> all;
    for (const char* const ending : {".kernel", ".rates"})
        for_files(folder, "", ending, [&](const std::string& path, const struct stat& s) {
            all.push_back({{s.st_mtim.tv_sec, s.st_mtim.tv_nsec}, path});
        });
    std::ranges::sort(all);
    for (std::size_t i = 0; i + most < all.size(); ++i)
        if (is_of_a_cache(all[i].second)) unlink(all[i].second.c_str());
}

}  // namespace

std::string folder() {
    std::error_code error;
    if (const char* const given = std::getenv("TILEWAVE_CACHE_DIR"))
        return *given ? fs::absolute(given, error).string() : std::string();
    const char* base = std::getenv("XDG_CACHE_HOME");
    if (base && *base == '/') return std::string(base) + "/tilewave";  // the XDG specification: ignore relative ones
    base = std::getenv("HOME");
    if (!base)
        if (const passwd* const user = getpwuid(geteuid())) base = user->pw_dir;
    return base && *base == '/' ? std::string(base) + "/.cache/tilewave" : std::string();
}

std::string read_private(const std::string& path, std::string& bytes) {
    const auto reason = [] { return std::generic_category().message(errno); };
    struct stat s;
    if (stat(folder_of(path).c_str(), &s) != 0) return reason();
    if (!is_private(s)) return "its folder belongs to another user, or others can write it";
    const Descriptor file(path, O_RDONLY | O_NONBLOCK);  // a FIFO is not waited for
    if (file.number < 0 || fstat(file.number, &s) != 0) return reason();
    if (!S_ISREG(s.st_mode)) return "it is no regular file";
    if (!is_private(s)) return "it belongs to another user, or others can write it";
    if (s.st_size > most_bytes)
        return "it has " + std::to_string(s.st_size) + " bytes, allowed: " + std::to_string(most_bytes);
    bytes.resize(static_cast<std::size_t>(s.st_size));
    return read_all(file.number, bytes) ? "" : "it cannot be read";
}

bool write_private(const std::string& path, const std::string& bytes) {
    const std::string where = folder_of(path);
    std::error_code error;
    fs::create_directories(folder_of(where), error);
    mkdir(where.c_str(), 0700);
    struct stat s;
    if (stat(where.c_str(), &s) != 0 || !is_private(s)) return false;
    std::random_device random;
    const auto number = [&] { return std::uint64_t{random()} << 32 | random(); };
    const std::string part = where + "/.tilewave-" + digits(number(), number()) + ".part";
    const Descriptor file(part, O_WRONLY | O_CREAT | O_EXCL);
    if (file.number < 0) return false;
    if (write_all(file.number, bytes) && rename(part.c_str(), path.c_str()) == 0) return true;
    unlink(part.c_str());
    return false;
}

void remove_unfinished(const std::string& folder) {
    for_files(folder, ".tilewave-", ".part", [](const std::string& path, const struct stat& s) {
        if (is_of_user(s) && s.st_mtim.tv_sec < std::time(nullptr) - abandoned_s) unlink(path.c_str());
    });
}

std::optional<std::string> find(const std::string& key, const std::string& ending) {
    const std::string path = path_of(key, ending);
    std::string bytes;
    if (path.empty() || !read_private(path, bytes).empty() || bytes.size() < head_bytes + key.size())
        return std::nullopt;
    const std::string data = bytes.substr(head_bytes + key.size());
    if (bytes.compare(head_bytes, key.size(), key) != 0 || !bytes.starts_with(head_of(key, data))) return std::nullopt;
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now: the oldest go first
    return data;
}

void store(const std::string& key, const std::string& ending, const std::string& data, std::size_t most) {
    const std::string path = path_of(key, ending);
    if (path.empty() || !write_private(path, head_of(key, data) + key + data)) return;
    remove_unfinished(folder_of(path));
    remove_oldest(folder_of(path), most);
}

}  // namespace tilewave::file_cache
