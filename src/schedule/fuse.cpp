#include "schedule/fuse.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "schedule/touches.hpp"
#include "tilewave/engine/layout.hpp"
#include "tilewave/error.hpp"

namespace tilewave {

namespace {

// Slices of a nest in a lane that are looked at for one that can go on.
constexpr std::size_t most_looked_at = 8;

bool is_post(Op op) {
    return op == Op::post_recv || op == Op::post_send;
}

bool waits(Op op) {
    return op == Op::wait || op == Op::await;
}

// Nests of a lane, one after another.
int nests_of(const Schedule& s, const std::vector<Step>& lane) {
    std::int32_t work = -1;
    int nests = 0;
    for (const Step& step : lane) {
        if (step.op != Op::compute || s.tiles[step.item].work == work) continue;
        work = s.tiles[step.item].work;
        nests += s.works[work].nest() != nullptr;
    }
    return nests;
}

// One lane. `others`: what other lanes touch.
class Fuser {
public:
    Fuser(Schedule& s, std::size_t lane, std::int64_t rows, const std::vector<Touch>& others)
        : s_(s), lane_(s.lanes[lane]), rows_(rows), others_(others) {}

    void run() {
        if (nests_of(s_, lane_) < 2) return;
        std::iota(first_loop_.begin(), first_loop_.end(), 0);
        for (const Work& work : s_.works)
            if (const NestWork* nest = work.nest()) {
                int& first = first_loop_[nest->space.dims()];
                for (int k = 0; k < first; ++k)
                    if (nest->space.extent(k) > 1) first = k;
            }
        list_items();
        find_order();
        mark_urgent();
        lane_ = emitted();
    }

private:
    struct Item {
        Step step;
        std::size_t group;
        std::vector<Touch> touches = {};
        std::vector<std::int32_t> after = {};  // items that come before it
        std::vector<std::int32_t> later = {};  // items that it comes before
        std::size_t open = 0;                  // of those before it, so many are left
        std::int32_t posts = 0;                // of a wait: posts that stand before it
        bool urgent = false, done = false;
    };

    // Slices of the tiles of a step, in the order of their points; itself where it is no nest or rows are not plain.
    void add_compute(const Step& step, std::size_t group) {
        const auto add = [&](std::int32_t tile) {
            items_.push_back({{Op::compute, tile, step.count}, group});
            groups_[group].push_back(static_cast<std::int32_t>(items_.size()) - 1);
        };
        const Tile whole = s_.tiles[step.item];
        const NestWork* nest = s_.works[whole.work].nest();
        const int along = nest ? first_loop_[nest->space.dims()] : 0;
        bool plain = nest && along + 1 < whole.box.dims() && !whole.box.empty() && nest->window.along < 0;
        for (int k = 0; plain && k < nest->order.n; ++k) plain = nest->order.keeps(k) && nest->order.row[k][k] == 1;
        if (!plain) return add(step.item);
        const std::int64_t rows = whole.box.extent(along), slices = ceil_div(rows, rows_);
        for (std::int64_t i = 0; i < slices; ++i) {
            Tile slice = whole;
            slice.slice = whole.slice + static_cast<std::int32_t>(i);
            slice.box = even_part(whole.box, along, slices, i);
            if (i > 0) s_.tiles.push_back(slice);
            if (i == 0) s_.tiles[step.item] = slice;
            add(i > 0 ? static_cast<std::int32_t>(s_.tiles.size()) - 1 : step.item);
        }
    }

