// Queues, their packets, and events. Sources: HSA Platform System Architecture Specification 1.2, "Architected Queuing
// Language packet types"; `amd_hsa_signal.h` and `hsa_ext_amd.h` of ROCR-Runtime; kfd_events.c of Linux.
//
// One thread takes packets of all queues, one after the other, so nothing runs beside anything else. Whoever waits for a
// barrier lets other queues go first. Kernels go to the device process; all else is done here, on memory.
#define _GNU_SOURCE
#include "driver.h"

#include <errno.h>
#include <linux/kfd_ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_QUEUES = 256, MOST_EVENTS = 4096, PACKET_BYTES = 64, AGES_START = 1 };
enum packet_type { VENDOR = 0, INVALID = 1, DISPATCH = 2, BARRIER_AND = 3, AGENT = 4, BARRIER_OR = 5 };
enum vendor_format { PM4_IB = 1, BARRIER_VALUE = 2 };

struct signal {  // amd_signal_t
    int64_t kind;
    volatile int64_t value;
    uint64_t mailbox;
    uint32_t event;
    uint32_t reserved;
    uint64_t began, ended;
};
struct queue {
    int runs;
    char *ring;
    uint64_t packets;
    volatile uint64_t *written, *taken;
    uint32_t type;
};
struct event {
    int exists, set, auto_reset;
    uint32_t type;
    uint64_t age;
};

static struct queue queues[MOST_QUEUES];
static struct event events[MOST_EVENTS];
static uint64_t fault_address;
static int has_thread;
static pthread_mutex_t queues_lock = PTHREAD_MUTEX_INITIALIZER;  // held while a packet is processed
static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t events_changed = PTHREAD_COND_INITIALIZER;

uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

// Events

uint32_t event_create(uint32_t type, int auto_reset) {
    pthread_mutex_lock(&events_lock);
    uint32_t id = 1;
    while (id < MOST_EVENTS && events[id].exists) id++;
    if (id == MOST_EVENTS) {
        fprintf(stderr, "simulated GPU: more than %d events\n", MOST_EVENTS);
        abort();
    }
    events[id] = (struct event){1, 0, auto_reset, type, AGES_START};
    pthread_mutex_unlock(&events_lock);
    return id;
}

static void change(uint32_t id, int exists, int set) {
    pthread_mutex_lock(&events_lock);
    if (id < MOST_EVENTS && events[id].exists) {
        events[id].exists = exists;
        events[id].set = set;
        events[id].age += set;
        pthread_cond_broadcast(&events_changed);
    }
    pthread_mutex_unlock(&events_lock);
}

void event_destroy(uint32_t id) { change(id, 0, 0); }
void event_set(uint32_t id) { change(id, 1, 1); }
void event_reset(uint32_t id) { change(id, 1, 0); }

// Whether the event has happened for this waiter: it is set, or it was since the age that the waiter has seen.
static int happened(struct kfd_event_data *asked) {
    struct event *event = &events[asked->event_id % MOST_EVENTS];
    __u64 *seen = &asked->signal_event_data.last_event_age;
    int newer = event->type == KFD_IOC_EVENT_SIGNAL && *seen && *seen != event->age;
    int hit = event->set || newer;
    if (hit && event->auto_reset) event->set = 0;
    if (hit && event->type == KFD_IOC_EVENT_SIGNAL) *seen = event->age;
    if (hit && event->type == KFD_IOC_EVENT_MEMORY) {
        asked->memory_exception_data = (struct kfd_hsa_memory_exception_data){
            .failure = {.NotPresent = 1}, .va = fault_address, .gpu_id = GPU_ID};
    }
    return hit;
}

void events_wait(struct kfd_ioctl_wait_events_args *asked) {
    struct kfd_event_data *list = (struct kfd_event_data *)asked->events_ptr;
    const uint32_t longest_ms = 1000000;
    uint32_t ms = asked->timeout < longest_ms ? asked->timeout : longest_ms;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = until.tv_nsec + ms % 1000 * 1000000ull;
    until.tv_sec += ms / 1000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&events_lock);
    for (int over = 0;;) {
        uint32_t hits = 0;
        for (uint32_t i = 0; i < asked->num_events; i++) hits += happened(&list[i]);
        if (hits && (!asked->wait_for_all || hits == asked->num_events)) {
            asked->wait_result = KFD_IOC_WAIT_RESULT_COMPLETE;
            break;
        }
        if (over) {
            asked->wait_result = KFD_IOC_WAIT_RESULT_TIMEOUT;
            break;
        }
        over = pthread_cond_timedwait(&events_changed, &events_lock, &until) == ETIMEDOUT;
    }
    pthread_mutex_unlock(&events_lock);
}

// As a memory access fault of hardware: ROCr waits for the event, says which address, and ends the process.
static void fault(struct reply why) {
    fprintf(stderr, "simulated GPU: %.*s\n", (int)sizeof why.text, why.text);
    pthread_mutex_lock(&events_lock);
    fault_address = why.address;
    for (int id = 0; id < MOST_EVENTS; id++) {
        if (events[id].exists && events[id].type == KFD_IOC_EVENT_MEMORY) events[id].set = 1;
    }
    pthread_cond_broadcast(&events_changed);
    pthread_mutex_unlock(&events_lock);
}

