"""Take README's picture from the executed z/VM notebook; run by `make picture`."""

from base64 import b64decode
from pathlib import Path

from nummodel.reports import notebook

executed = notebook.read(Path("report/11-zvm-processor-scaling.ipynb"))
bundles = [o.get("data", {}) for c in executed.cells for o in c.get("outputs", [])]
(fit,) = (b["image/png"] for b in bundles if b.get("text/plain", "").startswith("ITR against"))
Path("docs/zvm-scaling.png").write_bytes(b64decode(fit))
