#include "transport/host_memory.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "transport/collectives.hpp"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace tilewave {

#if defined(__linux__)

namespace {

// A file without a name, which lives as long as someone has it open or mapped.
class File {
public:
    explicit File(int number) : number_(number) {}
    ~File() {
        if (number_ >= 0) close(number_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int number() const { return number_; }

    std::byte* map(std::size_t bytes) const {
        if (number_ < 0) return nullptr;
        void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, number_, 0);
        return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
    }

private:
    int number_;
};

std::uint64_t random_number() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32 | device()) | 1;
}

}  // namespace

std::unique_ptr<HostMemory> HostMemory::make(Transport& t, const std::vector<int>& ranks, std::size_t wanted) {
    const std::size_t end = (wanted + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t) * sizeof(std::uint64_t),
                      bytes = end + sizeof(std::uint64_t);
    const bool first = ranks.front() == t.rank(), alone = ranks.size() == 1;
    const File made(first && !alone ? memfd_create("tilewave", MFD_CLOEXEC) : -1);
    std::byte* data = nullptr;
    std::string word = "-";
    if (made.number() >= 0 && ftruncate(made.number(), static_cast<off_t>(bytes)) == 0 && (data = made.map(bytes))) {
        // Who finds this number has the same file, whatever another system calls by the same path.
        const std::uint64_t number = random_number();
        std::memcpy(data + end, &number, sizeof number);
        word =
            "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(made.number()) + ":" + std::to_string(number);
    }
    std::string from = word;
    broadcast_among(t, ranks, from);
    if (!first && from != "-") {
        const auto colon = from.find(':');
        data = File(open(from.substr(0, colon).c_str(), O_RDWR | O_CLOEXEC)).map(bytes);
        std::uint64_t number = 0;
        if (data) std::memcpy(&number, data + end, sizeof number);
        if (data && std::to_string(number) != from.substr(colon + 1)) {
            munmap(data, bytes);
            data = nullptr;
        }
    }
    std::vector<std::int64_t> fine{data || alone ? 1 : 0};
    allreduce_min(t, fine);  // the file stays open until all have been at it
    std::unique_ptr<HostMemory> memory(data ? new HostMemory(data, bytes) : nullptr);
    return fine[0] ? std::move(memory) : nullptr;
}

HostMemory::~HostMemory() {
    munmap(data_, bytes_);
}

#else

std::unique_ptr<HostMemory> HostMemory::make(Transport&, const std::vector<int>&, std::size_t) {
    return nullptr;
}
HostMemory::~HostMemory() = default;

#endif

}  // namespace tilewave
