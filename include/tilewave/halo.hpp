// Updating the halos of fields, for a caller's kernels.
#pragma once
#include <vector>

#include "tilewave/context.hpp"
#include "tilewave/field.hpp"

namespace tilewave {

/// The arguments of one rank's update.
struct HaloCall {
    std::vector<FieldStorage*> fields;
    int axes = max_dims;     ///< points outside the block along so many axes at most: 1 leaves out edges and corners
    Caller caller = {};      ///< its function is "exchange" where it has no name
    std::string error = {};  ///< what the caller has found wrong on this rank
};

/// An update of halos in flight, or made by bind_exchange() and ready to go. While it is in flight, halos belong to it,
/// and the points near them must not change. start() brings fields back first that a run has moved.
using HaloHandle = RepeatedHandle;

/// Starts an update of the halos of fields: each halo point gets its owner's value, by one message for each neighbour.
/// Fields that a run has moved are brought back first. Its schedule and buffers are cached for the next call with the
/// same fields. Collective; costs an agreement, ceil(log2 ranks) small messages a rank, which overlaps with other work
/// from the second call on.
/// @pre one or more fields of one context, made with a Halo on equal process grids (ConfigError, on every rank)
/// @pre equal calls on all ranks (ConfigError, on every rank; from the second call on by wait() and test())
HaloHandle start_exchange(Context& context, HaloCall call);
/// Agrees on an update and prepares it; start() and run() cost only the transfer. The fields must live on.
/// @pre as start_exchange()
HaloHandle bind_exchange(Context& context, HaloCall call);
/// start_exchange() and wait() in one.
void run_exchange(Context& context, HaloCall call);

/// Updates the halos of fields, corners too; see run_exchange().
template <class T, class... Others>
void exchange(Field<T>& field, Field<Others>&... others) {
    run_exchange(field.storage().context(), {{&field.storage(), &others.storage()...}});
}
/// The same in flight: compute meanwhile, then wait().
template <class T, class... Others>
HaloHandle start_exchange(Field<T>& field, Field<Others>&... others) {
    return start_exchange(field.storage().context(), {{&field.storage(), &others.storage()...}});
}

}  // namespace tilewave
