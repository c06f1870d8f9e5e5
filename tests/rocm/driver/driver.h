// The pretended driver of a simulated AMD GPU: what its three files share. Built as one library, see environment.sh.
//
// kfd.c answers open, ioctl and mmap of /dev/kfd; packets.c runs queues; link.c speaks to the device process.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define GPU_ID 4660u  // `gpu_id` of the topology, see topology.py

// What the device process is asked, see device.py, which has the same layout.
enum request_kind { REQUEST_ADD = 1, REQUEST_REMOVE = 2, REQUEST_DISPATCH = 3 };
struct request {
    uint32_t kind;
    uint32_t queue;
    uint64_t handle;        // of a buffer
    uint64_t address;       // that kernels know it by
    uint64_t user_address;  // of memory that belongs to the process itself and has no file; else 0
    uint64_t bytes;
    uint64_t packet_address;
    uint8_t packet[64];
};
struct reply {
    int32_t status;  // 0, or that a kernel could not be executed
    uint32_t reserved;
    uint64_t address;  // of a memory access fault
    char text[240];
};

// link.c
int link_open(void);                                  // a new connection to the device process; -1 with errno
void link_use(int file);                              // the connection of all later requests
struct reply link_ask(struct request asked, int file);  // `file`: that of a buffer, else -1

// packets.c: queues and events
uint32_t queue_create(uint64_t ring, uint64_t ring_bytes, uint64_t write_index, uint64_t read_index, uint32_t type);
void queue_destroy(uint32_t id);
uint32_t event_create(uint32_t type, int auto_reset);
void event_destroy(uint32_t id);
void event_set(uint32_t id);
void event_reset(uint32_t id);
struct kfd_ioctl_wait_events_args;
void events_wait(struct kfd_ioctl_wait_events_args *asked);
uint64_t clock_ns(void);
