#include "context/slowest.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "transport/collectives.hpp"

namespace tilewave {

namespace {

// As ranks pass it on, one body after the other: ranks that have measured, whether one has failed, the numbers.
std::string packed(const std::vector<std::int64_t>& words) {
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]};
}

std::vector<std::int64_t> unpacked(const std::string& bytes) {
    std::vector<std::int64_t> words(bytes.size() / sizeof(std::int64_t));
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

}  // namespace

std::vector<SlowestNumbers> slowest(Transport& t, const std::vector<std::int64_t>& mine, std::size_t each,
                                    std::int64_t nothing) {
    const std::size_t bodies = mine.size() / each, width = each + 2;
    std::vector<std::int64_t> words(bodies * width, 0);
    for (std::size_t b = 0; b < bodies; ++b) {
        const auto own = mine.begin() + static_cast<std::ptrdiff_t>(b * each),
                   end = own + static_cast<std::ptrdiff_t>(each);
        if (*own == nothing) continue;
        words[b * width] = 1;
        words[b * width + 1] = std::any_of(own, end, [](std::int64_t n) { return n < 0; });
        std::copy(own, end, words.begin() + static_cast<std::ptrdiff_t>(b * width + 2));
    }
    std::string bytes = packed(words);
    allreduce(t, bytes, [&](std::string& ours, const std::string& theirs) {
        std::vector<std::int64_t> all = unpacked(ours);
        const std::vector<std::int64_t> other = unpacked(theirs);
        for (std::size_t at = 0; at < all.size(); at += width) {
            const bool slower = other[at] > 0 && (all[at] == 0 || other[at + width - 1] > all[at + width - 1]);
            all[at] += other[at];
            all[at + 1] |= other[at + 1];
            if (slower) std::copy_n(&other[at + 2], each, &all[at + 2]);
        }
        ours = packed(all);
    });
    words = unpacked(bytes);
    std::vector<SlowestNumbers> result;
    for (std::size_t at = 0; at < words.size(); at += width)
        result.push_back({words[at], words[at + 1] != 0, {&words[at + 2], &words[at + 2] + each}});
    return result;
}

}  // namespace tilewave
