#include "schedule/timeline_bytes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewave/error.hpp"

// A record is a head, which names its kind and which of its numbers are not as foretold, and these: the difference to
// what was foretold, seven bits a byte. Tiles, tags and peers of one kind of step follow each other in equal strides
// mostly; times count from the end of the step before. There are few heads: each is written once, and is a byte from
// then on.

namespace tilewave {

namespace {

constexpr double ns = 1e-9;
constexpr int most_numbers = 16;
using Numbers = std::array<std::int64_t, most_numbers>;

// Sums and differences of numbers that may be anything.
std::int64_t plus(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t minus(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

// What both sides know when a record comes: the last two of its kind.
class Foreteller {
public:
    // The first `strided` numbers go on as from the last but one to the last; others are 0.
    Numbers next(unsigned kind, int strided) const {
        Numbers n{};
        const auto& [last, stride] = kinds_[kind];
        for (std::size_t k = 0; k < static_cast<std::size_t>(strided); ++k) n[k] = plus(last[k], stride[k]);
        return n;
    }
    void learn(unsigned kind, const Numbers& seen) {
        auto& [last, stride] = kinds_[kind];
        for (std::size_t k = 0; k < seen.size(); ++k) stride[k] = minus(seen[k], last[k]);
        last = seen;
    }

private:
    std::array<std::pair<Numbers, Numbers>, 256> kinds_{};
};

// Heads in the order in which they came, as far as a byte can number them.
class Heads {
public:
    static constexpr unsigned unknown = 255;
    unsigned number(unsigned head) const {
        const auto it = numbers_.find(head);
        return it == numbers_.end() ? unknown : it->second;
    }
    unsigned head(unsigned number) const {
        if (number >= heads_.size()) throw InternalError("a rank's timeline names a head that did not come");
        return heads_[number];
    }
    void learn(unsigned head) {
        if (heads_.size() == unknown) return;
        numbers_[head] = static_cast<unsigned>(heads_.size());
        heads_.push_back(head);
    }

private:
    std::unordered_map<unsigned, unsigned> numbers_;
    std::vector<unsigned> heads_;
};

class Writer {
public:
    void number(std::int64_t value) {
        auto rest = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
        for (; rest >= 128; rest >>= 7) bytes_.push_back(static_cast<char>(rest | 128));
        bytes_.push_back(static_cast<char>(rest));
    }
    void exact(double value) {
        char raw[sizeof value];
        std::memcpy(raw, &value, sizeof value);
        bytes_.append(raw, sizeof raw);
    }
    void record(unsigned kind, const Numbers& numbers, int strided) {
        const Numbers foretold = told_.next(kind, strided);
        unsigned head = kind << most_numbers;
        for (std::size_t k = 0; k < numbers.size(); ++k)
            if (numbers[k] != foretold[k]) head |= 1u << k;
        const unsigned known = heads_.number(head);
        bytes_.push_back(static_cast<char>(known));
        if (known == Heads::unknown) {
            number(head);
            heads_.learn(head);
        }
        for (std::size_t k = 0; k < numbers.size(); ++k)
            if (head >> k & 1u) number(minus(numbers[k], foretold[k]));
        told_.learn(kind, numbers);
    }
    std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
    Foreteller told_;
    Heads heads_;
};

class Reader {
public:
    explicit Reader(const std::string& bytes) : bytes_(bytes) {}
    std::int64_t number() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(next());
            value |= static_cast<std::uint64_t>(byte & 127) << shift;
            if (byte < 128) break;
        }
        return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
    }
    double exact() {
        double value;
        char raw[sizeof value];
        for (char& c : raw) c = next();
        std::memcpy(&value, raw, sizeof value);
        return value;
    }
    // The kind of the record, and its numbers.
    unsigned record(Numbers& numbers, int strided) {
        const unsigned known = static_cast<unsigned char>(next());
        const unsigned head = known == Heads::unknown ? static_cast<unsigned>(number()) : heads_.head(known);
        if (known == Heads::unknown) heads_.learn(head);
        const unsigned kind = head >> most_numbers & 255;
        numbers = told_.next(kind, strided);
        for (std::size_t k = 0; k < numbers.size(); ++k)
            if (head >> k & 1u) numbers[k] = plus(numbers[k], number());
        told_.learn(kind, numbers);
        return kind;
    }

private:
    char next() {
        if (at_ == bytes_.size()) throw InternalError("a rank's timeline came in part");
        return bytes_[at_++];
    }
    const std::string& bytes_;
    std::size_t at_ = 0;
    Foreteller told_;
    Heads heads_;
};

// Of an event: these go on in strides; then step, begin and end, from the event before.
constexpr int event_strided = 11, request_strided = 4;
constexpr unsigned sent = 254, received = 255;  // kinds of requests

unsigned kind_of(const Event& e) {
    return static_cast<unsigned>(e.op) * 2 + (e.send ? 1u : 0u);
}

}  // namespace

std::string timeline_bytes(const Timeline& timeline) {
    Writer out;
    double zero = std::numeric_limits<double>::infinity();
    for (const Event& e : timeline.events) zero = std::min(zero, e.begin_s);
    if (!std::isfinite(zero)) zero = 0;
    auto tick = [&](double t) { return std::llround((t - zero) / ns); };
    out.exact(zero);
    out.number(static_cast<std::int64_t>(timeline.events.size()));
    out.number(static_cast<std::int64_t>(timeline.requests.size()));
    out.number(timeline.events.empty() ? timeline.requests.empty() ? 0 : timeline.requests[0].rank
                                       : timeline.events[0].rank);
    std::int64_t step = -1, end = 0;
    for (const Event& e : timeline.events) {
        const std::int64_t begin = tick(e.begin_s), until = tick(e.end_s);
        static_assert(max_dims == 4);
        out.record(kind_of(e),
                   {e.lane, e.peer, e.tag, e.send, e.slice, e.tile[0], e.tile[1], e.tile[2], e.tile[3], e.wave, e.bytes,
                    e.step - step - 1, begin - end, until - begin},
                   event_strided);
        step = e.step;
        end = until;
    }
    std::int64_t posted = 0;
    for (const Request& r : timeline.requests) {
        const std::int64_t at = tick(r.posted_s);
        out.record(r.send ? sent : received, {r.lane, r.peer, r.tag, r.bytes, at - posted, tick(r.completed_s) - at},
                   request_strided);
        posted = at;
    }
    return out.take();
}

void add_timeline(const std::string& bytes, Timeline& to) {
    Reader in(bytes);
    const double zero = in.exact();
    const std::int64_t events = in.number(), requests = in.number();
    const auto rank = static_cast<std::int32_t>(in.number());
    auto time = [&](std::int64_t tick) { return zero + static_cast<double>(tick) * ns; };
    auto small = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
    Numbers n;
    std::int64_t step = -1, end = 0, posted = 0;
    to.events.reserve(to.events.size() + static_cast<std::size_t>(events));
    to.requests.reserve(to.requests.size() + static_cast<std::size_t>(requests));
    for (std::int64_t i = 0; i < events; ++i) {
        const unsigned kind = in.record(n, event_strided);
        step += n[11] + 1;
        const std::int64_t begin = end + n[12];
        end = begin + n[13];
        to.events.push_back({rank,
                             small(n[0]),
                             small(step),
                             small(kind / 2),
                             small(n[1]),
                             small(n[2]),
                             small(n[3]),
                             small(n[4]),
                             {small(n[5]), small(n[6]), small(n[7]), small(n[8])},
                             n[9],
                             n[10],
                             time(begin),
                             time(end)});
    }
    for (std::int64_t i = 0; i < requests; ++i) {
        const unsigned kind = in.record(n, request_strided);
        posted += n[4];
        to.requests.push_back(
            {rank, small(n[0]), small(n[1]), small(n[2]), kind == sent, 0, n[3], time(posted), time(posted + n[5])});
    }
}

}  // namespace tilewave
