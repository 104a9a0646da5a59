#include "arrays/halo_update.hpp"

#include <algorithm>
#include <new>

#include "arrays/tuning.hpp"
#include "context/waiting.hpp"
#include "generate/halo/update.hpp"

namespace tilewave {

namespace {

// Updates that calls with the same fields use again, the last used last. The same on every rank, as only calls on which
// all have agreed come in.
struct CachedUpdates {
    std::vector<std::shared_ptr<HaloUpdate>> all;

    std::shared_ptr<HaloUpdate> find(const HaloCall& call) {
        const auto at = std::ranges::find_if(all, [&](const auto& u) { return u->serves(call); });
        if (at == all.end()) return nullptr;
        std::rotate(at, at + 1, all.end());
        return all.back();
    }
    void add(std::shared_ptr<HaloUpdate> update) {
        if (all.size() == tuning::most_cached_updates) all.erase(all.begin());
        all.push_back(std::move(update));
    }
};

Schedule schedule_of(const Context& context, const HaloCall& call) {
    std::vector<HaloArray> arrays;
    for (const FieldStorage* f : call.fields) arrays.push_back({f->home(), f->item_bytes()});
    return halo_update(arrays, context.rank(), context.size(), call.axes, 0);
}

// What is wrong with a call that this rank alone can see; empty: nothing.
std::string wrong_with(const Context& context, const HaloCall& call) {
    if (!call.error.empty()) return call.error;
    if (call.fields.empty())
        return "exchange: no field was given; allowed: one or more fields that were made with halo=";
    if (call.axes < 1) return "exchange: " + std::to_string(call.axes) + " axes were given; allowed: 1 and more";
    for (std::size_t i = 0; i < call.fields.size(); ++i) {
        FieldStorage& field = *call.fields[i];
        const std::string name = "exchange: field " + std::to_string(i) + " of shape " + to_string(field.home().shape);
        if (&field.context() != &context)
            return name + " lies on another context than the call; allowed: fields of one context in a call";
        if (!field.has_halo()) return name + " has no halo; allowed: fields that were made with halo=";
        if (!(field.home().grid == call.fields[0]->home().grid))
            return name + " lies on a process grid " + to_string(field.home().grid) + ", field 0 on " +
                   to_string(call.fields[0]->home().grid) +
                   "; allowed: fields on one grid in a call, which grid= fixes when a field is made";
        if (std::ranges::count(call.fields, &field) > 1) return name + " was given twice; allowed: each field once";
    }
    return "";
}

std::string description_of(const HaloCall& call) {
    std::string text;
    for (const FieldStorage* f : call.fields)
        text += f->name + " of shape " + to_string(f->home().shape) + " of " + std::to_string(f->item_bytes()) +
                " bytes, halo " + to_string(f->home().halo_lo) + " " + to_string(f->home().halo_hi) + ", grid " +
                to_string(f->home().grid) + ", periodic " + to_string(f->home().wraps) + "; ";
    return text + "axes " + std::to_string(call.axes);
}

std::shared_ptr<const HashedStatus> status_of(const Context& context, const HaloCall& call, bool keeps) {
    RankStatus status;
    status.error = wrong_with(context, call);
    if (!status.error.empty()) status.kind = RankStatus::Kind::config;
    status.description = description_of(call) + (keeps ? ", start=False" : "");
    status.caller = call.caller;
    if (status.caller.call.empty()) status.caller.call = "exchange";
    return std::make_shared<const HashedStatus>(std::move(status));
}

bool all_at_home(const HaloCall& call) {
    return std::ranges::all_of(call.fields, [](const FieldStorage* f) { return f->at_home(); });
}

// All that a first call needs; the ranks agree on the call, and that all have the memory for it.
std::shared_ptr<HaloUpdate> prepare(Context& context, const HaloCall& call, bool keeps,
                                    std::shared_ptr<HaloUpdate> made) {
    const auto status = status_of(context, call, keeps);
    agree(context, status);
    for (FieldStorage* field : call.fields) field->return_home();
    if (made) return made;
    PersistentTag tag = keeps ? take_persistent_tag(context) : PersistentTag();
    RankStatus ready;
    ready.caller = status->caller;
    agree_after(context, ready, [&] { made = std::make_shared<HaloUpdate>(context, call, status, std::move(tag)); });
    return made;
}

// The update of a call, begun, but in no list of what is in flight.
std::shared_ptr<HaloUpdate> begun(Context& context, const HaloCall& call) {
    auto& cached = context.component<CachedUpdates>();
    auto update = call.error.empty() ? cached.find(call) : nullptr;
    if (update && !update->over()) wait_until(context, [&] { return update->over(); }, [&] { return update->waits(); });
    if (update && all_at_home(call)) {
        std::unique_ptr<Comparison> comparison;
        try {
            comparison = context.engine()->take_comparison(update->status(), {});
        } catch (const std::bad_alloc&) {
            update->end_by(tell_of_lack(context, call.caller, std::current_exception()));
            return update;
        }
        update->begin(take_number(context, [&] { return call.caller; }), std::move(comparison));
        return update;
    }
    const bool fresh = !update;
    update = prepare(context, call, false, std::move(update));
    if (fresh) cached.add(update);
    update->begin(take_number(context, [&] { return call.caller; }), nullptr);
    return update;
}

}  // namespace

HaloUpdate::HaloUpdate(Context& context, const HaloCall& call, std::shared_ptr<const HashedStatus> status,
                       PersistentTag tag)
    : InFlight(context, "exchange", true),
      storages_(call.fields),
      axes_(call.axes),
      persistent_tag_(std::move(tag)),
      status_(std::move(status)),
      schedule_(schedule_of(context, call)),
      bindings_(schedule_.arrays.size()),
      holds_(call.fields.size()),
      options_(context.options()),
      port_(engine_->borrowed_port()) {
    for (const FieldStorage* f : call.fields) fields_.push_back(f->number());
    options_.record = false;
    options_.heartbeat = nullptr;
    options_.in_transport = !without(options_.paths_off, FastPath::in_transport);
    execution_ = std::make_unique<Execution>(schedule_, bindings_, Computers{}, nothing_, *port_, options_);
    if (repeats()) place_repeated();  // a field that is closed before the first start leaves its memory here
}

bool HaloUpdate::serves(const HaloCall& call) const {
    return call.axes == axes_ && call.fields.size() == fields_.size() &&
           std::equal(fields_.begin(), fields_.end(), call.fields.begin(),
                      [](std::uint64_t number, const FieldStorage* f) { return number == f->number(); });
}

// Messages bear this tag, and arrays are where the fields are now.
void HaloUpdate::place(int tag) {
    for (Message& m : schedule_.messages) m.tag = engine_->tag(tag);
    for (std::size_t f = 0; f < storages_.size(); ++f)
        if (auto memory = storages_[f]->share()) holds_[f] = std::move(memory);  // of a closed field the last one stays
    for (std::size_t a = 0; a < bindings_.size(); ++a) {
        const auto f = static_cast<std::size_t>(schedule_.arrays[a].view.memory);
        if (storages_[f]->data()) bindings_[a] = storages_[f]->binding();
    }
    execution_->restart();
}

void HaloUpdate::begin(std::int64_t its_number, std::unique_ptr<Comparison> comparison) {
    number = its_number;
    place(data_tag());
    comparison_ = std::move(comparison);
    InFlight::begin();
    if (!comparison_) return;
    engine_->caller = status_->caller;
    comparison_->agreement.start(agreement_tag(), {}, status_->caller.where, &engine_->where);
}

void HaloUpdate::restart() {
    for (FieldStorage* field : storages_)
        if (field->data()) field->return_home();
    place_repeated();
}

bool HaloUpdate::step() {
    if (comparison_) {
        if (!agreed(comparison_->agreement)) return false;
        engine_->give_back(std::move(comparison_));
    }
    return execution_->advance();
}

void HaloUpdate::finish() {
    if (!repeats() && !error_) std::ranges::fill(holds_, nullptr);
}

std::string HaloUpdate::waits() {
    return comparison_ ? comparison_->agreement.waits() : waits_for(status_->caller, "the halos of its neighbours");
}

HaloHandle start_exchange(Context& context, HaloCall call) {
    auto update = begun(context, call);
    if (!update->over()) context.engine()->add(update);
    return HaloHandle(std::move(update));
}

void run_exchange(Context& context, HaloCall call) {
    run_to_the_end(begun(context, call));
}

HaloHandle bind_exchange(Context& context, HaloCall call) {
    return HaloHandle(prepare(context, call, true, nullptr));
}

}  // namespace tilewave
