// Staged messages in memory of the transport, where it provides some: packed there and unpacked from there, so that
// ranks of one host copy them twice and not four times.
#include "execute/execution.hpp"

namespace tilewave {

bool Execution::moves_in_transport(const Step& step) {
    if (step.op != Op::pack && step.op != Op::unpack && step.op != Op::post_send && step.op != Op::post_recv)
        return false;
    const Message& m = s_.messages[step.item];
    if (m.buffer < 0 || m.peer == s_.rank || draining()) return false;
    const int whole = m.aggregate >= 0 ? m.aggregate : step.item;
    const Message& all = s_.messages[whole];
    std::byte*& written = written_[whole];
    std::byte* const buffer = buffers_[m.buffer].get();
    switch (step.op) {
        case Op::pack:
            if (m.aggregate < 0 || step.item == whole + 1)
                written = request_table_.locked([&] { return transport_.memory_for(all.bytes, m.peer); });
            copy(0, m, true, written ? written : buffer);
            return true;
        case Op::post_send:
            if (!written) return false;
            request_table_.post_in_transport(step.item, std::exchange(written, nullptr));
            return true;
        case Op::post_recv: request_table_.post_in_transport(step.item, buffer); return true;
        default:
            copy(0, m, false,
                 const_cast<std::byte*>(request_table_.locked([&] { return transport_.where_received(buffer); })));
            if (m.aggregate < 0 || step.item == whole + all.pieces)
                request_table_.locked([&] { transport_.release_received(buffer); });
            return true;
    }
}

}  // namespace tilewave
