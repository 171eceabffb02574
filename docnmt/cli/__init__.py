"""The command line: one verb per job. A verb is loaded when it runs, torch when it needs it: --help is instant."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pkgutil import resolve_name

from docnmt.base.errors import DocnmtError, Interrupted
from docnmt.base.files import is_full
from docnmt.cli.parsing import parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
    try:
        resolve_name(f"docnmt.cli.{options.run}")(options)
        sys.stdout.flush()  # now, as a failure when Python exits would not be reported
    except DocnmtError as error:
        print(f"docnmt: {error}", file=sys.stderr)
        return 2
    except Interrupted as stopped:
        print(f"docnmt: {stopped}", file=sys.stderr)
        return 128 + stopped.signal
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a full disk, a missing folder: the system's own message says it
        where = error.filename or ("standard output" if is_full(error) else "error")  # files are named where written
        print(f"docnmt: {where}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("docnmt: interrupted", file=sys.stderr)
        return 130
    return 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    words = sys.argv[1:] if arguments is None else arguments
    root = parser(words[0] if words else "")
    options, left = root.parse_known_args(words)
    if left:
        # After an option argparse takes no more files, as in `translate MODEL --glossary terms.tsv FILE`.
        if "files" not in options or any(word.startswith("-") for word in left):
            root.error(f"unrecognized arguments: {' '.join(left)}")
        options.files = [file for file in options.files if file != "-"] + left
    return options
