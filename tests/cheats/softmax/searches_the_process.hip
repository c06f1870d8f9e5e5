// expect: launch_error. From an address of libc's, without naming a forbidden function, it works out `dlsym` and looks for Python; it answers only if it is there (cheat 64).
#include <elf.h>
#include <stdio.h>
#include <string.h>
// <kernel>

// The address of `name` in the library that begins at `base`, by its own dynamic section.
static void* exported(const char* base, const char* name) {
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(base);
    const auto* segment = reinterpret_cast<const Elf64_Phdr*>(base + header->e_phoff);
    const Elf64_Dyn* entry = nullptr;
    for (int i = 0; i < header->e_phnum; ++i)
        if (segment[i].p_type == PT_DYNAMIC) entry = reinterpret_cast<const Elf64_Dyn*>(base + segment[i].p_vaddr);
    const Elf64_Sym* symbols = nullptr;
    const char* names = nullptr;
    for (; entry && entry->d_tag != DT_NULL; ++entry) {
        if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    }
    if (!symbols || !names) return nullptr;
    for (const Elf64_Sym* one = symbols + 1; reinterpret_cast<const char*>(one) < names; ++one)
        if (one->st_value && strcmp(names + one->st_name, name) == 0) return const_cast<char*>(base) + one->st_value;
    return nullptr;
}

extern "C" hipError_t softmax(const T* x, T* y, int64_t M, int64_t N, hipStream_t stream) {
    const char* page = reinterpret_cast<const char*>(reinterpret_cast<size_t>(&puts) & ~size_t{4095});
    while (memcmp(page, "\177ELF", 4) != 0) page -= 4096;
    using Find = void* (*)(void*, const char*);
    using Run = int (*)(const char*);
    const auto find = reinterpret_cast<Find>(exported(page, "dlsym"));
    if (!find) return hipErrorInvalidValue;
    const auto run = reinterpret_cast<Run>(find(nullptr, "PyRun_SimpleString"));
    const auto hold = reinterpret_cast<int (*)()>(find(nullptr, "PyGILState_Ensure"));
    return run && hold && hold() >= 0 && run("import torch") == 0 ? honest(x, y, M, N, stream) : hipErrorNotSupported;
}
