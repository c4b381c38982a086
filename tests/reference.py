"""Results printed by independent tools: name, model, inputs, outputs, peer, version, source."""

import json
from pathlib import Path

_FILE = json.loads((Path(__file__).parent / "reference_values.json").read_text())
CASES = {case["name"]: case for case in _FILE["cases"]}
DATASETS = _FILE["datasets"]
KNOWN_WRONG = _FILE["known_wrong"]


def points(case):
    """The measurements (x, y) of a regression case."""
    inputs = case["inputs"]
    if "dataset" in inputs:
        inputs = DATASETS[inputs["dataset"].split()[0]]
    return inputs["x"], inputs["y"]
