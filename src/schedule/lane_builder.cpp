#include "schedule/lane_builder.hpp"

namespace tilewave {

int LaneBuilder::take_buffer(std::int64_t bytes) {
    if (auto it = free_.lower_bound(bytes); it != free_.end()) {
        const int id = it->second;
        free_.erase(it);
        return id;
    }
    s_.buffers.push_back(bytes);
    return static_cast<int>(s_.buffers.size()) - 1;
}

void LaneBuilder::give_back(int buffer) {
    if (buffer >= 0) free_.emplace(s_.buffers[buffer], buffer);
}

int LaneBuilder::add_message(bool send, int peer, int tag, int array, const Box& region, int tile, bool staged) {
    Message m;
    m.send = send;
    m.peer = peer;
    m.tag = tag;
    m.array = array;
    m.region = region;
    m.bytes = region.points() * s_.arrays[array].item_bytes;
    m.tile = tile;
    if (staged || peer == s_.rank || !one_run(region, s_.arrays[array])) m.buffer = take_buffer(m.bytes);
    s_.messages.push_back(m);
    return static_cast<int>(s_.messages.size()) - 1;
}

int LaneBuilder::post_receive(int peer, int tag, int array, const Box& region, int tile, bool staged) {
    const int id = add_message(false, peer, tag, array, region, tile, staged);
    add(Op::post_recv, id);
    return id;
}

void LaneBuilder::finish_receive(int id) {
    add(Op::wait, id);
    if (s_.messages[id].buffer >= 0) add(Op::unpack, id);
    give_back(s_.messages[id].buffer);
}

int LaneBuilder::post_send(int peer, int tag, int array, const Box& region, bool synchronous, int tile, bool staged) {
    const int id = add_message(true, peer, tag, array, region, tile, staged);
    s_.messages[id].synchronous = synchronous;
    if (s_.messages[id].buffer >= 0) add(Op::pack, id);
    add(Op::post_send, id);
    return id;
}

void LaneBuilder::finish_send(int id) {
    add(Op::wait, id);
    give_back(s_.messages[id].buffer);
}

int LaneBuilder::add_aggregate(bool send, int peer, int tag, const std::vector<Piece>& pieces, bool synchronous) {
    const int id = static_cast<int>(s_.messages.size());
    Message whole;
    whole.send = send;
    whole.synchronous = synchronous;
    whole.peer = peer;
    whole.tag = tag;
    whole.tile = send ? pieces.back().tile : pieces.front().tile;
    whole.array = pieces[0].array;
    whole.pieces = static_cast<int>(pieces.size());
    s_.messages.push_back(whole);
    for (const Piece& p : pieces) {
        Message m;
        m.send = send;
        m.peer = peer;
        m.tag = tag;
        m.array = p.array;
        m.region = p.region;
        m.tile = p.tile;
        m.bytes = p.region.points() * s_.arrays[p.array].item_bytes;
        m.aggregate = id;
        m.at = s_.messages[id].bytes;
        s_.messages[id].bytes += m.bytes;
        s_.messages.push_back(m);
    }
    const int buffer = take_buffer(s_.messages[id].bytes);
    for (int i = id; i <= id + whole.pieces; ++i) s_.messages[i].buffer = buffer;
    return id;
}

void LaneBuilder::copy_local(int from_array, int to_array, const Box& region) {
    const int out = add_message(true, s_.rank, 0, from_array, region, -1, true);
    add(Op::pack, out);
    s_.messages.push_back(s_.messages[out]);
    const int in = static_cast<int>(s_.messages.size()) - 1;
    s_.messages[in].send = false;
    s_.messages[in].array = to_array;
    add(Op::unpack, in);
    give_back(s_.messages[out].buffer);
}

void LaneBuilder::copy_beside(int array, const Box& from, const Box& to) {
    const int out = add_message(true, s_.rank, 0, array, from, -1, true);
    add(Op::pack, out);
    s_.messages.push_back(s_.messages[out]);
    const int in = static_cast<int>(s_.messages.size()) - 1;
    s_.messages[in].send = false;
    s_.messages[in].region = to;
    add(Op::unpack, in);
    give_back(s_.messages[out].buffer);
}

}  // namespace tilewave
