"""Read `review.toml`: who read a guide before it was called finished, what they found, and what came of it.

[[review]]                      # one for each role of ROLES; of LANGUAGE_ROLES in each language, once its
                                # translation has caught up with the English page
role = "verifier"
date = "2026-11-22"
read = "sha256:..."             # of the English page that was read
findings = ["The table ..."]    # what was found, and in the same order what was answered
answers = ["Fixed."]

[[review.value]]                # of a verifier: ten numbers of the page, recomputed with other code
reference = "guide/script.py?axis=value#metric"
page = "821 MiB"
recomputed = "821.3 MiB"

[[review.journey]]              # of a reader: five, on a phone
question = "CUDA out of memory, pasted"
taps = 2
stopped = "At First remedy: two arguments to paste."

[frozen]                        # once all is fixed: the page as it stands, and the versions that were read
date = "2026-11-22"
page = "sha256:..."
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ValidationError

from benchbook.content.bounds import load_toml
from benchbook.content.formats import Day, Digest, Limit, Many, Stored
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.validation import adapter, shape_errors

FILE = "review.toml"
ROLES = ("verifier", "reader")
# What each translation of a guide has beside.
LANGUAGE_ROLES = ("translator", "editor", "questions")
VALUES, JOURNEYS = 10, 5
MOST_TAPS = 3
LIKE = "see the head of scripts/benchbook/checking/guide_reviews.py for what it holds"

Words = Annotated[str, Limit(min_length=1, max_length=2000)]


@dataclass(frozen=True)
class RecomputedValue(Stored):
    """A number of the page, and what other code made of the same samples."""

    reference: Words
    page: Words
    recomputed: Words


@dataclass(frozen=True)
class Journey(Stored):
    """A question that a reader came with, and where the page left them."""

    question: Words
    taps: Annotated[int, Limit(ge=0, le=20)]
    stopped: Words


@dataclass(frozen=True, kw_only=True)
class Review(Stored):
    """What one reader found."""

    role: Literal["verifier", "reader", "translator", "editor", "questions"]
    language: Annotated[str, Limit(pattern=r"^[a-z]{2,3}$")] = "en"
    date: Day
    read: Digest
    findings: Many[Words] = ()
    answers: Many[Words] = ()
    value: Many[RecomputedValue] = ()
    journey: Many[Journey] = ()

    def __post_init__(self) -> None:
        """Each finding has its answer, and each role brings what it is for."""
        if len(self.findings) != len(self.answers):
            raise ValueError(f"{len(self.findings)} findings have {len(self.answers)} answers")
        if self.role == "verifier" and len(self.value) < VALUES:
            raise ValueError(f"a verifier recomputes {VALUES} values, and these are {len(self.value)}")
        if self.role == "reader" and len(self.journey) < JOURNEYS:
            raise ValueError(f"a reader makes {JOURNEYS} journeys, and these are {len(self.journey)}")


@dataclass(frozen=True)
class FrozenPage(Stored):
    """The page as it stands once everything found was answered."""

    date: Day
    page: Digest


@dataclass(frozen=True)
class ReviewFile(Stored):
    """The whole file."""

    review: Many[Review]
    frozen: FrozenPage


def review_problems(
    project: Project, guide: str, digest: str, languages: Collection[str]
) -> Iterator[Problem]:
    """What is missing of the reviews of a guide.

    Parameters:
        project: The checkout.
        guide: Its name.
        digest: That of its English page now.
        languages: Those whose translation says what that page says now, and must have been read by others.
    """
    path = project.snippets / guide / FILE
    shown = project.relative(path)
    try:
        found = adapter(ReviewFile).validate_python(load_toml(path.read_text("utf-8")))
    except FileNotFoundError:
        yield Problem(shown, 1, f"is not there: nobody has reviewed docs/en/{guide}.md", LIKE)
        return
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        yield Problem(shown, 1, f"cannot be read ({error})", LIKE)
        return
    except ValidationError as error:
        for keys, _, message in shape_errors(error, 10):
            where = ".".join(str(key) for key in keys) or "the file"
            yield Problem(shown, 1, f"{where}: {message}", LIKE)
        return
    if found.frozen.page != digest:
        what = f"is of another docs/en/{guide}.md: its digest is {digest} now"
        yield Problem(shown, 1, what, "have what changed reviewed, answer the findings, and freeze it again")
    there = {(review.role, review.language) for review in found.review}
    needed = [(role, "en") for role in ROLES]
    needed += [(role, code) for code in languages for role in LANGUAGE_ROLES]
    for role, language in needed:
        if (role, language) not in there:
            yield Problem(shown, 1, f"has no review by a {role} ({language})", LIKE)
    for review in found.review:
        for journey in review.journey:
            if journey.taps > MOST_TAPS:
                what = (
                    f"the journey {journey.question!r} took {journey.taps} taps, and {MOST_TAPS} are allowed"
                )
                yield Problem(shown, 1, what, "lead there sooner, and have it tried again")
