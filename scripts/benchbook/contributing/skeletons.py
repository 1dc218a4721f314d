"""Begin a guide or a script: files that record, build and pass the check as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template

from benchbook.content.problems import BenchbookError, Problem, unreadable
from benchbook.content.project import DATA_FOLDERS, Project
from benchbook.content.records import write_together, writing
from benchbook.content.unfinished import alone

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
FIRST = "first"
NAV = re.compile(r"^nav:[^\S\n]*\n(?P<entries>(?:[^\S\n]+\S.*\n|[^\S\n]*\n(?=[^\S\n]+\S))*)", re.MULTILINE)

SCRIPT = '''"""How much memory a tensor of ones takes in each precision."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11"]
#
# [tool.benchbook]
# needs = ["cpu", "accelerator"]
# [tool.benchbook.metrics]
# total = { unit = "count" }
# tensor_bytes = { unit = "B", better = "lower" }
# [tool.benchbook.smallest]
# size = 10
# [tool.benchbook.matrix]
# precision = ["float32", "bfloat16"]
# ///

# %% parameters
size = 1000
precision = "float32"

# %% setup
import torch

cpu = torch.device("cpu")
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else cpu
dtype = getattr(torch, precision)

# %% add
ones = torch.ones(size, dtype=dtype, device=device)
total = int(ones.sum(dtype=torch.float32))
tensor_bytes = ones.nbytes
print(f"{total} ones take {tensor_bytes} bytes on {device.type}")

# %% checks
assert total == size
assert tensor_bytes == size * ones.element_size()
assert ones.device.type == device.type
'''

PAGE = Template("""---
draft: true
description: What ${title} costs, measured on real hardware.
---

# ${heading} { #${anchor} }

In half the precision it takes `#!value 1 - ${half} / ${full} percent` less.
{ .measured }

```cell
${script}?precision=float32#add
```

## What was measured { #measured }

```table
script: ${script}
rows: precision
columns: [total, tensor_bytes]
```
""")


def new_script(project: Project, name: str) -> list[str]:
    """Begin the script "guide/script", in a guide that may be new; the files made, relative to the project.

    Raises:
        BenchbookError: It cannot be called so, is there already, or cannot be written.
    """
    return _put(project, {_new_script(project, name): SCRIPT})


def new_guide(project: Project, name: str) -> list[str]:
    """Begin a guide with one script, and list it in the navigation; the files made or changed.

    Raises:
        BenchbookError: It cannot be called so, is there already, or cannot be written.
    """
    if not NAME.match(name) or name in DATA_FOLDERS:
        fix = "use lower-case letters, digits and underscores, beginning with a letter"
        raise BenchbookError(Problem(name, 1, "cannot name a guide", fix))
    with alone(project.root):
        return _new_guide(project, name)


def _new_guide(project: Project, name: str) -> list[str]:
    page = project.docs / "en" / f"{name}.md"
    if page.exists():
        raise BenchbookError(Problem(project.relative(page), 1, "is there already", "name another guide"))
    title = name.replace("_", " ")
    texts = {_new_script(project, f"{name}/{FIRST}"): SCRIPT}
    script = f"{name}/{FIRST}.py"
    words = {
        "title": title,
        "heading": title.capitalize(),
        "anchor": name.replace("_", "-"),
        "script": script,
        "half": f"{script}?precision=bfloat16#tensor_bytes",
        "full": f"{script}?precision=float32#tensor_bytes",
    }
    texts[page] = PAGE.substitute(words)
    config = project.root / "mkdocs.yml"
    try:
        text = config.read_text("utf-8") if config.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise BenchbookError(unreadable(config.name, error)) from error
    # A site whose configuration lists no pages shows them all.
    if match := NAV.search(text):
        entries = match["entries"]
        indent = re.match(r"\s*", entries)
        listed = f"{indent[0] if indent and entries else '  '}- {name}.md\n"
        texts[config] = text[: match.end()] + listed + text[match.end() :]
    return _put(project, texts)


def _new_script(project: Project, name: str) -> Path:
    """Where the script "guide/script" will lie; raises BenchbookError as `new_script` does."""
    guide, slash, stem = name.removeprefix("snippets/").removesuffix(".py").partition("/")
    if not slash or not NAME.match(guide) or not NAME.match(stem) or guide in DATA_FOLDERS:
        fix = "name it as guide/script, with lower-case letters, digits and underscores"
        raise BenchbookError(Problem(name, 1, "cannot name a script", fix))
    path = project.snippets / guide / f"{stem}.py"
    if path.exists():
        raise BenchbookError(Problem(project.relative(path), 1, "is there already", "choose another name"))
    return path


def _put(project: Project, texts: Mapping[Path, str]) -> list[str]:
    """Write files, all of them or none; their paths, relative to the project."""
    shown = [project.relative(path) for path in texts]
    with writing(shown[0]):
        write_together({path: text.encode() for path, text in texts.items()})
    return shown
