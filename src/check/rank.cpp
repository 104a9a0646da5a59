// What one rank's schedule shows by itself, at a cost that a run can pay each time.
#include "check/repeated.hpp"
#include "check/shapes.hpp"
#include "core/concat.hpp"

namespace tilewave {
namespace {

using Why = std::optional<std::string>;

// Of the message that a step is of.
struct MessageSteps {
    bool posted = false, waited = false;
};

Why step_stays(const Schedule& s, const Step& step, std::vector<MessageSteps>& seen) {
    if (step.op == Op::compute || step.op == Op::signal || step.op == Op::await) return std::nullopt;
    const std::string name = concat("message ", step.item);
    const Message& m = s.messages[step.item];
    MessageSteps& of = seen[step.item];
    if (step.op == Op::post_send || step.op == Op::post_recv) {
        if (of.posted) return name + " is posted twice";
        of.posted = true;
        if (m.peer == s.rank) return concat(name, " has this rank, ", m.peer, ", as its peer");
    }
    if (step.op == Op::wait) {
        if (of.waited) return name + " is waited for twice";
        of.waited = true;
    }
    return std::nullopt;
}

}  // namespace

std::optional<Violation> check_rank(const Schedule& s) {
    if (auto wrong = check_rank_shapes(s)) return wrong;
    if (auto wrong = check_repeated_rank(s)) return wrong;
    std::vector<MessageSteps> seen(s.messages.size());
    for (std::size_t l = 0; l < s.lanes.size(); ++l)
        for (std::size_t i = 0; i < s.lanes[l].size(); ++i)
            if (auto why = step_stays(s, s.lanes[l][i], seen)) return Violation{s.rank, static_cast<int>(l), i, *why};
    for (std::size_t l = 0; l < s.lanes.size(); ++l)
        for (std::size_t i = 0; i < s.lanes[l].size(); ++i) {
            const Step& step = s.lanes[l][i];
            const bool posts = step.op == Op::post_send || step.op == Op::post_recv;
            if (!posts && step.op != Op::wait) continue;
            const MessageSteps& of = seen[step.item];
            if (!of.waited || !of.posted)
                return Violation{
                    s.rank, static_cast<int>(l), i,
                    concat("message ", step.item,
                           (of.posted ? " is posted and never waited for" : " is waited for and never posted"))};
        }
    return std::nullopt;
}

}  // namespace tilewave
