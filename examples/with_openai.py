"""Speak into a file and paint a picture through OpenAI's client: pip install openai."""

import base64
import sys
from pathlib import Path

from openai import OpenAI

address = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7860/"
client = OpenAI(base_url=f"{address}v1", api_key="none is needed on this computer")

# Models of OpenAI's names are taken for the best that is installed.
speech = client.audio.speech.create(model="tts-1", voice="alloy", input="Good morning. Did you sleep well?", response_format="mp3")
speech.write_to_file("morning.mp3")

picture = client.images.generate(model="dall-e-3", prompt="a small sea with a boat at sunset", response_format="b64_json")
Path("sea.png").write_bytes(base64.b64decode(picture.data[0].b64_json))
