"""What several references share: paged caches, ragged batches, packed weights, routing, quantization, random bits.

Plain PyTorch for references and `make_inputs`; a task's content hash covers the modules that its reference imports.
"""
