// The runtime in one translation unit, so that one compiler call makes one object file.
#include "api.cpp"
#include "launch.cpp"
#include "memory.cpp"
#include "scheduler.cpp"
#include "wave.cpp"
#include "guarded.cpp"