    void list_items() {
        std::int32_t work = -1;
        for (const Step& step : lane_) {
            const bool compute = step.op == Op::compute;
            // Tasks one behind the other are one group, as the tiles of a nest are.
            const bool task = compute && !s_.works[s_.tiles[step.item].work].nest();
            const std::int32_t now = task ? -2 : compute ? s_.tiles[step.item].work : -1;
            if (!compute || now != work) groups_.emplace_back();
            work = now;
            if (compute) {
                add_compute(step, groups_.size() - 1);
                continue;
            }
            groups_.back().push_back(static_cast<std::int32_t>(items_.size()));
            items_.push_back({step, groups_.size() - 1});
            items_.back().posts = posts_;
            posts_ += is_post(step.op);
        }
        for (Item& item : items_) item.touches = touched(item.step);
        // Slices of tiles beside each other as the other nests go through their elements.
        const auto begin = [&](std::int32_t i) { return s_.tiles[items_[i].step.item].box.lo; };
        for (std::vector<std::int32_t>& group : groups_)
            if (group.size() > 1)
                std::ranges::stable_sort(group, [&](std::int32_t a, std::int32_t b) {
                    const Index x = begin(a), y = begin(b);
                    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
                });
    }

    // Elements, and what else steps must take in order: a message, its buffer, and messages of one tag. What lanes say
    // to each other keeps its place among the steps that meet other lanes: messages, and tiles whose elements others
    // touch.
    std::vector<Touch> touched(const Step& step) const {
        std::vector<Touch> all = touches(s_, step);
        const bool compute = step.op == Op::compute, lanes = step.op == Op::signal || step.op == Op::await;
        const auto add = [&](std::int32_t kind, std::int64_t number, std::int64_t more, bool writes = true) {
            Touch t{first_other + kind, {}, writes};
            t.box.lo = t.box.hi = Index::filled(2, 0);
            t.box.lo[0] = number, t.box.lo[1] = more;
            t.box.hi[0] = number + 1, t.box.hi[1] = more + 1;
            all.push_back(t);
        };
        if (lanes || !compute || std::ranges::any_of(all, [&](const Touch& t) { return conflict(others_, t); }))
            add(4, 0, 0, lanes);
        if (lanes || compute) return all;
        const Message& m = s_.messages[step.item];
        add(0, m.aggregate >= 0 ? m.aggregate : step.item, 0);
        if (m.buffer >= 0) add(1, m.buffer, 0);
        if (is_post(step.op)) add(step.op == Op::post_send ? 2 : 3, m.peer, m.tag);
        return all;
    }

    // For each item those before it that it conflicts with, of each group.
    void find_order() {
        constexpr std::size_t stride = 16;
        std::vector<std::vector<Touch>> hulls;  // of so many items each
        const auto meet = [&](const Item& item, const std::vector<Touch>& all) {
            return std::ranges::any_of(item.touches, [&](const Touch& t) { return conflict(all, t); });
        };
        for (std::size_t i = 0; i < items_.size(); ++i) {
            Item& item = items_[i];
            for (std::size_t h = 0; h < hulls.size(); ++h) {
                if (!meet(item, hulls[h])) continue;
                for (std::size_t j = h * stride; j < std::min(i, (h + 1) * stride); ++j)
                    if (meet(item, items_[j].touches)) item.after.push_back(static_cast<std::int32_t>(j));
            }
            if (i % stride == 0) hulls.emplace_back();
            for (const Touch& t : item.touches) extend(hulls.back(), t);
            item.open = item.after.size();
            for (const std::int32_t j : item.after) items_[j].later.push_back(static_cast<std::int32_t>(i));
        }
    }

    // What a send or a signal is made of, and all that it waits for.
    void mark_urgent() {
        for (std::size_t i = items_.size(); i-- > 0;) {
            Item& item = items_[i];
            item.urgent = item.urgent || item.step.op == Op::post_send || item.step.op == Op::signal;
            if (item.urgent)
                for (const std::int32_t j : item.after) items_[j].urgent = true;
        }
        for (const Item& item : items_) {
            others_left_ += item.step.op == Op::compute && !item.urgent;
            urgent_left_ += item.step.op == Op::compute && item.urgent;
            waits_left_ += waits(item.step.op);
        }
    }

    bool ready(const Item& item) const {
        return item.open == 0 && (item.step.op != Op::wait || posts_done_ >= item.posts);
    }

