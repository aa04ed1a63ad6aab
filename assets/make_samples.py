"""Make the starter painter's samples with Hearth, a contact sheet: python assets/make_samples.py. The voice's are made by its training's --listen."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))

from app.__main__ import main as hearth
from training.pictures.captions import say
from training.pictures.pack import EXAMPLES
from training.pictures.scenes import scene

STARTER = Path(__file__).parent / "starter"
ACROSS, DOWN = 6, 2
FIRST_SEED = 80_000_000  # neither trained on nor judged


def made(folder: Path, *words: str) -> None:
    if hearth([*words, "--home", str(folder / "home")]) != 0:
        raise SystemExit(f"not made: {' '.join(words)}")


def main() -> None:
    count = ACROSS * DOWN - len(EXAMPLES)
    prompts = [*EXAMPLES, *(say(scene(FIRST_SEED + i, held_out=True), FIRST_SEED + i) for i in range(count))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, prompt in enumerate(prompts):
            made(folder, "paint", prompt, "--seed", str(i), "-o", str(folder / f"{i}.png"))
        pictures = [Image.open(folder / f"{i}.png").convert("RGB") for i in range(len(prompts))]
        width, height = pictures[0].size
        sheet = Image.new("RGB", (width * ACROSS, height * DOWN))
        for i, picture in enumerate(pictures):
            sheet.paste(picture, (i % ACROSS * width, i // ACROSS * height))
        sheet.save(STARTER / "painter" / "contact.jpg", quality=84)


if __name__ == "__main__":
    main()
