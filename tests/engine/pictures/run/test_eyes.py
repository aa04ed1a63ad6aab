"""Test what looks at pictures for the page: loaded by the plan in the engine's session, beside transformers itself, out of the way of what makes something."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.florence2 import Florence2ForConditionalGeneration
from transformers.models.sam import SamConfig, SamModel, SamProcessor
from transformers.models.sam.image_processing_pil_sam import SamImageProcessorPil

from app.compat.planning.types import Choice
from app.engine.jobs.control import Control
from app.engine.jobs.events import Event, Failed, Finished, Loading, Unloaded
from app.engine.jobs.request import PictureRequest
from app.engine.jobs.tasks import Describe, Pick
from app.engine.models.catalog import BY_ID
from app.engine.models.model import describe_need
from app.engine.models.picture_readers import DESCRIBER, PICKER
from app.engine.pictures.families import florence_file, sam_file
from app.engine.session.loaded_models import count_threads
from app.engine.session.session import Session
from tests.support import open_session
from tests.support.tiny_ears import place_for
from tests.support.tiny_readers import save_florence, save_sam

session = open_session.session
SIDE = 128


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.effect_noise((96, 60), 90).convert("RGB").save(tmp_path / "seen.png")
    return tmp_path / "seen.png"


def run(session: Session, task: Pick | Describe | PictureRequest, job: Path) -> list[Event]:
    job.mkdir(exist_ok=True)
    return list(session.run(task, Choice(), Control(), job, lambda *_: None))


def pick(session: Session, picture: Path, x: float = 0.25, y: float = 0.5) -> Image.Image:
    end = run(session, Pick(PICKER.id, str(picture), x, y), picture.parent / "job")[-1]
    assert isinstance(end, Finished), end
    with Image.open(end.files[0]) as found:
        return found.copy()


def test_a_point_finds_what_transformers_finds(session: Session, picture: Path) -> None:
    folder = save_sam(place_for(session.home, PICKER.id))
    found = pick(session, picture)
    plain = SamModel.from_pretrained(folder).eval()
    size = {"longest_edge": SIDE}
    processor = SamProcessor(SamImageProcessorPil(size=size, pad_size={"height": SIDE, "width": SIDE}, mask_pad_size=size, mask_size=size))
    with Image.open(picture) as opened, torch.no_grad():
        given = processor(opened.convert("RGB"), input_points=[[[0.25 * 96, 0.5 * 60]]], return_tensors="pt")
        made = plain(given["pixel_values"], given["input_points"].float())
    masks = processor.image_processor.post_process_masks(
        made.pred_masks, given["original_sizes"], given["reshaped_input_sizes"], pad_size={"height": SIDE, "width": SIDE}
    )
    right = masks[0][0, int(made.iou_scores[0, 0].argmax())].numpy()
    assert found.mode == "L" and found.size == (96, 60) and 0 < right.mean() < 1
    assert (np.asarray(found) == 255 * right).mean() > 0.995


def test_a_picture_is_looked_at_once(session: Session, picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_sam(place_for(session.home, PICKER.id))
    looked = list[Path]()
    look = sam_file.Picker._look
    monkeypatch.setattr(sam_file.Picker, "_look", lambda self, path: (looked.append(path), look(self, path))[1])
    first = pick(session, picture)
    again = run(session, Pick(PICKER.id, str(picture), 0.8, 0.1), picture.parent / "job")
    assert not any(isinstance(each, Loading) for each in again) and looked == [picture]
    assert list(pick(session, picture).get_flattened_data()) == list(first.get_flattened_data()) and looked == [picture]
    other = picture.with_name("other.png")
    Image.new("RGB", (20, 60), "teal").save(other)
    assert pick(session, other).size == (20, 60) and looked == [picture, other]


def test_it_leaves_before_something_is_made(session: Session, picture: Path) -> None:
    save_sam(place_for(session.home, PICKER.id))
    pick(session, picture)
    made = run(session, PictureRequest("a boat", model="sd15"), picture.parent / "made")
    assert [each.model for each in made if isinstance(each, Unloaded)] == [PICKER.id]
    assert isinstance(made[-1], Failed) and made[-1].cure == "get:sd15"


def test_without_the_model_it_is_offered(session: Session, picture: Path) -> None:
    end = run(session, Pick(PICKER.id, str(picture), 0.5, 0.5), picture.parent / "job")[-1]
    assert isinstance(end, Failed) and end.cure == "get:slimsam"


def test_what_a_picture_shows_is_what_transformers_says(session: Session, picture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(florence_file, "TOKENS_MOST", 12)
    folder = save_florence(place_for(session.home, DESCRIBER.id))
    end = run(session, Describe(DESCRIBER.id, str(picture)), picture.parent / "job")[-1]
    assert isinstance(end, Finished), end
    plain, tokenizer = Florence2ForConditionalGeneration.from_pretrained(folder).eval(), Tokenizer.from_file(str(folder / "tokenizer.json"))
    size = {"height": florence_file.SIDE, "width": florence_file.SIDE}
    see = CLIPImageProcessorPil(
        size=size, do_center_crop=False, resample=3, image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225]
    )
    image, begin, last = (tokenizer.token_to_id(each) for each in ("<image>", "<s>", "</s>"))
    asked = torch.tensor([[*[image] * 577, begin, *tokenizer.encode("Describe in detail what is shown in the image.").ids, last]])
    how = {"num_beams": 3, "no_repeat_ngram_size": 3, "forced_bos_token_id": begin, "max_new_tokens": florence_file.TOKENS_MOST}
    with Image.open(picture) as opened:
        made = plain.generate(input_ids=asked, pixel_values=see(opened.convert("RGB"), return_tensors="pt")["pixel_values"], **how)
    told = Path(end.files[0]).read_text("utf-8")
    assert told == florence_file.clean(tokenizer.decode(made[0].tolist())) and len(told) > 5


def test_only_what_can_be_painted_is_left_of_the_words() -> None:
    clean = florence_file.clean
    assert clean("The image shows a red boat. The sea is calm. Behind it") == "A red boat. The sea is calm."
    assert clean("In this image, we can see two cats") == "Two cats"
    assert clean(" a  street with The image shows in it ") == "A street with The image shows in it" and clean("") == ""


def test_its_facts_are_those_of_its_settings() -> None:
    """SlimSAM's own settings, at full size and without weights."""
    with torch.device("meta"):
        model = SamModel(SamConfig(vision_config={"hidden_size": 168, "mlp_dim": 696}))
    need = describe_need(BY_ID[PICKER.id])
    assert sum(each.parameters for each in need.parts) == sum(each.numel() for each in model.parameters())
    assert need.masked and need.queries == need.keys == 64 * 64 and need.heads * need.head_dim == 168
    assert count_threads(need, "seeing") == count_threads(need) * torch.get_num_threads() or torch.get_num_threads() == 1
