// One update of halos on one rank: what it needs is made once, and used again by every call with the same fields.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "context/agreement.hpp"
#include "context/exchange.hpp"
#include "execute/execution.hpp"
#include "tilewave/halo.hpp"

namespace tilewave {

class HaloUpdate final : public Operation {
public:
    /// Schedule, staging buffers and messages. Local. `kept_tag`, where there is one: of an update that is made once
    /// and started by its handle, whose fields live on.
    /// @throws std::bad_alloc
    HaloUpdate(Context& context, const HaloCall& call, std::shared_ptr<const Said> said, KeptTag kept_tag);

    bool serves(const HaloCall& call) const;
    bool kept() const { return bool(kept_tag_); }
    /// Ready to go with the fields where they are now. `number` is the call's; `agrees`: the ranks compare their calls
    /// first. @pre over(), and all fields are at home (not checked)
    void begin(std::int64_t number, bool agrees);
    /// As begin(), of a kept update; brings its fields back first.
    void begin_kept();
    bool advance() override;

    bool over() const { return stage_.load(std::memory_order_acquire) == Stage::over; }
    void raise() const {
        if (error_) std::rethrow_exception(error_);
    }
    std::string waits();
    Context& context() { return context_; }
    std::int64_t buffer_bytes() const { return schedule_.buffer_bytes(); }

private:
    enum class Stage { agreeing, running, over };
    void go_to(Stage stage) { stage_.store(stage, std::memory_order_release); }
    void aim(int tag);
    void aim_kept() { aim(exchange_->tag(Exchange::first_kept + kept_tag_.number())); }

    Context& context_;
    std::shared_ptr<Exchange> exchange_;
    std::vector<std::uint64_t> fields_;    // by their numbers
    std::vector<FieldStorage*> storages_;  // valid while a call has given them, or kept
    int axes_;
    KeptTag kept_tag_;
    std::shared_ptr<const Said> said_;
    Schedule schedule_;
    std::vector<Binding> bindings_;
    std::vector<std::shared_ptr<std::byte[]>> holds_;  // the fields' memory, by field
    Combine nothing_;
    ExecuteOptions options_;
    std::unique_ptr<Transport> port_;
    Agreement agreement_;
    std::unique_ptr<Execution> execution_;   // the last: it refers to the others
    std::atomic<Stage> stage_{Stage::over};  // the last that the thread that advances it writes
    std::exception_ptr error_;
};

}  // namespace tilewave
