"""A second judge of speech: Moonshine tiny, a neural recogniser with an open vocabulary, from the packages that carry its weights.

npm's @moonshine-ai/moonshine-js holds dist/model/tiny/quantized/*.onnx, PyPI's useful-moonshine-onnx moonshine_onnx/assets/tokenizer.json, and
onnxruntime runs them: put the three files into one folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.engine.speech.text import written_out

from . import sentences

LAYERS, HEADS, HEAD_SIZE = 6, 8, 36
BEGIN, END = 1, 2
TOKENS_A_SECOND = 6.5
"""A recogniser that says more than that repeats itself."""
KINDS = tuple((side, part) for side in ("decoder", "encoder") for part in ("key", "value"))


class Moonshine:
    """Hears words in 16 kHz sound, as judge.Judge does."""

    def __init__(self, folder: Path) -> None:
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        options = SessionOptions()
        options.intra_op_num_threads = 1
        self._encoder, self._decoder = (
            InferenceSession(folder / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
            for name in ("encoder_model", "decoder_model_merged")
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def listen(self, samples: NDArray[np.float32]) -> list[str]:
        """Return the words recognised, written out as a script is."""
        padded = np.concatenate([np.zeros(3200, np.float32), samples, np.zeros(3200, np.float32)])[None]
        heard = self._encoder.run(None, {"input_values": padded})[0]
        past = {
            f"past_key_values.{layer}.{side}.{part}": np.zeros((0, HEADS, 1, HEAD_SIZE), np.float32)
            for layer in range(LAYERS)
            for side, part in KINDS
        }
        tokens = [BEGIN]
        for step in range(int(padded.size / 16000 * TOKENS_A_SECOND)):
            given = {"input_ids": [tokens[-1:]], "encoder_hidden_states": heard, "use_cache_branch": [step > 0]}
            scores, *now = self._decoder.run(None, {**given, **past})
            tokens.append(int(scores[0, -1].argmax()))
            if tokens[-1] == END:
                break
            past = {name: new if step == 0 or ".decoder." in name else past[name] for name, new in zip(past, now, strict=True)}
        said = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return sentences.key(written_out.write_out(said)).split()
