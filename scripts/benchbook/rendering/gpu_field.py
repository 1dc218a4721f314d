"""The field in which a reader says which GPU they have; `docs/assets/gpu_field.js` understands it."""

from __future__ import annotations

from markupsafe import Markup, escape

from benchbook.languages.language import Language

# Texts that its script needs in the page's language.
STRINGS = (
    *("my_gpu_unknown", "my_gpu_which", "my_gpu_several", "my_gpu_shared"),
    *("my_gpu_older", "my_gpu_oldest", "between_sentences"),
)


def render_gpu_field(id_: str, language: Language, described_by: str) -> Markup:
    """Its label, the field, what it offers, and where it answers.

    Parameters:
        id_: Of the field; what it offers and where it answers have ids that begin with it.
        language: The language of the page.
        described_by: The id of the sentence that says what counts as fitting.
    """
    return Markup(  # every part is escaped
        f'<label for="{id_}">{language.words(language.text("my_gpu"))}</label> '
        f'<input id="{id_}" list="{id_}-list" dir="auto" autocomplete="off" spellcheck="false" '
        f'placeholder="{escape(language.text("my_gpu_hint"))}" aria-describedby="{described_by}">'
        f'<datalist id="{id_}-list"></datalist> '
        f'<span id="{id_}-said" class="bb-gpu-said" role="status"></span>'
    )
