// One update of halos on one rank: what it needs is made once, and used again by every call with the same fields.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "context/agreement.hpp"
#include "context/in_flight.hpp"
#include "execute/execution.hpp"
#include "tilewave/halo.hpp"

namespace tilewave {

class HaloUpdate final : public InFlight {
public:
    /// Schedule, staging buffers and messages. Local. `tag`, where there is one: of an update that is made once
    /// and started by its handle, whose fields live on.
    /// @throws std::bad_alloc
    HaloUpdate(Context& context, const HaloCall& call, std::shared_ptr<const HashedStatus> status, PersistentTag tag);

    bool serves(const HaloCall& call) const;
    /// What the ranks compare a repeated call by.
    const std::shared_ptr<const HashedStatus>& status() const { return status_; }
    /// Ready to go with the fields where they are now. `number` is the call's; `comparison`: the ranks compare their
    /// calls first; null: they have. @pre over(), and all fields are at home (not checked)
    void begin(std::int64_t number, std::unique_ptr<Comparison> comparison);
    std::string waits() override;
    std::int64_t buffer_bytes() const override { return schedule_.buffer_bytes(); }

private:
    bool step() override;
    void finish() override;
    void restart() override;
    bool repeats() const override { return bool(persistent_tag_); }
    void place(int tag);
    void place_repeated() { place(ProgressEngine::first_persistent + persistent_tag_.number()); }

    std::vector<std::uint64_t> fields_;    // by their numbers
    std::vector<FieldStorage*> storages_;  // valid while a call has given them, or where the update is repeated
    int axes_;
    PersistentTag persistent_tag_;
    std::shared_ptr<const HashedStatus> status_;
    Schedule schedule_;
    std::vector<Binding> bindings_;
    std::vector<std::shared_ptr<std::byte[]>> holds_;  // the fields' memory, by field
    Combine nothing_;
    ExecuteOptions options_;
    std::unique_ptr<Transport> port_;
    std::unique_ptr<Comparison> comparison_;  // while the ranks agree
    std::unique_ptr<Execution> execution_;    // the last: it refers to the others
};

}  // namespace tilewave
