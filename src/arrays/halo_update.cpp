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
struct KeptUpdates {
    std::vector<std::shared_ptr<HaloUpdate>> all;

    std::shared_ptr<HaloUpdate> find(const HaloCall& call) {
        const auto at = std::find_if(all.begin(), all.end(), [&](const auto& u) { return u->serves(call); });
        if (at == all.end()) return nullptr;
        std::rotate(at, at + 1, all.end());
        return all.back();
    }
    void add(std::shared_ptr<HaloUpdate> update) {
        if (all.size() == tuning::most_kept_updates) all.erase(all.begin());
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
        if (std::count(call.fields.begin(), call.fields.end(), &field) > 1)
            return name + " was given twice; allowed: each field once";
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

std::shared_ptr<const Said> said_of(const Context& context, const HaloCall& call, bool keeps) {
    Statement mine;
    mine.error = wrong_with(context, call);
    if (!mine.error.empty()) mine.kind = Statement::Kind::config;
    mine.description = description_of(call) + (keeps ? ", start=False" : "");
    mine.caller = call.caller;
    if (mine.caller.call.empty()) mine.caller.call = "exchange";
    return std::make_shared<const Said>(std::move(mine));
}

bool all_at_home(const HaloCall& call) {
    return std::all_of(call.fields.begin(), call.fields.end(), [](const FieldStorage* f) { return f->at_home(); });
}

// All that a first call needs; the ranks agree on the call, and that all have the memory for it.
std::shared_ptr<HaloUpdate> prepare(Context& context, const HaloCall& call, bool keeps,
                                    std::shared_ptr<HaloUpdate> made) {
    const auto said = said_of(context, call, keeps);
    agree(context, said);
    for (FieldStorage* field : call.fields) field->return_home();
    if (made) return made;
    KeptTag kept_tag = keeps ? take_kept_tag(context) : KeptTag();
    Statement mine;
    mine.caller = said->statement.caller;
    try {
        made = std::make_shared<HaloUpdate>(context, call, said, std::move(kept_tag));
    } catch (const std::bad_alloc&) {
        mine.kind = Statement::Kind::resources;
        mine.error =
            "exchange: rank " + std::to_string(context.rank()) + " has not the memory for staging; nothing was moved";
    }
    agree(context, mine);
    return made;
}

// The update of a call, begun, but in no list of what is in flight.
std::shared_ptr<HaloUpdate> begun(Context& context, const HaloCall& call) {
    auto& kept = context.own<KeptUpdates>();
    auto update = call.error.empty() ? kept.find(call) : nullptr;
    if (update && !update->over()) wait_until(context, [&] { return update->over(); }, [&] { return update->waits(); });
    if (update && all_at_home(call)) {
        update->begin(take_number(context, [&] { return call.caller; }), true);
        return update;
    }
    const bool fresh = !update;
    update = prepare(context, call, false, std::move(update));
    if (fresh) kept.add(update);
    update->begin(take_number(context, [&] { return call.caller; }), false);
    return update;
}

}  // namespace

HaloUpdate::HaloUpdate(Context& context, const HaloCall& call, std::shared_ptr<const Said> said, KeptTag kept_tag)
    : InFlight(context, "exchange", true),
      storages_(call.fields),
      axes_(call.axes),
      kept_tag_(std::move(kept_tag)),
      said_(std::move(said)),
      schedule_(schedule_of(context, call)),
      bindings_(schedule_.arrays.size()),
      holds_(call.fields.size()),
      options_(context.options()),
      comparison_(engine_->kept_port(), said_, {}) {
    for (const FieldStorage* f : call.fields) fields_.push_back(f->number());
    options_.record = false;
    options_.heartbeat = nullptr;
    options_.in_transport = !without(options_.paths_off, FastPath::in_transport);
    execution_ = std::make_unique<Execution>(schedule_, bindings_, Computers{}, nothing_, *comparison_.port, options_);
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

void HaloUpdate::begin(std::int64_t its_number, bool agrees) {
    number = its_number;
    place(data_tag());
    agreeing_ = agrees;
    InFlight::begin();
    if (!agrees) return;
    engine_->caller = said_->statement.caller;
    comparison_.agreement.start(agreement_tag(), {}, said_->statement.caller.where, &engine_->where);
}

void HaloUpdate::restart() {
    for (FieldStorage* field : storages_)
        if (field->data()) field->return_home();
    place_repeated();
}

bool HaloUpdate::step() {
    if (agreeing_ && !agreed(comparison_.agreement)) return false;
    agreeing_ = false;
    return execution_->advance();
}

void HaloUpdate::finish() {
    if (!repeats() && !error_) std::fill(holds_.begin(), holds_.end(), nullptr);
}

std::string HaloUpdate::waits() {
    return agreeing_ ? comparison_.agreement.waits()
                     : waits_for(said_->statement.caller, "the halos of its neighbours");
}

HaloHandle start_exchange(Context& context, HaloCall call) {
    auto update = begun(context, call);
    context.engine()->add(update);
    return HaloHandle(std::move(update));
}

void run_exchange(Context& context, HaloCall call) {
    run_to_the_end(begun(context, call));
}

HaloHandle bind_exchange(Context& context, HaloCall call) {
    return HaloHandle(prepare(context, call, true, nullptr));
}

}  // namespace tilewave
