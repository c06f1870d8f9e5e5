// A HIP program with ordinary means: allocation, copies, fills, kernels with LDS, barriers and atomics, streams, a graph.
// Prints one line for each check, and ends with the number of those that failed.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <numeric>
#include <vector>

#define CHECK(call)                                                                           \
    do {                                                                                      \
        const hipError_t code = (call);                                                       \
        if (code != hipSuccess) {                                                             \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorName(code)); \
            return 100;                                                                       \
        }                                                                                     \
    } while (0)

constexpr int count = 10007, threads = 256;  // no multiple of a wave
constexpr int blocks = (count + threads - 1) / threads;

__global__ void add(const float* x, const float* y, float* sum, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = x[i] + y[i];
}

__global__ void reduce(const int* x, int* sums, int n) {
    __shared__ int held[threads];
    const int i = blockIdx.x * threads + threadIdx.x;
    held[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int step = threads / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) held[threadIdx.x] += held[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = held[0];
}

__global__ void tally(const int* x, int* counts, int n) {
    extern __shared__ int mine[];
    for (int i = threadIdx.x; i < 16; i += blockDim.x) mine[i] = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&mine[x[i] % 16], 1);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

__global__ void grow(int* cell) { *cell += 1; }

__global__ void triple(int* cell) { *cell = *cell * 3 % 1000003; }

__global__ void ask(int* lanes) { *lanes = warpSize; }

int failures = 0;
void said(const char* what, bool right) {
    std::printf("%-32s %s\n", what, right ? "right" : "WRONG");
    failures += !right;
}

int main() {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    hipDeviceProp_t facts;
    CHECK(hipGetDeviceProperties(&facts, 0));
    std::printf("%s, %s, %d multiprocessors, waves of %d\n", facts.name, facts.gcnArchName, facts.multiProcessorCount,
                facts.warpSize);

    std::vector<float> x(count), y(count), sum(count);
    std::vector<int> whole(count), sums(blocks), counts(16);
    for (int i = 0; i < count; i++) x[i] = 0.5f * i, y[i] = 1.0f - i, whole[i] = i * 7 % 1009;
    float *dx, *dy, *dsum;
    int *dwhole, *dsums, *dcounts, *cell;
    for (float** one : {&dx, &dy, &dsum}) CHECK(hipMalloc(one, count * sizeof(float)));
    CHECK(hipMalloc(&dwhole, count * sizeof(int)));
    CHECK(hipMalloc(&dsums, blocks * sizeof(int)));
    CHECK(hipMalloc(&dcounts, 16 * sizeof(int)));
    CHECK(hipMalloc(&cell, sizeof(int)));
    CHECK(hipMemcpy(dx, x.data(), count * sizeof(float), hipMemcpyHostToDevice));
    CHECK(hipMemcpy(dy, y.data(), count * sizeof(float), hipMemcpyHostToDevice));
    CHECK(hipMemcpy(dwhole, whole.data(), count * sizeof(int), hipMemcpyHostToDevice));

    add<<<blocks, threads>>>(dx, dy, dsum, count);
    CHECK(hipGetLastError());
    CHECK(hipMemcpy(sum.data(), dsum, count * sizeof(float), hipMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < count; i++) right &= sum[i] == x[i] + y[i];
    said("vector add", right);

    reduce<<<blocks, threads>>>(dwhole, dsums, count);
    CHECK(hipMemcpy(sums.data(), dsums, blocks * sizeof(int), hipMemcpyDeviceToHost));
    said("reduction in LDS with barriers",
         std::accumulate(sums.begin(), sums.end(), 0) == std::accumulate(whole.begin(), whole.end(), 0));

    CHECK(hipMemset(dcounts, 0, 16 * sizeof(int)));
    tally<<<blocks, threads, 16 * sizeof(int)>>>(dwhole, dcounts, count);
    CHECK(hipMemcpy(counts.data(), dcounts, 16 * sizeof(int), hipMemcpyDeviceToHost));
    std::vector<int> expected(16);
    for (int value : whole) expected[value % 16]++;
    said("atomics in LDS and memory", counts == expected);

    int lanes = 0;
    ask<<<1, 1>>>(cell);
    CHECK(hipMemcpy(&lanes, cell, sizeof lanes, hipMemcpyDeviceToHost));
    said("wave size in kernel and runtime", lanes == facts.warpSize);

    CHECK(hipMemset(dsum, 0x3F, count * sizeof(float)));
    CHECK(hipMemcpy(dx, dsum, count * sizeof(float), hipMemcpyDeviceToDevice));
    CHECK(hipMemcpy(sum.data(), dx, count * sizeof(float), hipMemcpyDeviceToHost));
    right = true;
    for (float one : sum) right &= reinterpret_cast<unsigned&>(one) == 0x3F3F3F3Fu;
    said("fill and copy on the device", right);

    hipStream_t first, second;
    hipEvent_t done;
    CHECK(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CHECK(hipEventCreate(&done));
    CHECK(hipMemset(cell, 0, sizeof(int)));
    CHECK(hipDeviceSynchronize());
    int ordered = 0;  // each stream's kernels change what the other's see, so every other order has another result
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) grow<<<1, 1, 0, first>>>(cell);
        CHECK(hipEventRecord(done, first));
        CHECK(hipStreamWaitEvent(second, done, 0));
        triple<<<1, 1, 0, second>>>(cell);
        CHECK(hipEventRecord(done, second));
        CHECK(hipStreamWaitEvent(first, done, 0));
        ordered = (ordered + 5) * 3 % 1000003;
    }
    CHECK(hipDeviceSynchronize());
    int grown = 0;
    CHECK(hipMemcpy(&grown, cell, sizeof grown, hipMemcpyDeviceToHost));
    said("two streams that wait by events", grown == ordered);

    hipGraph_t graph;
    hipGraphExec_t replayed;
    CHECK(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
    for (int i = 0; i < 8; i++) grow<<<1, 1, 0, first>>>(cell);
    CHECK(hipStreamEndCapture(first, &graph));
    CHECK(hipGraphInstantiateWithFlags(&replayed, graph, 0));
    for (int i = 0; i < 3; i++) CHECK(hipGraphLaunch(replayed, first));
    CHECK(hipStreamSynchronize(first));
    CHECK(hipMemcpy(&grown, cell, sizeof grown, hipMemcpyDeviceToHost));
    said("a graph of 8 kernels, three times", grown == ordered + 24);

    const std::size_t large = 8 << 20;
    std::vector<unsigned char> sent(large), back(large);
    for (std::size_t i = 0; i < large; i++) sent[i] = static_cast<unsigned char>(i * 31 >> 7);
    unsigned char* held;
    CHECK(hipMalloc(&held, large));
    CHECK(hipMemcpy(held, sent.data(), large, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(back.data(), held, large, hipMemcpyDeviceToHost));
    said("8 MiB there and back", sent == back);
    return failures;
}
