"""CARDS: known defects of graphics cards by NVIDIA and AMD, their drivers and torch's builds for them. Rows of the quirk table."""

from __future__ import annotations

from typing import Final

from app.base.sentence import say
from app.compat.planning.quirk import Quirk, Where

GTX16: Final = Where(("cuda",), names=r"\b(GTX 16[356]0|MX[45]50|CMP 30HX|T[456]00|T550|T1000|T1200|T2000)\b")

CARDS: Final[tuple[Quirk, ...]] = (
    Quirk(
        "cuda-flash", (Where(("cuda",), capability_before=(8, 0)), Where(("cuda",), capability_from=(12, 2))),
        say("quirk.cuda-flash", "Flash and cuDNN attention need a card with compute capability 8.0 to 12.1."),
        "torch's sdp_utils.cpp", r"Flash attention only supports gpu architectures|No available kernel\. Aborting execution",
        against=("kernels/flash", "kernels/cudnn", "attention/flash_attention_2"),
    ),
    Quirk(
        "cuda-efficient",
        (Where(("cuda",), capability_before=(8, 0), dtypes=("bfloat16", "float64")), Where(("cuda",), capability_before=(5, 0)),
         Where(("cuda",), capability_from=(12, 2))),
        say("quirk.cuda-efficient", "On cards before 8.0, the memory-efficient kernel supports only float16 and float32."),
        "torch's sdp_utils.cpp", against=("kernels/efficient",), fatal=False,
    ),
    Quirk(
        "cuda-gqa",
        (Where(("cuda",), torch_before="2.14", capability_before=(8, 0)),
         Where(("cuda", "rocm"), torch_before="2.14", masked=True)),
        say("quirk.cuda-gqa", "torch before 2.14 uses its slowest kernel for grouped heads here, so they are folded."),
        "transformers #48633; pytorch PR 181528", against=("gqa/native",), fatal=False,
    ),
    Quirk(
        "cuda-bf16", (Where(("cuda",), capability_before=(8, 0)),),
        say("quirk.cuda-bf16", "Cards before 8.0 emulate bfloat16, which is slower than float32, even though torch reports support."),
        "torch's source; diffusers #14129", against=("dtype/bfloat16",), fatal=False,
    ),
    Quirk(
        "rdna2-bf16", (Where(("rocm",), gfx="gfx(8|90[0-6]|10)"),),
        say("quirk.rdna2-bf16", "AMD cards before RDNA 3 have no bfloat16 arithmetic of their own, so float16 is faster."),
        "ComfyUI's should_use_bf16, #15006", against=("dtype/bfloat16",), fatal=False,
    ),
    Quirk(
        "pascal-fp16", (Where(("cuda",), capability_from=(6, 1), capability_before=(6, 2)),),
        say("quirk.pascal-fp16", "This card computes float16 slowly, at times far slower than float32."),
        "ComfyUI's and Forge's should_use_fp16", against=("dtype/float16",), fatal=False,
    ),
    Quirk(
        "maxwell-fp16", (Where(("cuda",), capability_before=(5, 3)),),
        say("quirk.maxwell-fp16", "This card has no float16 arithmetic, so it computes in float32."),
        "instant-ngp #87", against=("dtype/float16",), fatal=False,
    ),
    Quirk(
        "gtx16-fp16", (GTX16,),
        say("quirk.gtx16-fp16", "float16 convolutions give NaN and black pictures on cards of this family, so they compute in float32."),
        "pytorch #58123, #77955; A1111 PR 4407, #9916", against=("dtype/float16",),
    ),
    Quirk(
        "bias-overflow", (Where(("cuda", "rocm"), masked=True),),
        say("quirk.bias-overflow", "A mask over more than 2^32 pairs silently corrupts rows, so attention is computed in pieces."),
        "pytorch #187227", limits=(("pairs", 1 << 32),),
    ),
    Quirk(
        "wheel-arch", (Where(("cuda",), arch_missing=True),),
        say("quirk.wheel-arch", "This torch does not support this card. Run {hearth} repair; older cards get a cu126 build, of torch 2.14 at most."),
        "pytorch #172352, #190385", r"no kernel image is available|of compute capability \(CC\) \d", stops=True,
    ),
    Quirk(
        "uv-backend", (Where(("cuda",), capability_before=(7, 5)),),
        say("quirk.uv-backend", "Installers that check only the driver pick a torch that does not support this card, so Hearth names the build."),
        "uv #14742, #17236",
    ),
    Quirk(
        "cudnn-old-card", (Where(("cuda",), capability_before=(7, 5), cudnn_from="9.11"),),
        say("quirk.cudnn-old-card",
            "The cuDNN found here has no convolutions for this card, so torch computes them itself, which is slower. torch brings one that has "
            "them: take the other one's folder out of LD_LIBRARY_PATH or PATH, then run {hearth} repair."),
        "pytorch #162574; torch's Convolution.cpp", against=("convolution/library",),
    ),
    Quirk(
        "windows-spill", (Where(("cuda",), systems=("windows",)),),
        say("quirk.windows-spill",
            "On Windows a full card goes on in the computer's slow memory instead of reporting it, so torch may take no more than is free."),
        "NVIDIA KB 5490; A1111 #11063",
    ),
    Quirk(
        "fused-qkv-stride", (Where(("cuda", "rocm")),),
        say("quirk.fused-qkv-stride", "Fused kernels misread views of one interleaved tensor, so such views are copied unless their layout is known."),
        "TransformerEngine's get_qkv_layout",
    ),
    Quirk(
        "rocm-strided-v", (Where(("rocm",)),),
        say("quirk.rocm-strided-v", "AMD cards misread strided values, so they are made contiguous first."),
        "ROCm/pytorch #3230", against=("contiguous/no",),
    ),
    Quirk(
        "directml", (Where(("directml",)),),
        say("quirk.directml", "DirectML stopped at torch 2.4.1, which is too old for the models. Run {hearth} repair to install the build for the processor."),
        "DirectML #712", stops=True,
    ),
)  # fmt: skip
