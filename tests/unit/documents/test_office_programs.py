"""Documents that real programs wrote, and whether these programs can read what comes back."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from docnmt.documents import read_document
from tests.office_files import docx, odt, shouted, texts

PAGE = """<html><head><title>Le grand voyage</title></head><body>
<h1>Le <i>grand</i> voyage</h1>
<p>Voici un <b>texte gras</b> avec un <a href="http://example.org/">lien utile</a>.<br>Nouvelle ligne &amp; fin.</p>
<ul><li>Premier point</li><li>Deuxième <u>point</u></li></ul>
<table border=1><tr><th>Nom</th><th>Valeur</th></tr><tr><td>Pomme</td><td>12</td></tr></table>
<pre>code(ici)</pre></body></html>"""
LINES = [
    "Le grand voyage",
    "Voici un texte gras avec un lien utile. Nouvelle ligne & fin.",
    "Premier point",
    "Deuxième point",
    "Nom",
    "Valeur",
    "Pomme",
]


def office(folder: Path, file: Path, kind: str) -> Path:
    """What LibreOffice makes of a file."""
    program = shutil.which("soffice")
    if program is None:
        pytest.skip("LibreOffice is not installed")
    profile = f"-env:UserInstallation=file://{folder / 'profile'}"
    out = folder / "out"
    flags = ["--headless", profile, "--convert-to", kind, "--outdir", str(out)]
    filters = ["--infilter=HTML (StarWriter)"] if file.suffix == ".html" else []
    subprocess.run([program, *flags, *filters, str(file)], check=True, capture_output=True, timeout=120)
    return out / f"{file.stem}.{kind.split(':')[0]}"


def plain_text(folder: Path, file: Path) -> str:
    return office(folder, file, "txt:Text (encoded):UTF8").read_text(encoding="utf-8-sig")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["odt", "docx"])
def test_libreoffice_reads_what_comes_back(tmp_path: Path, kind: str) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE, encoding="utf-8")
    written = office(tmp_path, page, "odt:writer8" if kind == "odt" else "docx:MS Word 2007 XML")
    data = written.read_bytes()
    file = read_document(data, written.name)
    assert texts(file) == ["Le grand voyage", *LINES]
    assert file.write(file.segments) == data
    back = tmp_path / f"back.{kind}"
    back.write_bytes(shouted(file))
    before, after = (plain_text(tmp_path, path) for path in (written, back))
    assert after == before.upper().replace("CODE(ICI)", "code(ici)")


@pytest.mark.slow
def test_libreoffice_reads_documents_written_by_hand(tmp_path: Path) -> None:
    bold = '<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve"> gras</w:t></w:r>'
    word = tmp_path / "a.docx"
    file = read_document(docx(f"<w:p><w:r><w:t>Un mot</w:t><w:tab/></w:r>{bold}</w:p>"), "a.docx")
    word.write_bytes(shouted(file))
    assert plain_text(tmp_path, word).split() == ["UN", "MOT", "GRAS"]
    text = tmp_path / "b.odt"
    text.write_bytes(shouted(read_document(odt("<text:p>Un<text:tab/>mot<text:s/>gras</text:p>"), "b.odt")))
    assert plain_text(tmp_path, text).split() == ["UN", "MOT", "GRAS"]


def test_python_docx_reads_what_comes_back() -> None:
    library = pytest.importorskip("docx", reason="python-docx is not installed")
    document = library.Document()
    document.core_properties.title = "Le livre"
    document.add_heading("Le titre", 1)
    paragraph = document.add_paragraph("Un texte ")
    paragraph.add_run("en gras").bold = True
    paragraph.add_run(" et\tune\nfin.")
    cells = document.add_table(1, 2).rows[0].cells
    cells[0].text, cells[1].text = "Nom", "Valeur"
    document.sections[0].header.paragraphs[0].text = "En-tête"
    out = io.BytesIO()
    document.save(out)
    file = read_document(out.getvalue(), "a.docx")
    assert texts(file) == ["Le livre", "Le titre", "Un texte en gras et une fin.", "Nom", "Valeur", "En-tête"]
    assert file.write(file.segments) == out.getvalue()
    back = library.Document(io.BytesIO(shouted(file)))
    assert [p.text for p in back.paragraphs] == ["LE TITRE", "UN TEXTE EN GRAS ET\tUNE\nFIN."]
    assert [(run.text, bool(run.bold)) for run in back.paragraphs[1].runs][:2] == [
        ("UN TEXTE ", False),
        ("EN GRAS", True),
    ]
    assert [cell.text for cell in back.tables[0].rows[0].cells] == ["NOM", "VALEUR"]
    assert back.core_properties.title == "LE LIVRE" and back.sections[0].header.paragraphs[0].text == "EN-TÊTE"
