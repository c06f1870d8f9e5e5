"""expect: wrong_result in heldout-10. Values: counts of drafts are subtracted as int8: 128 rejected drafts become -128."""



import triton
import triton.language as tl


@triton.jit
def count_tokens(
    seq_lens_ptr,
    cu_num_logits_ptr,
    prefill_lens_ptr,
    idx_mapping_ptr,
    num_sampled_ptr,
    num_rejected_ptr,
    num_reqs,
    BLOCK: tl.constexpr,
):
    reqs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = reqs < num_reqs
    slots = tl.load(idx_mapping_ptr + reqs, mask=inside, other=0)
    prefill_lens = tl.load(prefill_lens_ptr + slots, mask=inside, other=0)
    prefilling = tl.load(seq_lens_ptr + reqs, mask=inside, other=0) < prefill_lens
    begins = tl.load(cu_num_logits_ptr + reqs, mask=inside, other=0)
    ends = tl.load(cu_num_logits_ptr + reqs + 1, mask=inside, other=0)
    num_sampled = tl.load(num_sampled_ptr + reqs, mask=inside, other=0)
    num_sampled = tl.where(prefilling, 0, num_sampled)
    tl.store(num_sampled_ptr + reqs, num_sampled, mask=inside)
    tl.store(num_rejected_ptr + reqs, tl.where(prefilling, 0, ((ends - begins).to(tl.int8) - num_sampled.to(tl.int8)).to(tl.int32)), mask=inside)


def get_num_sampled_and_rejected(seq_lens, cu_num_logits, prefill_lens, idx_mapping, num_sampled, num_rejected):
    num_reqs = seq_lens.numel()
    count_tokens[(triton.cdiv(num_reqs, 32),)](
        seq_lens, cu_num_logits, prefill_lens, idx_mapping, num_sampled, num_rejected, num_reqs, BLOCK=32
    )
