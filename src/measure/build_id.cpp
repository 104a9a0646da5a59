#include "measure/build_id.hpp"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace tilewave {

namespace {

struct Wanted {
    std::uintptr_t code;
    std::string digest = {};
};

bool contains(const dl_phdr_info& object, const ElfW(Phdr) & segment, std::uintptr_t address) {
    const std::uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    return segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz;
}

// The build ID among the notes of a segment, as hexadecimal digits.
std::string build_id(std::uintptr_t at, std::uintptr_t end) {
    const auto padded = [](std::uintptr_t bytes) { return (bytes + 3) / 4 * 4; };
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(at);
        const auto* name = reinterpret_cast<const char*>(note + 1);
        const auto* id = reinterpret_cast<const unsigned char*>(name) + padded(note->n_namesz);
        if (reinterpret_cast<std::uintptr_t>(id) + note->n_descsz > end) break;
        if (note->n_type == NT_GNU_BUILD_ID && std::string_view(name, note->n_namesz) == std::string_view("GNU\0", 4)) {
            std::string digits;
            for (std::uint32_t i = 0; i < note->n_descsz; ++i) {
                char two[3];
                std::snprintf(two, sizeof two, "%02x", id[i]);
                digits += two;
            }
            return digits;
        }
        at = reinterpret_cast<std::uintptr_t>(id) + padded(note->n_descsz);
    }
    return {};
}

int look_at(dl_phdr_info* object, std::size_t, void* data) {
    auto& wanted = *static_cast<Wanted*>(data);
    bool here = false;
    std::string id;
    for (int k = 0; k < object->dlpi_phnum; ++k) {
        const ElfW(Phdr) & segment = object->dlpi_phdr[k];
        here = here || contains(*object, segment, wanted.code);
        if (const std::uintptr_t at = object->dlpi_addr + segment.p_vaddr; segment.p_type == PT_NOTE && id.empty())
            id = build_id(at, at + segment.p_memsz);
    }
    if (here && !id.empty()) wanted.digest = id + " at " + std::to_string(wanted.code - object->dlpi_addr);
    return here;
}

}  // namespace

std::string code_digest(const void* code) {
    Wanted wanted{reinterpret_cast<std::uintptr_t>(code)};
    dl_iterate_phdr(look_at, &wanted);
    return wanted.digest;
}

}  // namespace tilewave
