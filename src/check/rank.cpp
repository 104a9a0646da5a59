// What one rank's schedule shows by itself, at a cost that a run can pay each time.
#include "check/repeated.hpp"
#include "check/shapes.hpp"
#include "check/wrong.hpp"
#include "core/concat.hpp"

namespace tilewave {
namespace {

// Of the message that a step is of.
struct MessageSteps {
    bool posted = false, waited = false;
};

void step_stays(const Schedule& s, const Step& step, std::vector<MessageSteps>& seen) {
    if (step.op == Op::compute || step.op == Op::signal || step.op == Op::await) return;
    const std::string name = concat("message ", step.item);
    const Message& m = s.messages[step.item];
    MessageSteps& of = seen[step.item];
    if (step.op == Op::post_send || step.op == Op::post_recv) {
        if (of.posted) wrong(name, " is posted twice");
        of.posted = true;
        if (m.peer == s.rank) wrong(name, " has this rank, ", m.peer, ", as its peer");
    }
    if (step.op == Op::wait) {
        if (of.waited) wrong(name, " is waited for twice");
        of.waited = true;
    }
}

}  // namespace

std::optional<Violation> check_rank(const Schedule& s) {
    if (auto found = check_rank_shapes(s)) return found;
    if (auto found = check_repeated_rank(s)) return found;
    std::vector<MessageSteps> seen(s.messages.size());
    if (auto found =
            first_wrong_step(s, [&](std::size_t lane, std::size_t i) { step_stays(s, s.lanes[lane][i], seen); }))
        return found;
    return first_wrong_step(s, [&](std::size_t lane, std::size_t i) {
        const Step& step = s.lanes[lane][i];
        if (step.op != Op::post_send && step.op != Op::post_recv && step.op != Op::wait) return;
        const MessageSteps& of = seen[step.item];
        if (!of.waited || !of.posted)
            wrong("message ", step.item,
                  (of.posted ? " is posted and never waited for" : " is waited for and never posted"));
    });
}

}  // namespace tilewave
