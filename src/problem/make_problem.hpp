// A loop nest as programs of either language state it, and the problem that it is.
#pragma once
#include <vector>

#include "tilewave/engine/problem.hpp"

namespace tilewave {

/// A loop nest with the arrays of one run.
struct LoopNest {
    struct Array {
        std::int64_t item_bytes = 4;
        Index shape = {};      ///< along `axes`
        Index axes = {};       ///< the loop index of each dimension
        bool whole = false;    ///< read only, and stored whole on every rank
        bool in_time = false;  ///< loop index 0 is time, and no dimension of it
        bool joined = false;   ///< what it holds is the time step that is computed, in part
        int history = 0;       ///< earlier time steps that it keeps
        bool window = false;   ///< it keeps a rolling window only
        /// Of a part, as NestArray's; without a field's shape it is one of plain memory.
        Index scale = {}, residue = {}, field_shape = {};
        int field = -1;              ///< the first array that is part of the same memory
        std::vector<Cut> cuts = {};  ///< of a field with given blocks
    };
    /// What points access; with time steps an offset of 1 in time is the step that is computed, 0 the one before it.
    struct Place {
        int array = 0;
        Index offset = {};  ///< by loop index
        bool written = false;
        bool read = false;           ///< of what is written: whether a point may leave the value that was there
        bool along = false;          ///< loops inside the body read all elements along the last loop
        bool never_written = false;  ///< no point writes the element
    };
    std::vector<Array> arrays = {};
    std::vector<Place> places = {};  ///< those that are written come first
    Box box = {};                    ///< of loop indices; holds all points
    std::vector<Bound> bounds = {};  ///< which points of it to compute
    std::vector<bool> downwards = {};
    Index periodic = {};  ///< 1 for loops that wrap, 0 for others; empty: none wraps
    bool sequential = false;
    std::vector<PivotRead> pivots = {};  ///< by place, where loop 0 is a pivot
    bool may_gather = true;              ///< every array that is written is among `arrays`
    PathsOff paths_off = 0;
};

/// The loop whose steps all ranks may compute and gather: a step reads of what is written nothing but what earlier
/// steps have written, along whole axes, too. -1: the nest has none. Pure.
int steps_to_gather(const LoopNest& nest);

/// The problem of a nest: its time buffers, whose points are whose, and loops that tiles can cut. Pure.
/// @pre what is written in time is written at offset 0 but for time; as SweepProblem::validate() (ConfigError)
SweepProblem make_problem(const LoopNest& nest);

}  // namespace tilewave
