#include "generate/linalg/factor_column.hpp"
#include "generate/linalg/factors.hpp"

namespace tilewave {

namespace {

class Qr : public FactorOnColumns {
public:
    // Of each column of a panel ranks tell its products with all columns, and the row on the diagonal.
    Qr(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks)
        : FactorOnColumns(layout, item_bytes, choices, rank, ranks, 1, 0),
          triangles_(static_cast<std::int32_t>(list_.schedule().arrays.size())) {
        list_.schedule().arrays.push_back(by_columns(item_bytes, triangles_of(layout, rank)));
    }

private:
    // Of a step: the panel, then passing tiles by block column, then updates by block column and some of its columns or
    // tiles.
    std::int64_t number(std::int64_t k, std::int64_t within) const {
        return k * (updates_ + tiles_.block_columns() * std::max(tiles_.block, n_)) + within;
    }
    // Nobody needs the last panel of a matrix that is not wide.
    std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const override {
        return {k, k + 1 < tiles_.block_columns() ? n_ + 1 : k};
    }

    void factor(std::int64_t k) override {
        if (several_rows()) return reflect(k);
        const Region column = of_matrix(k, k, n_);
        const std::int64_t width = column.box.extent(1);
        std::vector<Region> writes{column, triangle(k)};
        if (const auto [t0, t1] = travels(k); t0 < t1) writes.push_back(of_panel(k, t0, t1));
        // The reflectors, and T; of a panel with fewer rows than columns as many of them as rows.
        const double w = static_cast<double>(width), high = static_cast<double>(column.box.extent(0)),
                     count = std::min(w, high);
        list_.task(0, number(k, 0), qr_panel, {column}, std::move(writes), w * count * (3 * high - count * 2 / 3),
                   {k, k});
    }

    // T of panel k in its array, and behind the tiles of V.
    Region triangle(std::int64_t k) const {
        const std::int64_t lo = layout_.columns.first(me_) + layout_.columns.local_of({tiles_.lo(k)}).at;
        return {triangles_, {{0, lo}, {tiles_.block, lo + tiles_.width(k)}}};
    }
    Region behind(std::int64_t k) const { return of_panel(k, n_, n_ + 1); }

    // A panel on a column of ranks: what all know of a column, its products with the others and its row on the
    // diagonal, is enough for the reflector, and for its column of T.
    void reflect(std::int64_t k) {
        const std::int64_t width = tiles_.width(k), first = tiles_.lo(k), count = std::min(width, tiles_.rows - first);
        const int last = rounds_->rounds() - 1;
        const bool has = has_rows(k, n_);
        const auto [t0, t1] = travels(k);
        const Region rows = of_matrix(k, k, n_);
        const double flops = 4.0 * static_cast<double>(has ? rows.box.extent(0) * width : 1);
        for (std::int64_t c = 0, next; c <= count; c = next) {
            const std::int64_t base = c * rounds_->works();
            std::vector<Region> reads, writes{behind(k)};
            if (c > 0) {
                reads = rounds_->values(first + c - 1, last);
                reads.insert(reads.begin(), behind(k));
            }
            if (has) reads.push_back(rows);
            if (c < count) writes.push_back(rounds_->value(first + c, 0));
            if (c == count && has && t0 < t1) writes.push_back(of_panel(k, k, n_));
            if (c == count && row_ == 0) writes.push_back(triangle(k));
            if (c > 0 && has) writes.push_back(rows);
            list_.task(0, number(k, base + rounds_->work(0)),
                       c == 0      ? qr_first
                       : c < count ? qr_next
                                   : qr_last,
                       std::move(reads), std::move(writes), flops, {k, k, c});
            for (int round = 0; c < count && round <= last; ++round) {
                if (round > 0)
                    list_.task(0, number(k, base + rounds_->work(round)), qr_sum, rounds_->values(first + c, round - 1),
                               {rounds_->value(first + c, round)}, static_cast<double>(2 * width), {k, k, c});
                rounds_->exchange(first + c, round);
            }
            next = c < count ? after_column(c, count, number(k, base + rounds_->works())) : c + 1;
        }
    }

    // V^H C of a column of ranks: each adds its part to the tiles that pass; T^H of the sum goes down the column.
    void bring(std::int64_t k, Part part) override { pass(k, part, {columns_of(k, part)}); }

    void hop(std::int64_t k, Hop what, std::int64_t within, const Box& chunk, std::int64_t j) override {
        if (what == begins) return;
        const Region sums{array_passing_, chunk};
        const auto items = static_cast<double>(chunk.points());
        if (what == ends) {
            list_.task(0, number(k, within), qr_turn, {behind(k), sums}, {{array_across_, chunk}},
                       2 * items * static_cast<double>(tiles_.block), {k, j, within});
            return;
        }
        const Region columns = under(chunk, j, k, n_);
        std::vector<Region> reads{of_panel(k, k, n_), columns};
        if (!has_row(k)) reads.push_back(sums);
        list_.task(0, number(k, within), qr_project, std::move(reads), {sums},
                   2 * items * static_cast<double>(columns.box.extent(0)), {k, j, within});
    }

    // Block column j, some of its columns at a time: each is read twice, for V^H C and for C - V (T^H V^H C).
    void update(int lane, std::int64_t k, std::int64_t j, std::int64_t, std::int64_t t1, bool looks) override {
        if (t1 <= n_) return;  // T comes last
        if (several_rows()) return subtract(lane, k, j, looks);
        const Region whole = of_matrix(j, k, n_);
        const double flops = 4.0 * static_cast<double>(whole.box.extent(0) * tiles_.block);
        const std::int64_t width = whole.box.extent(1), step = std::max(least_side, units_of_task(flops)),
                           count = (width + step - 1) / step;
        for (std::int64_t i = 0; i < count; ++i) {
            Region part = whole;
            part.box.lo[1] = whole.box.lo[1] + width * i / count;
            part.box.hi[1] = whole.box.lo[1] + width * (i + 1) / count;
            list_.task(lane, number(k, updates_ + j * tiles_.block + i), qr_reflect_adjoint,
                       {of_panel(k, k, n_ + 1), part}, {part}, flops * static_cast<double>(part.box.extent(1)),
                       {k, j, i});
            if (looks) hand_on(k);
        }
    }

    void subtract(int lane, std::int64_t k, std::int64_t j, bool looks) {
        for_tile_groups(j, k, n_, [&](std::int64_t t, std::int64_t end) {
            const Region part = of_matrix(j, t, end);
            list_.task(lane, number(k, updates_ + j * n_ + t), qr_subtract,
                       {of_panel(k, t, end), of_across(k, j), part}, {part},
                       2.0 * static_cast<double>(part.box.points() * tiles_.block), {k, j, t});
            if (looks) hand_on(k);
        });
    }

    std::int32_t triangles_;
    std::int64_t updates_ = panel_numbers() + passing_numbers();  // the first number of a step
};

}  // namespace

Schedule qr(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks) {
    require_blocks(layout, ranks, false);
    return Qr(layout, item_bytes, choices, rank, ranks).run();
}

}  // namespace tilewave
