// A pretended amdgpu driver for a preloaded library: /dev/kfd ioctl by ioctl, and libdrm's answers.
//
// Source of all numbers and structures: `linux/kfd_ioctl.h`; of what an ioctl is expected to do: kfd_chardev.c of Linux
// and libhsakmt of ROCR-Runtime. Buffers are files in memory, at one address for processor and device. Not answered are
// debugging, checkpoints, SVM and events of the SMI; the older way of IPC is refused, as Linux's own module does.
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_FILES = 4096, MOST_BUFFERS = 1 << 16, BUFFER_SHIFT = 40, NEWEST_MINOR = 17 };
enum { KFD = 1, DRM = 2 };
#define DOORBELLS (3ull << 62)  // KFD_MMAP_TYPE_DOORBELL and KFD_MMAP_TYPE_EVENTS of kfd_priv.h
#define EVENTS (2ull << 62)
static const uint64_t memory_bytes = 191ull << 30;

struct buffer {
    int exists, file, mapped;
    uint64_t bytes, address, user_address;
    uint32_t flags;
};
static struct buffer buffers[MOST_BUFFERS];
static uint32_t next_buffer = 1;
static uint64_t allocated_bytes;
static pthread_mutex_t buffers_lock = PTHREAD_MUTEX_INITIALIZER;
static char kind_of[MOST_FILES];  // which descriptors are the driver's

static int (*real_open)(const char *, int, ...);
static int (*real_close)(int);
static int (*real_ioctl)(int, unsigned long, ...);
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);

__attribute__((constructor)) static void find_real(void) {
    real_open = dlsym(RTLD_NEXT, "open");
    real_close = dlsym(RTLD_NEXT, "close");
    real_ioctl = dlsym(RTLD_NEXT, "ioctl");
    real_mmap = dlsym(RTLD_NEXT, "mmap");
}

static int is(int file, int kind) { return file >= 0 && file < MOST_FILES && kind_of[file] == kind; }
static int marked(int file, int kind) {
    if (file >= 0 && file < MOST_FILES) kind_of[file] = kind;
    return file;
}
static int memory_file(const char *name) { return syscall(SYS_memfd_create, name, 1 /* MFD_CLOEXEC */); }

// Files

static int open_any(const char *path, int flags, mode_t mode) {
    if (!real_open) find_real();
    if (strcmp(path, "/dev/kfd") == 0) {
        int file = link_open();
        if (file >= 0) link_use(file);
        return marked(file, KFD);
    }
    if (strncmp(path, "/dev/dri/renderD", 16) == 0) return marked(memory_file("simulated-drm"), DRM);
    return real_open(path, flags, mode);
}

#define OPEN(name)                                  \
    int name(const char *path, int flags, ...) {    \
        mode_t mode = 0;                            \
        if (flags & (O_CREAT | O_TMPFILE)) {        \
            va_list rest;                           \
            va_start(rest, flags);                  \
            mode = va_arg(rest, int);               \
            va_end(rest);                           \
        }                                           \
        return open_any(path, flags, mode);         \
    }
OPEN(open)
OPEN(open64)

int close(int file) {
    if (!real_close) find_real();
    if (is(file, KFD) || is(file, DRM)) marked(file, 0);  // else the next file of this number is taken for the driver's
    return real_close(file);
}

