// What the checker takes a set of schedules to mean: a sequential list of works, and which value each element of memory
// holds between any two of them.
//
//   number 0      nest        every rank's tiles of it are parts of one entry
//   number 1      task        of one rank, or of several that each keep the result
//   ...
//   results       "region of array a becomes the values of array b": stand between works, too
//
// Elements are counted through over all ranks. Arrays in one memory count the same elements, whatever coordinates
// each has.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "check/memory.hpp"
#include "check/versions.hpp"
#include "tilewave/engine/schedule.hpp"

namespace tilewave {

/// The compressed coordinates of all boxes with so many dimensions. Where arrays see one memory in different
/// coordinates, or several works share memory that wraps around, every point is a cell.
class CellSpaces {
public:
    explicit CellSpaces(std::span<const Schedule> schedules);
    const Cells& of(int dims) const { return cells_[dims]; }
    const Cells& of(const Box& box) const { return of(box.dims()); }
    bool points() const { return points_; }

private:
    void add(const Box& box) { cells_[box.dims()].add(box); }
    void add_times(const Array& array);
    void add_tile(const Schedule& s, const Tile& tile);
    Cells cells_[max_dims + 1];
    bool points_ = false;
};

/// The memory of the arrays: which element of which memory a cell of an array is.
class Elements {
public:
    Elements(std::span<const Schedule> schedules, const CellSpaces& spaces);
    int memories() const { return static_cast<int>(counts_.size()); }
    int memory_of(int array) const { return memory_of_[array]; }
    /// Elements of a memory over all ranks; those of padding count too.
    std::size_t count(int memory) const { return counts_[memory]; }
    /// Number of the place where `cell` of `array` lies, among those of its memory.
    std::size_t number(int array, const Index& cell) const;
    /// The same of the element that lies there: places at a distance of a period have one, at the first of them.
    std::size_t element(int array, const Index& cell) const;

private:
    Index coordinates(int array, const Index& point) const;
    std::size_t linear(int memory, const Index& at) const;
    const CellSpaces& spaces_;
    std::vector<Array> arrays_;
    std::vector<int> memory_of_;
    std::vector<Box> boxes_;      // by memory, where cells are points: all its places
    std::vector<Index> periods_;  // by memory, along its dimensions; 0, or empty: none
    std::vector<std::size_t> counts_;
};

/// One entry of the list, as all ranks see it.
struct Entry {
    std::int64_t number = 0;
    const Work* work = nullptr;  // on the first rank that takes part
    // Values of it: one for each time and written array of a nest, for each written array of a task; of a separate
    // array for each rank.
    std::int64_t first_value = 0, values = 1;
    // Of a nest. Each element once, where the point is; or elements several times or elsewhere.
    enum class Written { never, once, often };
    std::vector<Written> written = {};  // by array
    std::vector<char> planned = {};     // by cell: some tile will, and holds points within the bounds at some time; 2:
                                        // there
    std::vector<char> computed = {};    // by cell: a tile has computed it
    std::vector<char> reduced = {};     // by cell: the rank whose own it is has
};

/// What an element must hold: a version, or versions combined from left to right (a list of the program).
struct Expected {
    Version version = missing;
    int list = -1;
};

class Program {
public:
    /// @pre check_shapes() has passed
    Program(std::span<const Schedule> schedules, VersionTable& table);

    const CellSpaces& spaces() const { return spaces_; }
    const Cells& cells(const Box& box) const { return spaces_.of(box); }
    const Elements& elements() const { return elements_; }
    std::vector<Entry>& entries() { return entries_; }
    const std::vector<Entry>& entries() const { return entries_; }
    /// The entry of work `w` of a rank.
    Entry& entry(int rank, int w) { return entries_[entry_of_[rank][w]]; }
    const Entry& entry(int rank, int w) const { return entries_[entry_of_[rank][w]]; }

    /// What the cell holds before the entry, on `rank`.
    Expected before(const Entry& entry, int rank, int array, const Index& cell) const;
    /// What it holds after all entries.
    Expected at_the_end(int rank, int array, const Index& cell) const;
    bool right(Version found, const Expected& expected) const;
    std::string text(const Expected& expected) const;
    /// Whose values a version has combined.
    std::string combined_text(Version found) const;
    /// The value that the entry gives a cell of `array`.
    Version value(const Entry& entry, int rank, int array, const Index& cell) const;
    /// Before the run.
    Version start(int rank, int array) const;
    /// Whether a tile of the nest gives the cell its value. A time of an array with time buffers is copied where no
    /// point computes it, but some at another time.
    bool planned(const Entry& entry, const Array& array, const Index& cell) const;
    /// The cell of the space for a cell that may be whole periods outside it, where loops of the nest are periodic.
    Index in_the_space(const NestWork& nest, Index cell) const;
    const Array& array(int a) const { return schedules_[0].arrays[a]; }

private:
    std::string combined_text(const Versions& leaves, std::int64_t count) const;
    void list_entries();
    void plan_nest(Entry& entry);
    void leave_out_corners(Entry& entry, const Cells& cells);
    void write_history();
    void write_nest(const Entry& entry, int position);
    void write_task(const Entry& entry, int position);
    void write_results(std::int64_t before_number, int position, std::map<std::int64_t, bool>& done);
    struct Event {
        int position;  // of the entry after which it holds
        Expected expected;
    };
    // The history of a memory: of all ranks, or, where arrays are separate, of each rank.
    std::vector<Event>& history(int rank, int array, std::size_t element);
    const std::vector<Event>* find(int rank, int array, std::size_t element) const;
    Expected held(int rank, int array, const Index& cell, int position) const;
    int writes_index(const Entry& entry, int array) const;

    std::span<const Schedule> schedules_;
    VersionTable& table_;
    CellSpaces spaces_;
    Elements elements_;
    std::vector<Entry> entries_;  // in order
    std::vector<std::vector<int>> entry_of_;
    bool several_ = false;  // more than one entry, or results between them: elements have histories
    std::vector<std::map<std::int64_t, std::vector<Event>>> history_;  // by memory: by rank * count + element
    std::vector<Versions> lists_;
};

}  // namespace tilewave
