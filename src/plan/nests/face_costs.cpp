#include "plan/nests/face_costs.hpp"

#include <algorithm>
#include <map>

#include "generate/nest/nest.hpp"
#include "predict/copy_cost.hpp"

namespace tilewave {

namespace {

// From one place of the process grid to another, the shorter direction where the loop is periodic.
Index shortest(const SweepProblem& problem, const Plan& plan, const Index& from, const Index& to) {
    Index by = to - from;
    for (int k = 0; k < by.n; ++k) {
        if (problem.period(k) == 0 || 2 * std::abs(by[k]) <= plan.grid[k]) continue;
        by[k] += by[k] > 0 ? -plan.grid[k] : plan.grid[k];
    }
    return by;
}

}  // namespace

std::vector<FaceCost> face_costs(const SweepProblem& problem, const Plan& plan, const Machine& machine) {
    if (plan.ranks() == 1) return {};
    const Layout layout(problem.shape, plan.grid);
    Index middle = plan.grid;
    for (int k = 0; k < middle.n; ++k) middle[k] = (middle[k] - 1) / 2;
    const int rank = layout.ranks_at({middle, middle + Index::filled(middle.n, 1)}).front();
    const Schedule schedule = nest_schedule(problem, plan, rank);
    std::map<std::vector<std::int64_t>, FaceCost> faces;
    for (const Message& m : schedule.messages) {
        if (!m.send) continue;
        const Index direction = shortest(problem, plan, middle, layout.coords(m.peer));
        FaceCost& face = faces[{direction.begin(), direction.end()}];
        face.direction = direction;
        if (m.aggregate < 0) {
            const Link& link = machine.link(rank, m.peer);
            ++face.messages;
            face.bytes += m.bytes;
            face.transfer_s += link.send_s + link.receive_s + link.message_s(static_cast<double>(m.bytes));
        }
        if (m.pieces > 0) continue;  // its pieces say how they lie
        const Array& array = schedule.arrays[m.array];
        face.run_bytes = std::max(face.run_bytes, contiguous_bytes(array, m.region));
        if (m.buffer < 0 && m.aggregate < 0) continue;
        face.packed = true;
        face.copy_s += 2 * copy_s(array, m, machine);
    }
    std::vector<FaceCost> found;
    for (auto& [direction, face] : faces) found.push_back(face);
    return found;
}

}  // namespace tilewave