    std::vector<Step> emitted() {
        for (std::size_t i = 0; i < items_.size(); ++i) {
            const Item& item = items_[i];
            const auto at = static_cast<std::int32_t>(i);
            if (is_post(item.step.op)) post_order_.push_back(at);
            if (item.step.op != Op::compute)
                messages_.push_back(at);
            else if (item.urgent)
                urgent_.push_back(at);
        }
        std::vector<Step> steps;
        std::size_t left = items_.size();
        share_ = others_left_ / (waits_left_ + 1);
        while (left > 0) {
            const std::int32_t next = choose();
            ensure(next >= 0, "steps of a lane have no order");
            Item& item = items_[next];
            item.done = true;
            for (const std::int32_t i : item.later) --items_[i].open;
            steps.push_back(item.step);
            --left;
            while (posts_done_ < posts_ && items_[post_order_[posts_done_]].done) ++posts_done_;
            if (waits(item.step.op)) {
                --waits_left_;
                share_ = others_left_ / (waits_left_ + 1);
            }
            if (item.step.op == Op::compute) --(item.urgent ? urgent_left_ : others_left_);
            if (item.step.op == Op::compute && !item.urgent && share_ > 0) --share_;
            trim(messages_), trim(urgent_), trim(groups_[item.group]);
        }
        return steps;
    }

    void trim(std::vector<std::int32_t>& list) {
        std::erase_if(list, [&](std::int32_t i) { return items_[i].done; });
    }

    std::int32_t first_ready(const std::vector<std::int32_t>& list, bool waiting) const {
        for (const std::int32_t i : list)
            if (waits(items_[i].step.op) == waiting && ready(items_[i])) return i;
        return -1;
    }

    std::int32_t choose() {
        if (const std::int32_t i = first_ready(messages_, false); i >= 0) return i;
        if (const std::int32_t i = first_ready(urgent_, false); i >= 0) return i;
        if (urgent_left_ > 0 && share_ == 0)
            if (const std::int32_t i = first_ready(messages_, true); i >= 0) return i;
        for (std::size_t g = groups_.size(); g-- > 0;)
            if (const std::int32_t i = first_tile(groups_[g], most_looked_at); i >= 0) return i;
        if (const std::int32_t i = first_ready(messages_, true); i >= 0) return i;
        for (const std::vector<std::int32_t>& group : groups_)
            if (const std::int32_t i = first_tile(group, group.size()); i >= 0) return i;
        return -1;
    }

    // Of the first `most`.
    std::int32_t first_tile(const std::vector<std::int32_t>& group, std::size_t most) const {
        for (std::size_t k = 0; k < std::min(group.size(), most); ++k)
            if (const Item& item = items_[group[k]]; item.step.op == Op::compute && ready(item)) return group[k];
        return -1;
    }

    static constexpr std::int32_t first_other = 1 << 30;  // beyond the numbers of memories

    Schedule& s_;
    std::vector<Step>& lane_;
    std::int64_t rows_;
    std::array<int, max_dims + 1> first_loop_{};  // by loops of a nest: the first that some nest goes through
    const std::vector<Touch>& others_;
    std::vector<Item> items_;
    std::vector<std::vector<std::int32_t>> groups_;  // of tiles of one nest in turn, or of one other step: those left
    std::vector<std::int32_t> messages_, urgent_;    // those left
    std::vector<std::int32_t> post_order_;
    std::int32_t posts_ = 0, posts_done_ = 0;  // in their order
    std::int64_t others_left_ = 0, urgent_left_ = 0, waits_left_ = 0, share_ = 0;
};

}  // namespace

Schedule fused(Schedule schedule, std::int64_t rows) {
    const std::size_t lanes = schedule.lanes.size();
    std::vector<std::vector<Touch>> others(lanes);  // by lane, before tiles are cut
    for (std::size_t l = 0; l < lanes; ++l)
        for (const Step& step : schedule.lanes[l]) {
            if (step.op == Op::combine) return schedule;
            if (lanes == 1) continue;
            for (const Touch& t : touches(schedule, step))
                for (std::size_t other = 0; other < lanes; ++other)
                    if (other != l) others[other].push_back(t);
        }
    for (std::size_t l = 0; l < lanes && schedule.repeated.empty(); ++l) Fuser(schedule, l, rows, others[l]).run();
    return schedule;
}

}  // namespace tilewave
