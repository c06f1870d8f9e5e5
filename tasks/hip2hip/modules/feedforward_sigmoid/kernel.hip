// Two stacked inputs through a perceptron: each input has its own first layer into one float32 scratch matrix,
// which is the stacking; then one second layer with the sigmoid. Three matrix products in all.
#define ARENA_WORKSPACE
#include "task.h"
#include "product.h"

#include <math.h>

struct Sigmoid {
    __device__ float operator()(float value) const { return 1.0f / (1.0f + expf(-value)); }
};

extern "C" size_t feedforward_sigmoid_workspace(int64_t A, int64_t B, int64_t, int64_t H, int64_t) {
    return (A + B) * H * sizeof(float);
}

extern "C" hipError_t feedforward_sigmoid(const T* first, const T* second, const T* weight1, const T* bias1,
                                          const T* weight2, const T* bias2, T* y, int64_t A, int64_t B, int64_t I,
                                          int64_t H, int64_t O, void* workspace, hipStream_t stream) {
    float* hidden = static_cast<float*>(workspace);
    hipError_t status = linear(first, weight1, bias1, hidden, A, H, I, Relu(), stream);
    if (status == hipSuccess) status = linear(second, weight1, bias1, hidden + A * H, B, H, I, Relu(), stream);
    if (status == hipSuccess) status = linear(hidden, weight2, bias2, y, A + B, O, H, Sigmoid(), stream);
    return status;
}
