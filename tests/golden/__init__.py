"""Golden records: what the toolkit gives today, through the doors that its users go through.

A record is a name and a fingerprint of what came out: of a file, a table, an answer. If one changes, behaviour has
changed, whatever was moved or renamed inside. Rewrite records only where a change is meant, in a commit of its own
that says why:

    python -m tests.golden.make                       all of them
    python -m tests.golden.make documents verbs       these files of records/
    python -m tests.golden.make --texts DIR           only the texts behind them, to compare revisions

A failing test names the records that differ and where it wrote the new texts; `--texts` in a checkout of an older
revision writes what they were.

Nothing of docnmt is imported but `docnmt` and its command line; the one exception stands in doors.py.
"""