// Packets

static struct signal *signal_at(uint64_t handle) { return (struct signal *)handle; }
static uint64_t word(const char *packet, int at) {
    uint64_t value;
    memcpy(&value, packet + at, sizeof value);
    return value;
}

static int barrier_open(const char *packet, int any) {
    int waits_for = 0, done = 0;
    for (int at = 8; at < 48; at += 8) {
        uint64_t handle = word(packet, at);
        if (!handle) continue;
        waits_for++;
        done += signal_at(handle)->value == 0;
    }
    return any ? done > 0 || !waits_for : done == waits_for;
}

// hsa_amd_barrier_value_packet_t: goes on where `value & mask` compares so with the wanted value.
static int value_reached(const char *packet) {
    uint64_t handle = word(packet, 8);
    if (!handle) return 1;
    int64_t value = signal_at(handle)->value & (int64_t)word(packet, 24), wanted = (int64_t)word(packet, 16);
    switch ((uint32_t)word(packet, 32)) {  // hsa_signal_condition_t
        case 0: return value == wanted;
        case 1: return value != wanted;
        case 2: return value < wanted;
        default: return value >= wanted;
    }
}

static int may_go(int type, const char *packet) {
    if (type == BARRIER_AND || type == BARRIER_OR) return barrier_open(packet, type == BARRIER_OR);
    return type != VENDOR || packet[2] != BARRIER_VALUE || value_reached(packet);
}

static void complete(uint64_t handle, uint64_t began_ns) {
    if (!handle) return;
    struct signal *signal = signal_at(handle);
    uint64_t mailbox = signal->mailbox;  // before the value says that the signal may go
    uint32_t event = signal->event;
    signal->began = began_ns / 10;  // in ticks of 100 MHz
    signal->ended = clock_ns() / 10 + 1;
    __atomic_fetch_sub(&signal->value, 1, __ATOMIC_SEQ_CST);
    if (!mailbox) return;
    *(volatile uint64_t *)mailbox = event;
    event_set(event);
}

// Take the next packet of a queue, where there is one that may go on. Returns whether it did.
static int step(uint32_t id) {
    struct queue *queue = &queues[id];
    if (!queue->runs || queue->type != KFD_IOC_QUEUE_TYPE_COMPUTE_AQL) return 0;
    uint64_t index = *queue->taken;
    if (index >= __atomic_load_n(queue->written, __ATOMIC_ACQUIRE)) return 0;
    char *place = queue->ring + index % queue->packets * PACKET_BYTES, packet[PACKET_BYTES];
    int type = __atomic_load_n((uint16_t *)place, __ATOMIC_ACQUIRE) & 0xFF;
    if (type == INVALID || !may_go(type, place)) return 0;
    memcpy(packet, place, sizeof packet);
    uint64_t began = clock_ns();
    if (type == DISPATCH) {
        struct request asked = {.kind = REQUEST_DISPATCH, .queue = id, .packet_address = (uint64_t)place};
        memcpy(asked.packet, packet, sizeof packet);
        struct reply answer = link_ask(asked, -1);
        if (answer.status != 0) {
            queue->runs = 0;
            fault(answer);
            return 1;
        }
    }
    // Nothing of the queue is touched once its signal may have told the process to take it away.
    __atomic_store_n((uint16_t *)place, INVALID, __ATOMIC_RELEASE);
    __atomic_store_n(queue->taken, index + 1, __ATOMIC_RELEASE);
    complete(word(packet, 56), began);
    return 1;
}

static void *run(void *unused) {
    const useconds_t shortest_us = 20, longest_us = 500;
    useconds_t pause_us = shortest_us;
    for (;;) {
        int did = 0;
        pthread_mutex_lock(&queues_lock);
        for (uint32_t id = 0; id < MOST_QUEUES; id++) did |= step(id);
        pthread_mutex_unlock(&queues_lock);
        pause_us = did ? shortest_us : pause_us + pause_us / 8 + 1;
        if (!did) usleep(pause_us < longest_us ? pause_us : (pause_us = longest_us));
    }
    return unused;
}

uint32_t queue_create(uint64_t ring, uint64_t ring_bytes, uint64_t write_index, uint64_t read_index, uint32_t type) {
    pthread_mutex_lock(&queues_lock);
    uint32_t id = 0;
    while (id < MOST_QUEUES - 1 && queues[id].ring) id++;
    queues[id] = (struct queue){1, (char *)ring, ring_bytes / PACKET_BYTES, (volatile uint64_t *)write_index,
                                (volatile uint64_t *)read_index, type};
    if (!has_thread) {
        pthread_t thread;
        has_thread = pthread_create(&thread, NULL, run, NULL) == 0;
        if (has_thread) pthread_detach(thread);
    }
    pthread_mutex_unlock(&queues_lock);
    return id;
}

// Waits for the packet that is being processed: its ring belongs to the process again.
void queue_destroy(uint32_t id) {
    pthread_mutex_lock(&queues_lock);
    if (id < MOST_QUEUES) queues[id] = (struct queue){0};
    pthread_mutex_unlock(&queues_lock);
}
