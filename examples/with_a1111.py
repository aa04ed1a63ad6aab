"""Paint as programs for A1111 ask for it: nothing to install."""

import base64
import json
import sys
from pathlib import Path
from urllib.request import Request, urlopen

address = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7860/"
asked = {"prompt": "a small sea with a boat at sunset", "seed": 7, "batch_size": 2}
request = Request(f"{address}sdapi/v1/txt2img", json.dumps(asked).encode(), {"Content-Type": "application/json"})
with urlopen(request) as answer:
    painted = json.load(answer)
for number, picture in enumerate(painted["images"], 1):
    Path(f"sea {number}.png").write_bytes(base64.b64decode(picture))
print(painted["info"])