static void *map_any(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (!real_mmap) find_real();
    if (!is(file, KFD) && !is(file, DRM)) return real_mmap(at, bytes, protection, flags, file, offset);
    uint64_t number = (uint64_t)offset >> BUFFER_SHIFT;
    if ((uint64_t)offset < EVENTS && number && number < MOST_BUFFERS && buffers[number].file >= 0) {
        int shared = (flags & ~MAP_PRIVATE) | MAP_SHARED;
        return real_mmap(at, bytes, protection, shared, buffers[number].file, 0);
    }
    return real_mmap(at, bytes, PROT_READ | PROT_WRITE, (flags & MAP_FIXED) | MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}
void *mmap(void *at, size_t n, int p, int f, int file, off_t o) { return map_any(at, n, p, f, file, o); }
void *mmap64(void *at, size_t n, int p, int f, int file, off_t o) { return map_any(at, n, p, f, file, o); }

// Memory

static uint64_t handle_of(uint32_t number) { return (uint64_t)GPU_ID << 32 | number; }
static struct buffer *buffer_of(uint64_t handle) {
    uint32_t number = handle & 0xFFFFFFFF;
    return number && number < MOST_BUFFERS && buffers[number].exists ? &buffers[number] : NULL;
}

static uint32_t new_buffer(struct buffer made) {
    pthread_mutex_lock(&buffers_lock);
    uint32_t number = 0;
    for (uint32_t tried = 1; tried < MOST_BUFFERS && !number; tried++) {
        if (!buffers[next_buffer].exists) number = next_buffer;
        next_buffer = next_buffer + 1 == MOST_BUFFERS ? 1 : next_buffer + 1;
    }
    if (number) {
        buffers[number] = made;
        allocated_bytes += made.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM ? made.bytes : 0;
    }
    pthread_mutex_unlock(&buffers_lock);
    return number;
}

static int allocate(struct kfd_ioctl_alloc_memory_of_gpu_args *asked) {
    struct buffer made = {1, -1, 0, asked->size, asked->va_addr, 0, asked->flags};
    int of_user = asked->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, own = asked->mmap_offset == asked->va_addr;
    int plain = !(asked->flags & (KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP));
    if (of_user && !own) made.user_address = asked->mmap_offset;
    else if (plain) {
        made.file = memory_file("simulated-memory");
        if (made.file < 0 || ftruncate(made.file, asked->size) != 0) return ENOMEM;
    }
    if (of_user && own) {  // the runtime's own anonymous memory, which nothing is in yet: a file takes its place
        void *at = (void *)asked->va_addr;
        if (real_mmap(at, asked->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, made.file, 0) != at) return ENOMEM;
        madvise(at, asked->size, MADV_DONTFORK);
    }
    uint32_t number = new_buffer(made);
    if (!number) return ENOMEM;
    asked->handle = handle_of(number);
    if (!of_user) asked->mmap_offset = (uint64_t)number << BUFFER_SHIFT;
    return 0;
}

static void tell(struct buffer *buffer, uint64_t handle, int mapped) {
    if (buffer->mapped == mapped || (buffer->file < 0 && !buffer->user_address)) return;
    buffer->mapped = mapped;
    struct request asked = {mapped ? REQUEST_ADD : REQUEST_REMOVE, 0, handle, buffer->address, buffer->user_address,
                            buffer->bytes, 0, {0}};
    link_ask(asked, mapped ? buffer->file : -1);
}

static int release(uint64_t handle) {
    struct buffer *buffer = buffer_of(handle);
    if (!buffer) return EINVAL;
    tell(buffer, handle, 0);
    pthread_mutex_lock(&buffers_lock);
    if (buffer->file >= 0) real_close(buffer->file);
    allocated_bytes -= buffer->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM ? buffer->bytes : 0;
    *buffer = (struct buffer){.file = -1};
    pthread_mutex_unlock(&buffers_lock);
    return 0;
}

static int set_mapped(uint64_t handle, int mapped) {
    struct buffer *buffer = buffer_of(handle);
    if (!buffer) return EINVAL;
    tell(buffer, handle, mapped);
    return 0;
}

static int describe_dmabuf(struct kfd_ioctl_get_dmabuf_info_args *asked) {
    struct stat found;
    if (fstat(asked->dmabuf_fd, &found) != 0) return EINVAL;
    asked->size = found.st_size;
    asked->gpu_id = GPU_ID;
    asked->flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
    asked->metadata_size = 0;
    return 0;
}

static int import_dmabuf(struct kfd_ioctl_import_dmabuf_args *asked) {
    struct stat found;
    if (fstat(asked->dmabuf_fd, &found) != 0) return EINVAL;
    int file = fcntl(asked->dmabuf_fd, F_DUPFD_CLOEXEC, 0);
    struct buffer made = {1, file, 0, found.st_size, asked->va_addr, 0, KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC};
    void *at = (void *)asked->va_addr;
    if (at && real_mmap(at, made.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != at) return ENOMEM;
    uint32_t number = new_buffer(made);
    asked->handle = handle_of(number);
    return number ? 0 : ENOMEM;
}

static int export_dmabuf(struct kfd_ioctl_export_dmabuf_args *asked) {
    struct buffer *buffer = buffer_of(asked->handle);
    if (!buffer || buffer->file < 0) return EINVAL;
    int file = fcntl(buffer->file, F_DUPFD_CLOEXEC, 0);
    asked->dmabuf_fd = file;
    return file < 0 ? errno : 0;
}

// Everything else

static int apertures(struct kfd_ioctl_get_process_apertures_new_args *asked) {
    struct kfd_process_device_apertures *first = (void *)asked->kfd_process_device_apertures_ptr;
    if (first && asked->num_of_nodes) {
        *first = (struct kfd_process_device_apertures){
            .lds_base = 1ull << 48, .lds_limit = (1ull << 48) + 0xFFFFFFFF,
            .scratch_base = 2ull << 48, .scratch_limit = (2ull << 48) + 0xFFFFFFFF,
            .gpuvm_base = 0x4000, .gpuvm_limit = 0x7FFFFFFFFFFF, .gpu_id = GPU_ID};
    }
    asked->num_of_nodes = 1;
    return 0;
}

static int create_queue(struct kfd_ioctl_create_queue_args *asked) {
    asked->queue_id = queue_create(asked->ring_base_address, asked->ring_size, asked->write_pointer_address,
                                   asked->read_pointer_address, asked->queue_type);
    asked->doorbell_offset = DOORBELLS | asked->queue_id * 8;
    return 0;
}

static int create_event(struct kfd_ioctl_create_event_args *asked) {
    asked->event_id = event_create(asked->event_type, asked->auto_reset);
    asked->event_trigger_data = asked->event_slot_index = asked->event_id;
    // Without it libhsakmt gives a signal no mailbox: then nothing wakes whoever sleeps until its value changes.
    if (asked->event_type == KFD_IOC_EVENT_SIGNAL) asked->event_page_offset = EVENTS;
    return 0;
}

static int read_clocks(struct kfd_ioctl_get_clock_counters_args *asked) {
    asked->cpu_clock_counter = asked->system_clock_counter = clock_ns();
    asked->gpu_clock_counter = asked->cpu_clock_counter / 10;
    asked->system_clock_freq = 1000000000;
    return 0;
}

static int free_memory(struct kfd_ioctl_get_available_memory_args *asked) {
    asked->available = allocated_bytes < memory_bytes ? memory_bytes - allocated_bytes : 0;
    return 0;
}

// Returns 0 or an error number. What is not named succeeds and does nothing: policies, traps, masks, the VM itself.
static int answer(unsigned long request, void *asked) {
    switch (request) {
        case AMDKFD_IOC_GET_VERSION:
            *(struct kfd_ioctl_get_version_args *)asked = (struct kfd_ioctl_get_version_args){1, NEWEST_MINOR};
            return 0;
        case AMDKFD_IOC_CREATE_QUEUE: return create_queue(asked);
        case AMDKFD_IOC_DESTROY_QUEUE:
            queue_destroy(((struct kfd_ioctl_destroy_queue_args *)asked)->queue_id);
            return 0;
        case AMDKFD_IOC_GET_CLOCK_COUNTERS: return read_clocks(asked);
        case AMDKFD_IOC_CREATE_EVENT: return create_event(asked);
        case AMDKFD_IOC_DESTROY_EVENT: event_destroy(((struct kfd_ioctl_destroy_event_args *)asked)->event_id); return 0;
        case AMDKFD_IOC_SET_EVENT: event_set(((struct kfd_ioctl_set_event_args *)asked)->event_id); return 0;
        case AMDKFD_IOC_RESET_EVENT: event_reset(((struct kfd_ioctl_reset_event_args *)asked)->event_id); return 0;
        case AMDKFD_IOC_WAIT_EVENTS: events_wait(asked); return 0;
        case AMDKFD_IOC_GET_PROCESS_APERTURES_NEW: return apertures(asked);
        case AMDKFD_IOC_ALLOC_MEMORY_OF_GPU: return allocate(asked);
        case AMDKFD_IOC_FREE_MEMORY_OF_GPU: return release(((struct kfd_ioctl_free_memory_of_gpu_args *)asked)->handle);
        case AMDKFD_IOC_MAP_MEMORY_TO_GPU: {
            struct kfd_ioctl_map_memory_to_gpu_args *mapping = asked;
            mapping->n_success = mapping->n_devices;
            return set_mapped(mapping->handle, 1);
        }
        case AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU: {
            struct kfd_ioctl_unmap_memory_from_gpu_args *mapping = asked;
            mapping->n_success = mapping->n_devices;
            return set_mapped(mapping->handle, 0);
        }
        case AMDKFD_IOC_GET_DMABUF_INFO: return describe_dmabuf(asked);
        case AMDKFD_IOC_IMPORT_DMABUF: return import_dmabuf(asked);
        case AMDKFD_IOC_EXPORT_DMABUF: return export_dmabuf(asked);
        case AMDKFD_IOC_AVAILABLE_MEMORY: return free_memory(asked);
        case AMDKFD_IOC_SET_XNACK_MODE: ((struct kfd_ioctl_set_xnack_mode_args *)asked)->xnack_enabled = 0; return 0;
        case AMDKFD_IOC_GET_TILE_CONFIG: return EINVAL;
        default: break;
    }
    if (_IOC_NR(request) == _IOC_NR(AMDKFD_IOC_SVM)) return EINVAL;  // its size varies
    return _IOC_NR(request) >= 0x80 ? ENOTTY : 0;                     // 0x80 and 0x81: IPC of AMD's own module
}

int ioctl(int file, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void *asked = va_arg(rest, void *);
    va_end(rest);
    if (!real_ioctl) find_real();
    if (!is(file, KFD) && !is(file, DRM)) return real_ioctl(file, request, asked);
    int problem = is(file, KFD) ? answer(request, asked) : EINVAL;
    if (!problem) return 0;
    errno = problem;
    return -1;
}

// libdrm and libdrm_amdgpu: `xf86drm.h`, `amdgpu.h`

int drmOpenRender(int minor) { return open_any("/dev/dri/renderD128", O_RDWR, (mode_t)minor); }
int drmClose(int file) { return close(file); }
int drmCommandWriteRead(int file, unsigned long index, void *data, unsigned long bytes) {
    memset(data, 0, bytes);
    return 0;
}
int amdgpu_device_get_fd(void *device) { return (int)(intptr_t)device - 1; }
int amdgpu_device_initialize(int file, uint32_t *major, uint32_t *minor, void **device) {
    int own = marked(fcntl(file, F_DUPFD_CLOEXEC, 0), DRM);  // as libdrm does: the caller closes its descriptor
    *major = 3, *minor = 60, *device = (void *)(intptr_t)(own + 1);
    return own < 0 ? -errno : 0;
}
int amdgpu_device_deinitialize(void *device) { return close(amdgpu_device_get_fd(device)); }
const char *amdgpu_get_marketing_name(void *device) { return "AMD Instinct MI300X"; }
int amdgpu_query_gpu_info(void *device, uint32_t *info) {
    memset(info, 0, 200);  // `struct amdgpu_gpu_info` is larger; what the runtime reads lies in its beginning
    info[0] = 0x74A1;      // asic_id
    return 0;
}
