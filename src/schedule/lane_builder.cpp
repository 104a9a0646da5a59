#include "schedule/lane_builder.hpp"

namespace tilewave {

int add_message(Schedule& s, bool send, int peer, int tag, int array, const Box& region) {
    Message m;
    m.send = send;
    m.peer = peer;
    m.tag = tag;
    m.array = array;
    m.region = region;
    m.bytes = region.points() * s.arrays[array].item_bytes;
    s.messages.push_back(m);
    return static_cast<int>(s.messages.size()) - 1;
}

void add_helper_lane(Schedule& s, const std::vector<int>& counts) {
    s.lanes.emplace_back();
    for (int l = 0; l < static_cast<int>(counts.size()); ++l) {
        s.lanes[l].push_back({Op::signal, 0, counts[l]});
        s.lanes.back().push_back({Op::await, l, counts[l]});
    }
}

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

int LaneBuilder::add_buffered(bool send, int peer, int tag, int array, const Box& region, int tile, bool staged) {
    const int id = add_message(s_, send, peer, tag, array, region);
    Message& m = s_.messages[id];
    m.tile = tile;
    if (staged || peer == s_.rank || !one_run(region, s_.arrays[array])) m.buffer = take_buffer(m.bytes);
    return id;
}

int LaneBuilder::post_receive(int peer, int tag, int array, const Box& region, int tile, bool staged) {
    const int id = add_buffered(false, peer, tag, array, region, tile, staged);
    add(Op::post_recv, id);
    return id;
}

void LaneBuilder::finish_receive(int id) {
    add(Op::wait, id);
    if (s_.messages[id].buffer >= 0) add(Op::unpack, id);
    give_back(s_.messages[id].buffer);
}

int LaneBuilder::post_send(int peer, int tag, int array, const Box& region, bool synchronous, int tile, bool staged) {
    const int id = add_buffered(true, peer, tag, array, region, tile, staged);
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
        Message& m = s_.messages[add_message(s_, send, peer, tag, p.array, p.region)];
        m.tile = p.tile;
        m.aggregate = id;
        m.at = s_.messages[id].bytes;
        s_.messages[id].bytes += m.bytes;
    }
    const int buffer = take_buffer(s_.messages[id].bytes);
    for (int i = id; i <= id + whole.pieces; ++i) s_.messages[i].buffer = buffer;
    return id;
}

int LaneBuilder::post_aggregate(bool send, int peer, int tag, const std::vector<Piece>& pieces, bool synchronous) {
    const int id = add_aggregate(send, peer, tag, pieces, synchronous);
    for (int i = 1; send && i <= static_cast<int>(pieces.size()); ++i) add(Op::pack, id + i);
    add(send ? Op::post_send : Op::post_recv, id);
    return id;
}

void LaneBuilder::finish_aggregate(int id) {
    add(Op::wait, id);
    for (int i = 1; i <= s_.messages[id].pieces; ++i) add(Op::unpack, id + i);
    release(id);
}

void LaneBuilder::copy_local(int from_array, const Box& from, int to_array, const Box& to) {
    const int out = add_buffered(true, s_.rank, 0, from_array, from, -1, true);
    add(Op::pack, out);
    s_.messages.push_back(s_.messages[out]);
    Message& in = s_.messages.back();
    in.send = false;
    in.array = to_array;
    in.region = to;
    add(Op::unpack, out + 1);
    release(out);
}

}  // namespace tilewave
