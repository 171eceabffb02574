"""Languages of the models that are served: their codes, their names, and which model translates a pair."""

from __future__ import annotations

from collections.abc import Iterable

from docnmt.base.errors import DocnmtError
from docnmt.serving.models import ModelInfo, code

# fmt: off
NAMES = {
    "af": "Afrikaans", "sq": "Albanian", "am": "Amharic", "ar": "Arabic", "hy": "Armenian", "az": "Azerbaijani",
    "eu": "Basque", "be": "Belarusian", "bn": "Bengali", "bs": "Bosnian", "br": "Breton", "bg": "Bulgarian",
    "my": "Burmese", "ca": "Catalan", "zh": "Chinese", "zt": "Chinese", "yue": "Cantonese", "hr": "Croatian",
    "cs": "Czech", "da": "Danish", "nl": "Dutch", "en": "English", "eo": "Esperanto", "et": "Estonian",
    "fi": "Finnish", "fr": "French", "gl": "Galician", "ka": "Georgian", "de": "German", "el": "Greek",
    "gu": "Gujarati", "ht": "Haitian", "ha": "Hausa", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian",
    "is": "Icelandic", "id": "Indonesian", "ga": "Irish", "it": "Italian", "ja": "Japanese", "kn": "Kannada",
    "kk": "Kazakh", "km": "Khmer", "ko": "Korean", "ku": "Kurdish", "ky": "Kyrgyz", "lo": "Lao", "la": "Latin",
    "lv": "Latvian", "lt": "Lithuanian", "lb": "Luxembourgish", "mk": "Macedonian", "ms": "Malay", "ml": "Malayalam",
    "mt": "Maltese", "mr": "Marathi", "mn": "Mongolian", "ne": "Nepali", "nb": "Norwegian", "nn": "Norwegian",
    "no": "Norwegian", "oc": "Occitan", "ps": "Pashto", "fa": "Persian", "pl": "Polish", "pt": "Portuguese",
    "pa": "Punjabi", "ro": "Romanian", "ru": "Russian", "sr": "Serbian", "si": "Sinhala", "sk": "Slovak",
    "sl": "Slovenian", "so": "Somali", "es": "Spanish", "sw": "Swahili", "sv": "Swedish", "tl": "Tagalog",
    "tg": "Tajik", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "uz": "Uzbek", "vi": "Vietnamese", "cy": "Welsh", "yi": "Yiddish", "yo": "Yoruba", "zu": "Zulu",
}
# fmt: on


def name_of(language: str) -> str:
    """`Portuguese (BR)` for pt-BR; a code that is not known is its own name."""
    base, _, region = language.partition("-")
    name = NAMES.get(base.lower())
    return language if name is None else f"{name} ({region})" if region else name


class Languages:
    """The pairs that the models translate."""

    def __init__(self, models: Iterable[ModelInfo]):
        self.models = list(models)
        self.sources = list(dict.fromkeys(info.source_language for info in self.models))
        self.all = list(dict.fromkeys([*self.sources, *(info.target_language for info in self.models)]))

    def targets(self, source: str) -> list[str]:
        return list(dict.fromkeys(info.target_language for info in self.models if info.source_language == source))

    def sources_of(self, target: str) -> list[str]:
        return [source for source in self.sources if target in self.targets(source)]

    def find(self, asked: str) -> str:
        """The code of a language that is served, in whatever case it is written; where one of the two has a region and
        the other has none, they are the same: pt-BR finds pt, pt finds pt-BR."""
        wanted = code(asked).lower()
        same = [known for known in self.all if known.lower() == wanted]
        akin = [known for known in self.all if _base(known) == wanted or known.lower() == _base(wanted)]
        for known in (*same, *akin):
            return known
        raise DocnmtError(f"{asked} is not supported")

    def model(self, source: str, target: str) -> ModelInfo:
        for info in self.models:
            if (info.source_language, info.target_language) == (source, target):
                return info
        raise DocnmtError(
            f"{name_of(target)} ({target}) is not available as a target language from {name_of(source)} ({source})"
        )

    def listed(self) -> list[dict[str, object]]:
        """As LibreTranslate lists them."""
        return [{"code": each, "name": name_of(each), "targets": self.targets(each)} for each in self.all]


def _base(language: str) -> str:
    """Without its region; private codes have none."""
    language = language.lower()
    return language if language.startswith("x-") else language.partition("-")[0]
