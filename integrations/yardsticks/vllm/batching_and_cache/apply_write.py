"""vLLM's staged writes to one tensor."""

from vllm.v1.worker.gpu.buffer_utils import _WRITE_BLOCK_SIZE, _apply_write_kernel, _num_write_chunks


def apply_write(contents, rows, starts, cu_lens, state):
    writes = rows.shape[0]
    _apply_write_kernel[(writes, _num_write_chunks(contents.shape[0] // writes))](
        state,
        state.stride(0),
        rows,
        starts,
        contents,
        cu_lens[1:],
        None,
        BLOCK_SIZE=_WRITE_BLOCK_SIZE,
        MULTI_GROUP=False,
    )
