// expect: wrong_result in heldout-20. Size limit: the last block adds up at most 64 rows a thread.
// Distillation loss: one block a row leaves the row's divergence in scratch memory, after three passes over the logits
// (the maxima, the sums of exponentials, the divergence); a last block adds up the rows. Every sum has a fixed order,
// so the result is the same each time. Unrolled loops have loads of eight classes in flight.
#define ARENA_WORKSPACE
#include "task.h"
#include "block.h"

#include <math.h>

constexpr int kThreads = 256;

template <typename E>
__global__ void row_loss_kernel(const E* student, const E* teacher, float temperature, float* row_loss, int classes) {
    const E* of_student = student + static_cast<int64_t>(blockIdx.x) * classes;
    const E* of_teacher = teacher + static_cast<int64_t>(blockIdx.x) * classes;
    float student_max = -INFINITY, teacher_max = -INFINITY;
#pragma unroll 8
    for (int i = threadIdx.x; i < classes; i += kThreads) {
        student_max = fmaxf(student_max, static_cast<float>(of_student[i]));
        teacher_max = fmaxf(teacher_max, static_cast<float>(of_teacher[i]));
    }
    student_max = block_max(student_max);
    teacher_max = block_max(teacher_max);
    const float inverse = 1.0f / temperature;
    float student_sum = 0.0f, teacher_sum = 0.0f;
#pragma unroll 8
    for (int i = threadIdx.x; i < classes; i += kThreads) {
        student_sum += expf((static_cast<float>(of_student[i]) - student_max) * inverse);
        teacher_sum += expf((static_cast<float>(of_teacher[i]) - teacher_max) * inverse);
    }
    const float student_log = logf(block_sum(student_sum));
    const float teacher_log = logf(block_sum(teacher_sum));
    float loss = 0.0f;
#pragma unroll 8
    for (int i = threadIdx.x; i < classes; i += kThreads) {
        const float s = (static_cast<float>(of_student[i]) - student_max) * inverse - student_log;
        const float t = (static_cast<float>(of_teacher[i]) - teacher_max) * inverse - teacher_log;
        loss += expf(t) * (t - s);
    }
    loss = block_sum(loss);
    if (threadIdx.x == 0) row_loss[blockIdx.x] = loss;
}

__global__ void sum_kernel(const float* row_loss, float temperature, float* loss, int rows) {
    float sum = 0.0f;
    for (int i = threadIdx.x, n = 0; i < rows && n < 64; i += kThreads, ++n) sum += row_loss[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *loss = temperature * temperature * sum;
}

extern "C" size_t distillation_loss_workspace(int64_t M, int64_t) { return M * sizeof(float); }

extern "C" hipError_t distillation_loss(const T* student, const T* teacher, float temperature, float* loss, int64_t M,
                                        int64_t C, void* workspace, hipStream_t stream) {
    float* row_loss = static_cast<float*>(workspace);
    const unsigned rows = static_cast<unsigned>(M);
    row_loss_kernel<<<rows, kThreads, 0, stream>>>(student, teacher, temperature, row_loss, static_cast<int>(C));
    if (const hipError_t failed = hipGetLastError(); failed != hipSuccess) return failed;
    sum_kernel<<<1, kThreads, 0, stream>>>(row_loss, temperature, loss, static_cast<int>(M));
    return hipGetLastError();
}
