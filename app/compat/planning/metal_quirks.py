"""METAL: known defects of Metal, which computes on a Mac's own graphics. Rows of the quirk table."""

from __future__ import annotations

from typing import Final

from app.base.sentence import say
from app.compat.planning.quirk import Quirk, Where

_HALF: Final = ("float16", "bfloat16")

METAL: Final[tuple[Quirk, ...]] = (
    Quirk(
        "mps-gqa-abort", (Where(("mps",), torch_before="2.7"),),
        say("quirk.mps-gqa-abort", "Grouped heads crash Metal before torch 2.7, so they are folded."),
        "pytorch #149132, PR 149147", r"mps_matmul.*incompatible dimensions|Failed to infer result type",
        against=("gqa/native",),
    ),
    Quirk(
        "mps-decode-oob", (Where(("mps",), torch_from="2.8", torch_before="2.11", dtypes=_HALF, paths=("vector",)),),
        say("quirk.mps-decode-oob",
            "Metal's decoding kernel of torch 2.8 to 2.10 reads past its buffer in half precision, "
            "so Hearth computes attention itself."),
        "pytorch #174861, PR 174945", against=("kernels/math",),
    ),
    Quirk(
        "mps-q-stride", (Where(("mps",), torch_from="2.8", torch_before="2.9", paths=("vector",)),),
        say("quirk.mps-q-stride", "Metal in torch 2.8 misreads transposed queries, so they are made contiguous first."),
        "pytorch #163597, PR 163598", against=("contiguous/no",),
    ),
    Quirk(
        "mps-batch-stride", (Where(("mps",), torch_from="2.8", torch_before="2.12", paths=("vector",)),),
        say("quirk.mps-batch-stride", "Metal in torch 2.8 to 2.11 misreads permuted tensors in a batch, so they are made contiguous first."),
        "pytorch #181133, PR 181151", against=("contiguous/no",),
    ),
    Quirk(
        "mps-causal-leak", (Where(("mps",), torch_before="2.13", dtypes=_HALF),),
        say("quirk.mps-causal-leak",
            "Metal before torch 2.13 lets a query see up to three later keys in half precision, "
            "so the causal mask is passed as a tensor."),
        "pytorch #195910", against=("explicit_mask/no",),
    ),
    Quirk(
        "mps-value-dim", (Where(("mps",), torch_before="2.12"),),
        say("quirk.mps-value-dim", "Metal before torch 2.12 gives wrong results if values and queries differ in width, so values are padded."),
        "pytorch #176767, PR 176843", against=("pad_value/no",),
    ),
    Quirk(
        "mps-placeholder", (Where(("mps",), paths=("graph",)),),
        say("quirk.mps-placeholder", "A broadcast mask can crash Metal, so masks are expanded to full size."),
        "InvokeAI #7887; pytorch PR 148239", r"Placeholder shape mismatches", against=("expand_mask/no",),
    ),
    Quirk(
        "mps-4gib", (Where(("mps",), system_before="15.4", paths=("graph",)),),
        say("quirk.mps-4gib", "Arrays over 4 GiB crash this macOS, so scores are computed in pieces."),
        "pytorch #149261, #84039, #134177",
        r"total bytes of NDArray > 2\*\*32|product of dimension sizes > 2\*\*31", limits=(("bytes", 1 << 32),),
    ),
    Quirk(
        "mps-buffer", (Where(("mps",), paths=("graph",)),),
        say("quirk.mps-buffer", "Metal refuses a buffer larger than its memory, so scores are computed in pieces."),
        "diffusers #9972", r"Invalid buffer size", limits=(("free", 0),),
    ),
    Quirk(
        "mps-int32", (Where(("mps",), paths=("graph",)),),
        say("quirk.mps-int32", "Metal counts in 32 bits and silently corrupts larger arrays, so a piece holds at most 2^30 scores."),
        "pytorch #179352, #197636", limits=(("elements", 1 << 30),),
    ),
    Quirk(
        "mps-long-k", (Where(("mps",), names=r"\bM[12]\b", paths=("graph",)),),
        say("quirk.mps-long-k", "M1 and M2 get sums of 32767 or more numbers wrong, so keys are processed 16384 at a time."),
        "pytorch #195163, #177116, #193487, PR 195012", limits=(("keys", 16384),),
    ),
    Quirk(
        # However many keys there are: PR 190791's 3068 are the queries that it takes at a time. In float16, before torch 2.10: mps-fp16-black.
        "mps-half-softmax", (Where(("mps",), dtypes=("bfloat16",), paths=("graph",)),),
        say("quirk.mps-half-softmax",
            "Metal's graph of products rounds scores to bfloat16, which puts attention up to ten times as far off as Metal's own kernels do, "
            "so scores are computed in float32."),
        "pytorch PRs 190791, 165961; computed in docs/tried.md", against=("score_dtype/kernel",),
    ),
    Quirk(
        "mps-quadratic",
        (Where(("mps",), paths=("graph",)),),
        say("quirk.mps-quadratic", "Metal stores all scores of this attention at once, so it is computed in pieces."),
        "torch's macOS wheels; pytorch PRs 181575, 191794", against=("chunk_q/whole",), fatal=False,
    ),
    Quirk(
        "mps-fp16-black", (Where(("mps",), torch_before="2.10", dtypes=("float16",), paths=("graph",)),),
        say("quirk.mps-fp16-black",
            "Metal before torch 2.10 rounds large float16 scores to infinity, which turns pictures black, so scores are computed in float32."),
        "pytorch #160841, PR 165961; ComfyUI #4799", against=("score_dtype/kernel",),
    ),
    Quirk(
        "masked-rows", (Where(("mps",), torch_before="2.9", paths=("graph",)), Where(("mps",), paths=("vector", "prefill"))),
        say("quirk.masked-rows",
            "A row whose keys are all masked becomes NaN on Metal, in its graph of products before torch 2.9, so such rows are set to zero."),
        # The kernel for few queries divides by a sum that is NaN, the difference of two infinities, where it asks whether it is 0.
        "pytorch #156707, PR 157727, #167515; dia #251, #252", against=("zero_masked_rows/no",),
    ),
    Quirk(
        "mps-baddbmm", (Where(("mps",)),),
        say("quirk.mps-baddbmm", "Attention slicing in diffusers gives NaN on Metal, so Hearth uses its own chunks instead."),
        "diffusers #11229, #14438; pytorch #187521",
    ),
    Quirk(
        "mps-leak", (Where(("mps",), system_from="15", torch_before="2.8", paths=("graph",)),),
        say("quirk.mps-leak", "From macOS 15 on float32 attention loses memory in torch before 2.8, so Hearth computes attention itself."),
        "pytorch #152344, PR 152371", against=("kernels/math",), fatal=False,
    ),
    Quirk(
        "mps-allocator",
        (Where(("mps",), torch_before="2.13", paths=("vector",)), Where(("mps",), torch_before="2.14", system_before="15", paths=("vector",))),
        say("quirk.mps-allocator",
            "Metal keeps memory of every size it was asked for, and here torch would copy all keys for each new row of speech, "
            "so Hearth computes such rows itself, in pieces of one size."),
        "pytorch #132596, #152550, PR 188045", against=("kernels/math",), limits=(("keys", 1024),), fatal=False,
    ),
    Quirk(
        "mps-slow-path", (Where(("mps",), system_before="15"),),
        say("quirk.mps-slow-path", "Before macOS 15 Metal's fused attention takes only contiguous tensors, so they are made contiguous first."),
        "torch's attention.cpp", against=("contiguous/no",), fatal=False,
    ),
    Quirk(
        "mps-vector-mask", (Where(("mps",), torch_from="2.8", torch_before="2.13", masked=True, paths=("vector",)),),
        say("quirk.mps-vector-mask", "Metal before torch 2.13 reads masks shared by several heads wrongly in short calls, so masks are expanded to full size."),
        "pytorch PR 184180", against=("expand_mask/no",),
    ),
    Quirk(
        "mps-threads", (Where(("mps",)),),
        say("quirk.mps-threads", "Two threads that use Metal at once can crash it, so one thread of Hearth does all its work."),
        "pytorch #197805, PR 197836", r"command encoder is already encoding|addCompletedHandler:|MTLCommandBufferStatusCommitted",
    ),
    Quirk(
        "mps-scalar-view", (Where(("mps",), torch_before="2.14"),),
        say("quirk.mps-scalar-view",
            "Metal takes the first number of a list on the processor where another was meant, so Hearth hands over copies of such numbers."),
        "pytorch #187117, #191929, PR 187229",
    ),
    Quirk(
        "mps-conv-weight", (Where(("mps",), torch_before="2.14", system_from="15"),),
        say("quirk.mps-conv-weight", "Metal misreads convolution weights that are part of a larger tensor; Hearth's models have none such."),
        "pytorch #192212, PR 192303",
    ),
    Quirk(
        "mps-conv-chunk", (Where(("mps",), torch_from="2.9"),),
        say("quirk.mps-conv-chunk",
            "Metal can misread a convolution's input that is part of a larger tensor, from the second picture of a batch on; "
            "Hearth's models convolve whole tensors, one picture at a time."),
        "pytorch #169342",
    ),
    Quirk(
        "mps-out-slice", (Where(("mps",), system_before="15", torch_before="2.14"),),
        say("quirk.mps-out-slice", "Metal on macOS 14 does not write a product into the middle of a tensor, so Hearth writes only into its beginning."),
        "pytorch PR 193385",
    ),
    Quirk(
        "mps-graph-26", (Where(("mps",), system_from="26", system_before="27"),),
        say("quirk.mps-graph-26",
            "Some models compute wrongly on Metal since macOS 26, so the self-test compares a small one with the processor."),
        "actions/runner-images #14380; pytorch PR 181742",
    ),
    Quirk(
        "mps-graph-27", (Where(("mps",), system_from="27", torch_before="2.13"),),
        say("quirk.mps-graph-27", "SDXL paints noise on macOS 27 with torch before 2.13. Run {hearth} repair to update torch."),
        "pytorch #187280",
    ),
    Quirk(
        "mps-device-map", (Where(("mps",)),),
        say("quirk.mps-device-map", "A device map to Metal can lose weights, so models are loaded on the processor and then moved."),
        "pytorch #189690; diffusers #13227, #14556",
    ),
    Quirk(
        "mps-stride-zero", (Where(("mps",), torch_from="2.8", torch_before="2.9"),),
        say("quirk.mps-stride-zero",
            "Linear layers crash Metal in torch 2.8 if their input is one tensor shown several times. Run {hearth} repair to update torch."),
        "pytorch #167154", r"buffer is not large enough\. Must be \d+ bytes",
    ),
    Quirk(
        "mps-m5-linear", (Where(("mps",), names=r"\bM5\b", torch_before="2.13"),),
        say("quirk.mps-m5-linear",
            "Linear layers in half precision give other numbers at each call on an M5 with torch before 2.13. Run {hearth} repair to update torch."),
        "pytorch #180776, PRs 181466, 181504",
    ),
    Quirk(
        "mps-large-product", (Where(("mps",), names=r"\bM[12]\b", paths=("graph",)),),
        say("quirk.mps-large-product",
            "M1 and M2 leave a band of NaN in a product of matrices that take more than 2 GiB together; a piece of Hearth's scores takes at most 1."),
        "Metal.jl #381",
    ),
    Quirk(
        "mps-bf16", (Where(("mps",), system_before="14"),),
        say("quirk.mps-bf16", "Metal supports bfloat16 from macOS 14 on."),
        "pytorch #141864, PR 162921", r"MPS BFloat16 is only supported on MacOS 14", against=("dtype/bfloat16",),
    ),
    Quirk(
        "mps-fp64", (Where(("mps",)),),
        say("quirk.mps-fp64", "Metal has no float64."),
        "torch's macOS wheels", r"Cannot convert a MPS Tensor to float64", against=("dtype/float64",),
    ),
    Quirk(
        "mps-fallback", (Where(("mps",)),),
        say("quirk.mps-fallback", "Operations that Metal lacks run on the processor instead of failing."),
        "pytorch #77764", r"not current(ly)? implemented for the MPS device",
        sets=(("PYTORCH_ENABLE_MPS_FALLBACK", "1"),),
    ),
    Quirk(
        "mps-watermark", (Where(("mps",)),),
        say("quirk.mps-watermark", "A Mac starts swapping long before torch stops, so torch's limit is set to the size that Metal recommends."),
        "torch's MPS environment variables", r"invalid low watermark ratio",
        # Both, because the default low mark is above the new high one.
        sets=(("PYTORCH_MPS_HIGH_WATERMARK_RATIO", "1.0"), ("PYTORCH_MPS_LOW_WATERMARK_RATIO", "0.9")),
    ),
    Quirk(
        "mps-memory", (Where(("mps",)),),
        say("quirk.mps-memory", "torch miscounts Metal's free memory, so Hearth subtracts the driver's memory from Metal's recommended size."),
        "torch's source",
    ),
    Quirk(
        "mps-oom-type", (Where(("mps",)),),
        say("quirk.mps-oom-type", "Metal reports full memory as an ordinary error, so Hearth recognises it by its text."),
        "ComfyUI and InvokeAI threads", r"MPS backend out of memory",
    ),
    Quirk(
        "conv-65536", (Where(("mps",), system_before="15.1"),),
        say("quirk.conv-65536", "Long sound does not fit in one convolution on this macOS, so it is decoded 127 frames at a time."),
        "pytorch #140726; dia #39", r"Output channels > 65536",
    ),
)  # fmt: skip
