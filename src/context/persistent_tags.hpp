// Tags of calls that are prepared once and run any number of times, like MPI's persistent requests.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tilewave/error.hpp"

namespace tilewave {

/// Which tags are taken on this rank. Calls are destroyed at different times on different ranks, so a new one needs a
/// tag that is free on all: each rank proposes free_from(0); while proposals differ, each proposes free_from(the
/// largest). A proposal is a distance from the tag after the last one taken, which all ranks know: tags are used
/// cyclically, and mostly the first proposals agree. Any thread.
class PersistentTags {
public:
    explicit PersistentTags(int count) : taken_(static_cast<std::size_t>(count)) {}
    int count() const { return static_cast<int>(taken_.size()); }
    /// The least distance from `least` on of a tag that is free here; count() where there is none.
    std::int64_t free_from(std::int64_t least) {
        const std::scoped_lock guard(lock_);
        while (least < count() && taken_[place(least)]) ++least;
        return least;
    }
    /// Takes the tag at this distance, which all ranks have proposed. @pre it is free (not checked)
    int take(std::int64_t distance) {
        const std::scoped_lock guard(lock_);
        const std::size_t tag = place(distance);
        taken_[tag] = true;
        next_ = (tag + 1) % taken_.size();
        return static_cast<int>(tag);
    }
    /// @throws ConfigError where the ranks have found none
    void must_be_there(std::int64_t distance) const {
        if (distance >= count())
            throw ConfigError("this context has " + std::to_string(count()) +
                              " patterns and exchanges with start=False that are in use, the most there can be; delete "
                              "some first");
    }
    void give_back(int tag) {
        const std::scoped_lock guard(lock_);
        taken_[tag] = false;
    }

private:
    std::size_t place(std::int64_t distance) const {
        return (next_ + static_cast<std::size_t>(distance)) % taken_.size();
    }
    std::mutex lock_;
    std::vector<bool> taken_;
    std::size_t next_ = 0;
};

/// Holds a tag and gives it back, or holds none.
class PersistentTag {
public:
    PersistentTag() = default;
    PersistentTag(std::shared_ptr<PersistentTags> all, std::int64_t distance)
        : all_(std::move(all)), tag_(all_->take(distance)) {}
    PersistentTag(PersistentTag&& other) noexcept : all_(std::move(other.all_)), tag_(std::exchange(other.tag_, -1)) {}
    PersistentTag& operator=(PersistentTag&& other) noexcept {
        std::swap(all_, other.all_);
        std::swap(tag_, other.tag_);
        return *this;
    }
    ~PersistentTag() {
        if (all_) all_->give_back(tag_);
    }
    explicit operator bool() const { return all_ != nullptr; }
    int number() const { return tag_; }

private:
    std::shared_ptr<PersistentTags> all_;
    int tag_ = -1;
};

}  // namespace tilewave
