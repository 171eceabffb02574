"""Writes the records anew, or the texts behind them. `tests.golden` says when."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.golden import corpora, documents, exchanges, models, verbs  # noqa: F401
from tests.golden.record import RECORDS, SOURCES, fingerprint, known, machine, write_texts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.make")
    parser.add_argument("sources", nargs="*", metavar="NAME", help=f"of {', '.join(SOURCES)}; default all")
    parser.add_argument("--texts", default="", metavar="DIR", help="write the texts, not the records")
    options = parser.parse_args()
    for name in options.sources or SOURCES:
        source = SOURCES[name]
        records = {key: value for case in source.cases or ("",) for key, value in source.records(case).items()}
        if options.texts:
            print(write_texts(Path(options.texts), name, records))
            continue
        made = {key: fingerprint(value) for key, value in sorted(records.items())}
        changed = [key for key in made | known(name)["records"] if made.get(key) != known(name)["records"].get(key)]
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(each)}" for key, each in made.items())
        text = f'{{"machine": {json.dumps(machine())},\n"records": {{\n{lines}\n}}}}\n'
        (RECORDS / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"{name}: {len(made)} records, {len(changed)} changed {' '.join(sorted(changed)[:8])}")


if __name__ == "__main__":
    main()
