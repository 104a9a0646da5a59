// What products and factors have in common: agreeing in the middle of a call, and plans that ranks choose together.
#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "context/agreement.hpp"
#include "core/recent.hpp"
#include "tilewave/linalg.hpp"
#include "transport/collectives.hpp"

namespace tilewave {

/// The beginning of a call of a C++ program: local() makes what the rest of it needs, and gives the text that must be
/// equal on all ranks.
template <class Local>
void begin_call(Context& context, const char* name, Local local) {
    RankStatus status;
    status.caller = {name, ""};
    agree_after(context, status, [&] { status.description = local(); });
}

/// @throws ConfigError
inline void require(bool good, const std::string& text) {
    if (!good) throw ConfigError(text);
}

/// @pre given has the type and context of another matrix (ConfigError)
inline void require_alike(const std::string& call, const std::string& name, const MatrixStorage& given,
                          const MatrixStorage& of) {
    require(&given.context() == &of.context(),
            call + ": " + name + " lives on another context; allowed: matrices of one context");
    require(given.type() == of.type(), call + ": " + name + " has dtype " + to_string(given.type()) + ", a has " +
                                           to_string(of.type()) + "; allowed: one dtype");
}

/// All plans that a call could have, the fastest first.
template <class Plan>
struct RankedPlans {
    std::vector<Plan> plans;
    Weights weights;              ///< of plans in proportion
    std::shared_ptr<void> shown;  ///< what a front end has made of them
};

/// Plans that a context has chosen, by what they are of.
template <class Plan>
using ChosenPlans = Recent<std::string, std::shared_ptr<RankedPlans<Plan>>, 64>;

/// Some plans, ranked and the same on every rank: all measure what they need, and rank 0 simulates them. `of`: all that
/// they depend on but for the machine. Collective, after an agreement.
template <class Plan>
std::shared_ptr<RankedPlans<Plan>> ranked_plans(
    Context& context, const std::string& of, std::vector<Plan> plans, const Weights& weights,
    const std::function<void(const std::vector<Plan>&)>& measure,
    const std::function<std::vector<Plan>(std::vector<Plan>, const Machine&)>& simulate) {
    static_assert(std::is_trivially_copyable_v<Plan>);
    auto& chosen = context.component<ChosenPlans<Plan>>();
    const std::string key = of + ", machine " + std::to_string(context.machine_number());
    if (const auto* known = chosen.find(key)) return *known;
    if (plans.size() > 1) {
        std::string bytes;
        agree_after(context, "planned", [&] {
            measure(plans);
            if (context.rank() > 0) return;
            plans = simulate(std::move(plans), context.machine());
            bytes.assign(reinterpret_cast<const char*>(plans.data()), plans.size() * sizeof(Plan));
        });
        broadcast(context.transport(), bytes, 0);
        plans.resize(bytes.size() / sizeof(Plan));
        std::memcpy(static_cast<void*>(plans.data()), bytes.data(), bytes.size());
    }
    auto made = std::make_shared<RankedPlans<Plan>>();
    made->plans = std::move(plans);
    made->weights = weights;
    return chosen.store(key, std::move(made));
}

}  // namespace tilewave
