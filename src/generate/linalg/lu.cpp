#include "generate/linalg/factor_column.hpp"
#include "generate/linalg/factors.hpp"

namespace tilewave {

namespace {

class Lu : public FactorOnColumns {
public:
    // Of each column of a panel ranks tell a row behind its number, and the row on the diagonal.
    Lu(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks)
        : FactorOnColumns(layout, item_bytes, choices, rank, ranks, 1, 1) {}

private:
    // Of a step: the panel, then interchanges by block column, then updates by block column and tile.
    std::int64_t number(std::int64_t k, std::int64_t within) const { return k * (updates_ + n_ * n_) + within; }
    // The last panel has only interchanges for others.
    std::pair<std::int64_t, std::int64_t> travels(std::int64_t k) const override { return {k, k + 1 < n_ ? n_ : k}; }
    // The pivots, in the first column of the last tile.
    Box ahead(std::int64_t k) const override {
        const std::int64_t at = tiles_.place(row_, n_);
        return {{k, at, 0, 0}, {k + 1, at + 1, 1, tiles_.block}};
    }

    void factor(std::int64_t k) override {
        if (several_rows()) return pick(k);
        const Region column = of_matrix(k, k, n_);
        const double width = static_cast<double>(column.box.extent(1)),
                     high = static_cast<double>(column.box.extent(0));
        list_.task(0, number(k, 0), lu_panel, {column}, {column, of_panel(k, k, n_), {factor_panels, ahead(k)}},
                   width * width * (high - width / 3), {k, k});
    }

    // A panel on a column of ranks. Each of them picks the largest element of a column that it has, and sends its row
    // to the others. So all know the pivot and its row, interchange, and subtract the row from what they have.
    void pick(std::int64_t k) {
        const std::int64_t width = tiles_.width(k), first = tiles_.lo(k);
        const int last = rounds_->rounds() - 1;
        const Region pivots{factor_panels, ahead(k)};
        const bool has = has_rows(k, n_);
        const Region rows = of_matrix(k, k, n_);
        for (std::int64_t c = 0, next; c <= width; c = next) {
            std::vector<Region> reads, writes{pivots};
            if (c > 0) {
                reads = rounds_->values(first + c - 1, last);
                reads.insert(reads.begin(), pivots);
            }
            if (has) reads.push_back(rows);
            if (c < width) writes.push_back(rounds_->value(first + c, 0));
            if (c == width && has) writes.push_back(of_panel(k, k, n_));
            if (c > 0 && has) writes.push_back(rows);
            list_.task(0, number(k, c * rounds_->works() + rounds_->work(0)),
                       c == 0      ? lu_first
                       : c < width ? lu_pick
                                   : lu_last,
                       std::move(reads), std::move(writes),
                       2.0 * static_cast<double>(has ? rows.box.extent(0) * (width - c + 1) : 1), {k, k, c});
            for (int round = 0; c < width && round <= last; ++round) {
                if (round > 0)
                    list_.task(0, number(k, c * rounds_->works() + rounds_->work(round)), lu_best,
                               rounds_->values(first + c, round - 1), {rounds_->value(first + c, round)},
                               static_cast<double>(2 * width), {k, k, c});
                rounds_->exchange(first + c, round);
            }
            next = c < width ? after_column(c, width, number(k, (c + 1) * rounds_->works())) : c + 1;
        }
    }

    void left(int lane, std::int64_t k, std::int64_t j) override {
        if (!several_rows()) swap(lane, k, j, lu_swap);
    }

    void swap(int lane, std::int64_t k, std::int64_t j, FactorTask operation) {
        const Region column = of_matrix(j, k, n_);
        const double width = static_cast<double>(column.box.extent(1) * tiles_.block * tiles_.block);
        std::vector<Region> reads{{factor_panels, ahead(k)}, column};
        if (operation == lu_row) reads.push_back(of_panel(k, k, k + 1));
        list_.task(lane, number(k, panel_numbers() + j), operation, std::move(reads), {column},
                   operation == lu_row ? width : width / static_cast<double>(tiles_.block), {k, j, k});
    }

    // Rows interchanged over a column of ranks: the rows of the tile on the diagonal go from rank to rank, once around
    // the column. Each takes the rows that have pivots there, and gives those rows in their places. Back where they
    // began they are the rows of the panel, in another order.
    void bring(std::int64_t k, Part part) override {
        if (part == of_the_others)
            pass(k, part, {{0, k}, columns_of(k, part)});
        else
            pass(k, part, {columns_of(k, part)});
    }

    void hop(std::int64_t k, Hop what, std::int64_t within, const Box& chunk, std::int64_t j) override {
        const Region rows{array_passing_, chunk}, pivots{factor_panels, ahead(k)},
            columns = under(chunk, j, k, what == meets ? n_ : k + 1);
        const auto items = static_cast<double>(chunk.points());
        const double bytes = items * static_cast<double>(list_.schedule().arrays[factor_matrix].item_bytes);
        const auto add = [&](FactorTask operation, std::vector<Region> reads, std::vector<Region> writes,
                             double amount) {
            list_.task(0, number(k, within), operation, std::move(reads), std::move(writes), amount, {k, j, within});
        };
        if (what == begins)
            add(lu_lift, {columns}, {rows}, bytes);
        else if (what == meets)
            add(lu_trade, {pivots, rows, columns}, {rows, columns}, bytes);
        else if (j < k)
            add(lu_drop, {pivots, rows}, {columns}, bytes);
        else
            add(lu_drop_solve, {pivots, rows, of_panel(k, k, k + 1)}, {columns, {array_across_, chunk}},
                items * static_cast<double>(tiles_.block));
    }

    // Block column j on the right of panel k: interchanged, its row of U, and the rest updated.
    void update(int lane, std::int64_t k, std::int64_t j, std::int64_t t0, std::int64_t t1, bool looks) override {
        const bool alone = !several_rows();
        if (alone && t0 <= k && k < t1) swap(lane, k, j, lu_row);
        const Region row = alone ? of_matrix(j, k, k + 1) : of_across(k, j);
        for_tile_groups(j, std::max(k + 1, t0), std::min(n_, t1), [&](std::int64_t t, std::int64_t end) {
            const Region part = of_matrix(j, t, end);
            list_.task(lane, number(k, updates_ + j * n_ + t), lu_update, {of_panel(k, t, end), row, part}, {part},
                       2.0 * static_cast<double>(part.box.points() * tiles_.block), {k, j, t});
            if (looks) hand_on(k);
        });
    }

    std::int64_t updates_ = panel_numbers() + passing_numbers();  // the first number of a step
};

}  // namespace

Schedule lu(const BlockCyclic& layout, std::int64_t item_bytes, const FactorChoices& choices, int rank, int ranks) {
    require_blocks(layout, ranks, true);
    return Lu(layout, item_bytes, choices, rank, ranks).run();
}

}  // namespace tilewave
