// The one kind of cache that contexts have.
#pragma once
#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

namespace tilewave {

/// Values by key, at most so many: those that were used last, the last one first.
template <class Key, class Value, std::size_t most>
class Recent : public std::list<std::pair<Key, Value>> {
public:
    /// Null where there is none; good until the entry goes.
    Value* find(const Key& key) {
        const auto found = std::find_if(this->begin(), this->end(), [&](const auto& one) { return one.first == key; });
        if (found == this->end()) return nullptr;
        this->splice(this->begin(), *this, found);
        return &this->front().second;
    }
    Value& store(const Key& key, Value value) {
        if (Value* const known = find(key)) return *known = std::move(value);
        this->emplace_front(key, std::move(value));
        if (this->size() > most) this->pop_back();
        return this->front().second;
    }
};

}  // namespace tilewave
