// Sources and receivers between the points of the grid.
#pragma once
#include <complex>
#include <utility>
#include <vector>

#include "tilewave/dtype.hpp"
#include "tilewave/index.hpp"

namespace tilewave {

/// The elements of an array that one rank has, in a box of the memory that it has.
struct LocalPart {
    std::byte* data = nullptr;  ///< of element `from`
    Index stride_bytes, from;
    Box owned;

    std::byte* at(const Index& x) const {
        std::int64_t offset = 0;
        for (int d = 0; d < x.n; ++d) offset += (x[d] - from[d]) * stride_bytes[d];
        return data + offset;
    }
};

/// A product of a sum that has products of several ranks.
struct ProductOfSum {
    std::int64_t sum, neighbour;  ///< step * points + point; in row-major order
    std::complex<double> product;
};

/// Points between those of the grid: `width` neighbours along each axis, each with the product of its axes' weights.
/// Everything is computed as double (complex: by parts), neighbours in row-major order, and rounded where it is stored.
class OffGrid {
public:
    struct Given {
        Dtype type;
        int dims, width;
        std::int64_t points;
        const std::int64_t* first;  ///< subscripts of the first neighbours: (points, dims), if they move a step each
        const double* weights;      ///< (points, dims, width), as `first`; a neighbour with a weight of 0 is left out
        bool moves;
        /// A row a time step, an item a point: of `type` if recorded, of double or complex double if added.
        std::byte* values;
        bool adds;  ///< else values are recorded
    };

    /// @pre float or complex; what is pointed to lives as long
    explicit OffGrid(const Given& given) : given_(given) {}

    /// Adds or records after a time step what this rank can. `changed` gets where elements of `part` changed, in bytes.
    void visit(std::int64_t step, const LocalPart& part, std::vector<std::int64_t>& changed);

    /// What it was made of.
    const Given& given() const { return given_; }
    /// Visits each neighbour that has a weight other than 0, point after point, in row-major order: the number of the
    /// point, the element, the weight.
    /// @pre points do not move
    template <class Visit>
    void each_neighbour(const Visit& visit) const {
        const Box neighbours{Index::filled(given_.dims, 0), Index::filled(given_.dims, given_.width)};
        for (std::int64_t k = 0; k < given_.points; ++k) {
            const std::int64_t row = k * given_.dims;
            const Index first(std::span(given_.first + row, static_cast<std::size_t>(given_.dims)));
            Index at = neighbours.lo;
            do {
                double weight = 1;
                for (int d = 0; d < given_.dims; ++d) weight *= given_.weights[(row + d) * given_.width + at[d]];
                if (weight != 0) visit(k, first + at, weight);
            } while (next_point(at, neighbours));
        }
    }

    /// This rank's products of sums that other ranks have products of, in order; they are handed over.
    std::vector<ProductOfSum> products() { return std::exchange(products_, {}); }

private:
    template <class T>
    void visit_as(std::int64_t step, const LocalPart& part, std::vector<std::int64_t>& changed);

    Given given_;
    std::vector<ProductOfSum> products_;
};

}  // namespace tilewave
