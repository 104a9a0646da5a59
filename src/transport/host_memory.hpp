// Memory that the ranks of one host map.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "tilewave/engine/transport.hpp"

namespace tilewave {

class HostMemory {
public:
    /// `bytes` zeros, mapped by every rank of `ranks`: this rank and those that share its host, in order. Null on all
    /// ranks where one of them cannot. It is gone when nobody maps it any more, however they ended: it never had a
    /// name. Collective over `t`.
    static std::unique_ptr<HostMemory> make(Transport& t, const std::vector<int>& ranks, std::size_t bytes);
    ~HostMemory();
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    std::byte* data() const { return data_; }

private:
    HostMemory(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
    std::byte* data_;
    std::size_t bytes_;
};

}  // namespace tilewave
