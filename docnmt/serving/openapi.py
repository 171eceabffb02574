"""The API as OpenAPI describes it (static/openapi.json) with a server's own values filled in, and as a page for people.

A test asks a server for everything in the description and compares its answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docnmt.serving.web import Settings
from docnmt.version import __version__

Schema = dict[str, Any]
_FILE = Path(__file__).parent / "static" / "openapi.json"


def description(settings: Settings, models: list[str]) -> Schema:
    found: Schema = json.loads(_FILE.read_text(encoding="utf-8"))
    found["info"]["version"] = __version__
    schemas = found["components"]["schemas"]
    schemas["LongText"]["maxLength"] = settings.characters
    schemas["LongTexts"]["maxItems"] = settings.strings
    schemas["Alternatives"]["maximum"] = settings.alternatives
    schemas["Model"]["enum"] = models
    return found


# ---- for people ----

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The API of docnmt</title>
<link rel="icon" href="static/icon.svg">
<link rel="stylesheet" href="static/style.css">
<link rel="stylesheet" href="static/docs.css">
</head>
<body>
<header class="top"><div><span class="brand">docnmt</span> <a href="./">Translate</a></div></header>
<main>
<h1>The API</h1>
{main}
</main>
</body>
</html>
"""


def as_page(described: Schema) -> str:
    """All of the description on one plain page."""
    info = described["info"]
    parts = [
        f"<p>{escape(info['description'])}</p>",
        f'<p class="dim">Version {escape(info["version"])}. For programs: <a href="openapi.json">openapi.json</a>. '
        'What is wrong is told as <code>{"error": "..."}</code>.</p>',
    ]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            parts += _operation(f"{method.upper()} {path}", operation, described)
    return _PAGE.format(main="\n".join(parts))


def _operation(name: str, operation: Schema, described: Schema) -> Iterator[str]:
    yield f"<section><h2><code>{escape(name)}</code></h2><p>{escape(operation['description'])}</p>"
    content = operation.get("requestBody", {}).get("content", {})
    for kind, body in list(content.items())[:1]:
        others = f", or as {', '.join(list(content)[1:])}" if len(content) > 1 else ""
        yield f"<h3>Parameters</h3><p>As {escape(kind + others)}:</p>"
        yield _table(body["schema"], described)
    answer = operation["responses"]["200"]["content"].get("application/json")
    if answer:
        schema = _resolved(answer["schema"], described)
        many = schema.get("type") == "array"
        yield f"<h3>Answer</h3><p>{'A list of objects' if many else 'An object'} with</p>"
        yield _table(_resolved(schema["items"], described) if many else schema, described)
    told = [
        f"<li><b>{status}</b> {escape(_resolved(response, described)['description'])}</li>"
        for status, response in operation["responses"].items()
        if status != "200"
    ]
    yield f"<h3>Other answers</h3><ul>{''.join(told)}</ul></section>"


def _table(schema: Schema, described: Schema) -> str:
    rows = []
    for name, value in schema["properties"].items():
        needed = "" if name in schema["required"] else ' <span class="dim">(may be left out)</span>'
        told = escape(value.get("description", ""))
        rows.append(
            f"<tr><th scope=row><code>{escape(name)}</code>{needed}</th>"
            f"<td>{escape(_kind(value, described))}</td><td>{told}</td></tr>"
        )
    head = "<tr><th scope=col>name</th><th scope=col>what it is</th><th scope=col></th></tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _resolved(schema: Schema, described: Schema) -> Schema:
    found: Any = {**schema}
    for part in schema.get("allOf", []):
        found = _resolved(part, described) | found
    if "$ref" in schema:
        found = described
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
    return dict(found)


def _kind(value: Schema, described: Schema) -> str:
    """In words: what type, and within which limits."""
    schema = _resolved(value, described)
    for name in ("oneOf", "anyOf"):
        if name in schema:
            return ", or ".join(_kind(each, described) for each in schema[name])
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = " or ".join(kind)
    if kind == "array":
        kind = f"list of ({_kind(schema['items'], described)})"
    limits = {"maxLength": "at most {:,} characters", "maxItems": "at most {:,}", "maximum": "at most {:,}"}
    told = [text.format(schema[name]) for name, text in limits.items() if name in schema]
    if "default" in schema:
        told.append(f"default {json.dumps(schema['default'])}")
    return ", ".join([kind, *told])
