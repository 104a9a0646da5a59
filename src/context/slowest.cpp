#include "context/slowest.hpp"

#include <algorithm>
#include <span>

#include "transport/collectives.hpp"

namespace tilewave {

std::vector<SlowestNumbers> slowest(Transport& t, const std::vector<std::int64_t>& numbers, std::size_t each,
                                    std::int64_t nothing) {
    const std::size_t bodies = numbers.size() / each, width = each + 2;
    std::vector<std::int64_t> words(bodies * width, 0);  // by body: ranks that measured, whether one failed, numbers
    for (std::size_t b = 0; b < bodies; ++b) {
        const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(b * each),
                   end = first + static_cast<std::ptrdiff_t>(each);
        if (*first == nothing) continue;
        words[b * width] = 1;
        words[b * width + 1] = std::any_of(first, end, [](std::int64_t n) { return n < 0; });
        std::copy(first, end, words.begin() + static_cast<std::ptrdiff_t>(b * width + 2));
    }
    allreduce(t, words, [&](std::span<std::int64_t> all, std::span<const std::int64_t> other) {
        for (std::size_t at = 0; at < all.size(); at += width) {
            const bool slower = other[at] > 0 && (all[at] == 0 || other[at + width - 1] > all[at + width - 1]);
            all[at] += other[at];
            all[at + 1] |= other[at + 1];
            if (slower) std::copy_n(&other[at + 2], each, &all[at + 2]);
        }
    });
    std::vector<SlowestNumbers> result;
    for (std::size_t at = 0; at < words.size(); at += width)
        result.push_back({words[at], words[at + 1] != 0, {&words[at + 2], &words[at + 2] + each}});
    return result;
}

}  // namespace tilewave
