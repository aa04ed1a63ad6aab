"""Speak a script and paint a picture through Gradio's client, with progress: pip install gradio_client."""

import sys
from pathlib import Path
from urllib.request import urlretrieve

from gradio_client import Client

address = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7860/"
client = Client(address, verbose=False)
wanted = {
    "/speak": {"text": "[S1] Good morning. [S2] Good morning! Did you sleep well?"},
    "/paint": {"prompt": "a small sea with a boat at sunset"},
}
for name, values in wanted.items():
    last = {}
    for last in client.submit(**values, api_name=name):
        if last["event"] == "step":
            print(f"\r{name}: {last['done']} of {last['total']}", end="")
    for file, url in zip(last["files"], last["urls"], strict=True):
        urlretrieve(f"{address}{url}", Path(file).name)  # the file itself is on Hearth's computer
        print(f"\n{last['event']}: {Path(file).name}")
