// Where blocks, borders and halos of a stencil lie: pure functions of problem, plan and rank, so that a sender and a
// receiver, each alone, list the same messages in the same order.
#pragma once
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/signs.hpp"
#include "problem/stencil.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// A box that goes from one rank to another, or from one end of a periodic loop to the other on one rank.
struct StencilPiece {
    int array = 0;
    Box region;   ///< as the receiver has it: in its halo
    Index shift;  ///< whole periods from the points that the sender has computed to the region

    Box sent() const { return region.shifted(-shift); }
};

/// Pieces that go as one message: a single one straight from and to the arrays, or several packed ones.
struct HaloMessage {
    std::vector<StencilPiece> pieces;
    bool in_place = false;
};

/// All boxes are of loop indices; those beyond the ends of a periodic loop are its halo.
class StencilGeometry {
public:
    StencilGeometry(const SweepProblem& problem, const Plan& plan);

    const Stencil& stencil() const { return stencil_; }
    const StencilHalo& halo() const { return halo_; }
    const Box& space() const { return problem_.space; }
    Index period() const;
    /// Array `a` as `rank` holds it.
    Array array(int a, int rank) const;
    /// The points that `rank` computes for all; empty beyond the grid.
    Box block(int rank) const;
    /// The points of the step of time `t` that `rank` computes, redundant ones among them: some may be beyond the
    /// ends of a periodic loop. Loop 0 is [t, t + 1) where it is time.
    Box reached(int rank, std::int64_t t) const;
    /// The most of all time steps, along space.
    Box most_reached(int rank) const;
    /// A box as parts that lie within the space, or within the space shifted by whole periods.
    std::vector<Box> computed(const Box& box) const;
    /// Whether ranks exchange halos before the step of time `t`.
    bool exchanges(std::int64_t t) const;
    /// The other ranks that `rank` may exchange messages with, ascending.
    const std::vector<int>& neighbours(int rank) const;
    /// What `target` gets of `source` before the step of time `t`, which may be the same rank.
    const std::vector<HaloMessage>& messages(int source, int target, std::int64_t t) const;
    /// What `target` reads of the elements of array `a` that `source` owns, as they are before the run.
    std::vector<StencilPiece> initial(int a, int source, int target) const;
    /// The points of the block of `rank` that other ranks, or its halo, get after the step of time `t` and that are
    /// computed in it: [0] those, as disjoint boxes, [1] the rest of the block as one box.
    std::pair<std::vector<Box>, Box> border(int rank, std::int64_t t) const;

private:
    struct Image {  // the block of a rank, shifted by whole periods
        int rank;
        Index shift;
    };
    std::vector<Image> images(const Box& region) const;
    std::vector<StencilPiece> pieces(int source, int target, std::int64_t t) const;
    StencilPiece whole_rows(StencilPiece piece, const Array& there) const;
    std::vector<HaloMessage> grouped(int source, int target, std::vector<StencilPiece> pieces) const;
    void add_needed(int a, std::int64_t s, std::int64_t t, int source, int target,
                    std::vector<StencilPiece>& out) const;
    Box widened(Box box, const Index& lo, const Index& hi) const;

    const SweepProblem& problem_;
    const Plan& plan_;
    Stencil stencil_;
    StencilHalo halo_;
    std::vector<Layout> layouts_;
    Layout blocks_;
    mutable std::map<int, std::vector<int>> neighbours_;
    // By source, target, and what differs between exchanges; and the time that they were made for.
    using Key = std::tuple<int, int, std::int64_t, std::int64_t>;
    mutable std::map<Key, std::pair<std::int64_t, std::vector<HaloMessage>>> messages_;
};

}  // namespace tilewave
