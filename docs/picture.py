"""Take README's picture from the executed z/VM notebook, and renew the curves in notebook 23 that
are seen before it has run. Run by `make picture`.
"""

import json
import re
from base64 import b64decode, b64encode
from pathlib import Path

from nummodel.reports import notebook

executed = notebook.read(Path("report/11-zvm-processor-scaling.ipynb"))
bundles = [o.get("data", {}) for c in executed.cells for o in c.get("outputs", [])]
(fit,) = (b["image/png"] for b in bundles if b.get("text/plain", "").startswith("ITR against"))
Path("docs/zvm-scaling.png").write_bytes(b64decode(fit))


def still(names: dict) -> str:
    """The curves of notebook 23 as a small SVG, which stands in the notebook before it has run."""
    curves = []
    top = max(names["plan"](names["threads"], **names["now"] | names["together"]).X)
    for setup, colour in ((names["now"], "#0072B2"), (names["now"] | names["together"], "#D55E00")):
        X = names["plan"](names["threads"], **setup).X
        x, y = 500 * names["threads"] / max(names["threads"]), 200 * (1 - X / top)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        curves.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
    frame = '<rect x="-9" y="-9" width="518" height="218" fill="#fff" stroke="#ddd"/>'
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-9 -9 518 218" width="518">'
    return f"{head}{frame}{''.join(curves)}</svg>"


path = Path("notebooks/23-what-if.ipynb")
what_if = json.loads(path.read_text(encoding="utf-8"))
names: dict = {}
for cell in what_if["cells"]:
    if cell["cell_type"] == "code" and "explore(" not in "".join(cell["source"]):
        exec("".join(cell["source"]), names)
(shown,) = (c for c in what_if["cells"] if c["id"] == "still")
image = b64encode(still(names).encode()).decode()
shown["source"][-1] = re.sub(r"base64,[^)]*", f"base64,{image}", shown["source"][-1])
text = json.dumps(what_if, indent=1, ensure_ascii=False, sort_keys=True)
path.write_text(f"{text}\n", encoding="utf-8")
