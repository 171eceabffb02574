"""Properties of the demo corpus: what makes it a fair test of context, and a corpus one can learn from."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from docnmt.base.errors import BadInput, DocnmtError
from docnmt.demo import PHENOMENA, ContextWord, DemoDocument, generate, read_context_words, write_demo_corpus
from docnmt.demo.language import (
    BRITISH_AMERICAN,
    DOMAIN_CUES,
    FEMININE_THINGS,
    MASCULINE_THINGS,
    MEN,
    ORGANISATIONS,
    PLACES,
    SENSES,
    TONED,
    WOMEN,
    french_surface,
)

Corpus = dict[str, list[DemoDocument]]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate(3000, seed=1)


def _sentences(demo: list[DemoDocument]) -> Iterator[tuple[str, str]]:
    for d in demo:
        yield from zip(d.document.source, d.document.target, strict=True)


def _words(corpus: Corpus, *splits: str) -> Iterator[tuple[DemoDocument, ContextWord, tuple[str, ...]]]:
    for split in splits or tuple(corpus):
        for d in corpus[split]:
            for word, wrong_targets in zip(d.words, d.wrong_targets, strict=True):
                yield d, word, wrong_targets


def _forms(texts: Iterator[str]) -> Counter[str]:
    return Counter(form for text in texts for form in re.findall(r"[\w-]+", text.lower()))


def test_same_seed_same_corpus() -> None:
    assert generate(80, seed=3) == generate(80, seed=3)
    assert generate(80, seed=3) != generate(80, seed=4)


def test_sizes_and_ids(corpus: Corpus) -> None:
    assert {split: len(demo) for split, demo in corpus.items()} == {"train": 2700, "dev": 100, "test": 200}
    assert corpus["train"][12].document.id == "train-00012"
    small = generate(100, seed=1)
    assert [len(small[split]) for split in ("train", "dev", "test")] == [60, 20, 20]
    with pytest.raises(DocnmtError, match="too small"):
        generate(10, seed=1)


def test_documents_and_sentences_have_the_promised_length(corpus: Corpus) -> None:
    for demo in corpus.values():
        assert all(4 <= len(d.document) <= 10 and len(d.frames) == len(d.document) for d in demo)
        for pair in _sentences(demo):
            assert all(4 <= len(re.findall(r"[\w-]+", side)) <= 16 for side in pair), pair


def test_splits_share_no_document_sentence_or_frame(corpus: Corpus) -> None:
    for first, second in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not {f for d in corpus[first] for f in d.frames} & {f for d in corpus[second] for f in d.frames}
        assert not {s for s, _ in _sentences(corpus[first])} & {s for s, _ in _sentences(corpus[second])}
    texts = [d.document.source for demo in corpus.values() for d in demo]
    assert len(set(texts)) == len(texts)


def test_held_out_frames_are_new_combinations_of_parts_seen_in_training(corpus: Corpus) -> None:
    trained = {f for d in corpus["train"] for f in d.frames}
    parts = [{frame.split("|")[i] for frame in trained} for i in range(3)]
    for split in ("dev", "test"):
        for d in corpus[split]:
            for frame in d.frames:
                assert all(part in known for part, known in zip(frame.split("|"), parts, strict=True)), frame


@pytest.mark.parametrize("seed", [1, 2])
def test_every_word_form_of_dev_and_test_is_known_from_training(seed: int) -> None:
    corpus = generate(3000, seed)
    for side in (0, 1):
        trained = _forms(pair[side] for pair in _sentences(corpus["train"]))
        for split in ("dev", "test"):
            rare = [form for form in _forms(pair[side] for pair in _sentences(corpus[split])) if trained[form] < 5]
            assert not rare


def test_every_phenomenon_occurs_at_both_distances(corpus: Corpus) -> None:
    for split in corpus:
        counts = Counter((word.phenomenon, word.distance) for _, word, _ in _words(corpus, split))
        assert set(counts) == {(phenomenon, distance) for phenomenon in PHENOMENA for distance in (1, 2)}
    distances = Counter(word.distance for _, word, _ in _words(corpus))
    assert 0.5 < distances[1] / distances.total() < 0.7


def test_about_half_of_the_sentences_need_no_context(corpus: Corpus) -> None:
    for split, demo in corpus.items():
        needy = sum(1 for _ in _words(corpus, split))
        assert 0.33 < needy / sum(len(d.document) for d in demo) < 0.55
        assert all(word.position >= word.distance for d in demo for word in d.words)


def test_readings_are_equally_frequent(corpus: Corpus) -> None:
    """Whoever ignores context can do no better than chance."""
    readings: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for _, word, _ in _words(corpus, "train"):
        readings[tuple(sorted(w.lower() for w in (word.right, *word.wrong)))][word.right.lower()] += 1
    assert len(readings) == len(SENSES) + 2 + 1 + len(BRITISH_AMERICAN) + len(TONED)
    for words, counts in readings.items():
        assert set(counts) == set(words)
        assert max(counts.values()) < 1.25 * min(counts.values()) + 5, counts


def test_a_french_sentence_alone_does_not_tell_its_reading(corpus: Corpus) -> None:
    uses: dict[str, Counter[str]] = defaultdict(Counter)
    rivals: dict[str, int] = {}
    for d, word, wrong in _words(corpus, "train"):
        if word.phenomenon != "cohesion":  # there the whole document has one reading
            source = d.document.source[word.position]
            uses[source][word.right] += 1
            rivals[source] = 1 + len(wrong)
    repeated = [source for source, counts in uses.items() if counts.total() >= rivals[source]]
    assert len(repeated) > 200
    for source in repeated:
        counts = uses[source]
        assert len(counts) == rivals[source] and max(counts.values()) - min(counts.values()) <= 1, (source, counts)


def test_two_previous_sentences_determine_the_target(corpus: Corpus) -> None:
    targets: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for demo in corpus.values():
        for d in demo:
            for i, target in enumerate(d.document.target):
                targets[d.document.source[max(0, i - 2) : i + 1]].add(target)
    assert all(len(found) == 1 for found in targets.values())


def test_sentences_that_need_no_context_have_one_translation(corpus: Corpus) -> None:
    targets: dict[str, set[str]] = defaultdict(set)
    for demo in corpus.values():
        for d in demo:
            needy = {word.position for word in d.words}
            for i, (source, target) in enumerate(zip(d.document.source, d.document.target, strict=True)):
                if i not in needy:
                    targets[source].add(target)
    assert all(len(found) == 1 for found in targets.values())


def test_the_cue_is_where_the_distance_says(corpus: Corpus) -> None:
    """Checked from the outside, on English words: the cue sentence has one, the sentence between has none."""
    domain_of = {
        word: {pattern.en for domain in names for pattern in DOMAIN_CUES[domain]}
        for noun, domains in SENSES
        for word, names in zip(noun.en, domains, strict=True)
    }
    beings = {p.en for p in MEN + WOMEN + MASCULINE_THINGS + FEMININE_THINGS + ORGANISATIONS}
    for d, word, _ in _words(corpus):
        target = d.document.target
        cue = target[word.position - word.distance]
        between = target[word.position - 1] if word.distance == 2 else ""
        if word.phenomenon == "sense":
            assert any(clue in cue for clue in domain_of[word.right]), cue
            assert not any(clue in between for domain in DOMAIN_CUES.values() for clue in (p.en for p in domain)), (
                between
            )
        elif word.phenomenon in ("pronoun", "possessive"):
            assert sum(f" {being} " in cue.replace(".", " ") for being in beings) == 1, cue
            assert not any(re.search(rf"\b{being}\b", between, re.IGNORECASE) for being in beings), between
        elif word.phenomenon == "cohesion":
            side = next(noun.en.index(word.right) for noun in BRITISH_AMERICAN if word.right in noun.en)
            assert any(place.en in cue for place in PLACES[side]), cue
            assert not any(place.en in between for places in PLACES for place in places), between


def test_a_document_keeps_to_one_rendering_of_a_term(corpus: Corpus) -> None:
    for demo in corpus.values():
        for d in demo:
            terms = [word.right for word in d.words if word.phenomenon == "cohesion"]
            assert len(terms) != 1 and len(set(terms)) <= 1


def test_right_stands_in_the_target_and_wrong_in_its_rivals(corpus: Corpus) -> None:
    for d, word, wrong_targets in _words(corpus):
        target = d.document.target[word.position]
        assert len(word.wrong) == len(wrong_targets) >= 1
        assert len(re.findall(rf"\b{word.right}\b", target)) == 1
        for rival, rival_target in zip(word.wrong, wrong_targets, strict=True):
            assert not re.search(rf"\b{rival}\b", target, re.IGNORECASE), (rival, target)
            assert re.search(rf"\b{rival}\b", rival_target)
            # Nothing but the word differs, so nothing else can give the reading away.
            assert re.sub(rf"\b{word.right}\b", rival, target) == rival_target


def test_there_are_enough_ambiguous_words() -> None:
    assert len(SENSES) >= 12
    for noun, domains in SENSES:
        assert len(noun.en) == len(domains) == 2
        assert all(sum(len(DOMAIN_CUES[domain]) for domain in names) >= 3 for names in domains)
        assert not set(domains[0]) & set(domains[1])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("je ai parlé de le vol", "J'ai parlé du vol."),
        ("je crois que il pense à les enfants", "Je crois qu'il pense aux enfants."),
        ("nous rêvons de le avocat", "Nous rêvons de l'avocat."),
        ("sa adresse", "Son adresse."),
        ("ce avocat", "Cet avocat."),
        ("personne ne a parlé de Alice", "Personne n'a parlé d'Alice."),
    ],
)
def test_french_elides_and_contracts(words: str, sentence: str) -> None:
    assert french_surface(words) == sentence


def test_no_sentence_needs_an_elision_or_contraction_it_lacks(corpus: Corpus) -> None:
    missing = re.compile(r"\b(?:(?:je|le|la|de|que|ne|ma|sa|ce) [aeiouyhéèêîôœ]|de les? |à les? )", re.IGNORECASE)
    for demo in corpus.values():
        for source, target in _sentences(demo):
            assert not missing.search(source), source
            assert not re.search(r"\b[Aa] [aeio]|\b[Aa]n [^aeiouh]|  ", target), target


def test_files_can_be_read_again(tmp_path: Path) -> None:
    write_demo_corpus(tmp_path, 80, seed=5)
    corpus = generate(80, seed=5)
    for split, demo in corpus.items():
        rows = [line.split("\t") for line in (tmp_path / f"{split}.tsv").read_text(encoding="utf-8").splitlines()]
        assert [tuple(row[1:]) for row in rows] == list(_sentences(demo))
        assert list(dict.fromkeys(row[0] for row in rows)) == [d.document.id for d in demo]
        source, target = ((tmp_path / f"{split}.{side}").read_text(encoding="utf-8") for side in ("fr", "en"))
        assert len(source.splitlines()) == len(target.splitlines())
        assert [tuple(block.split("\n")) for block in source.strip().split("\n\n")] == [d.document.source for d in demo]
        assert [tuple(block.split("\n")) for block in target.strip().split("\n\n")] == [d.document.target for d in demo]

    words = read_context_words(tmp_path / "context-words.jsonl")
    expected = {(d.document.id, word.position): [word] for d, word, _ in _words(corpus, "dev", "test")}
    assert words == expected

    documents = {d.document.id: d for d in corpus["test"]}
    rows = [json.loads(line) for line in (tmp_path / "contrastive.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == sum(len(d.words) for d in corpus["test"])
    for row in rows:
        document, at = documents[row["document"]].document, row["position"]
        assert (*row["previous"], row["source"], *row["following"]) == document.source
        assert (*row["previous_target"], row["right"]) == document.target[: at + 1]
        assert row["wrong"] and row["right"] not in row["wrong"]
    assert "contrastive.jsonl" in (tmp_path / "README.txt").read_text(encoding="utf-8")
    assert not list(tmp_path.glob(".*"))  # no temporary file is left


def test_a_bad_context_word_file_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "context-words.jsonl"
    path.write_text('{"document": "test-00000"}\n', encoding="utf-8")
    with pytest.raises(BadInput, match="line 1"):
        read_context_words(path)
