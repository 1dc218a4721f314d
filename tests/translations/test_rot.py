"""Every class of damage that has been seen in translations of such pages is caught in the pages of this site."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchbook.content.problems import Problem
from benchbook.content.project import Project
from handbooks import edit
from lessons import LESSONS, PAGE, Damage, Tree, taught_tree

Found = tuple[set[Problem], set[Problem]]

FIRST_LESSON = "{ #precision }"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return taught_tree(tmp_path_factory.mktemp("sound"))


@pytest.fixture
def tree(sound: Tree, tmp_path: Path) -> Tree:
    shutil.copytree(sound.project.root, tmp_path / "tree", symlinks=True)
    return Tree(Project(tmp_path / "tree"), sound.before)


def test_a_careful_translation_of_every_lesson_passes(sound: Tree) -> None:
    for code in sound.project.languages:
        lines = (sound.project.docs / code / PAGE).read_text("utf-8").splitlines()
        first = next(number for number, line in enumerate(lines, 1) if FIRST_LESSON in line)
        found = [one for one in sound.before[0] | sound.before[1] if one.path == f"docs/{code}/{PAGE}"]
        assert [str(one) for one in found if one.line >= first] == []


DAMAGES = {
    # A word that turns the meaning around.
    "high precision": Damage(
        "ar",
        "يحتاج التدريب بدقة مختلطة إلى",
        "يحتاج التدريب عالي الدقة إلى",
        "`التدريب عالي الدقة` is not a rendering of “mixed precision”",
        "write `دقة مختلطة`",
    ),
    "high precision, zh": Damage(
        "zh", "混合精度训练占用", "高精度训练占用", "`高精度训练` is no", "write `混合精度`"
    ),
    "host memory for device memory": Damage(
        "zh", "训练占用的显存更少", "训练占用的 GPU内存更少", "`GPU内存` is no", "write `显存`"
    ),
    # One device for another.
    "a hundred for one": Damage(
        "ja", "- GPU 1 枚：", "- GPU 百枚：", "the number `百` is not in the English section", "say the same"
    ),
    "seven for one": Damage(
        "ja", "- GPU 1 枚：", "- GPU 七 台：", "the number `七` is not in the English section", "say the same"
    ),
    "TPU as GPU": Damage(
        "ar",
        "إن كانت وحدات TPU جديدة",
        "إن كانت وحدات GPU جديدة",
        "section `#devices` says GPU 1 times, in English 0 times",
        "say GPU where the English section does",
    ),
    "TPU as an unmarked GPU": Damage(
        "ar",
        "إن كانت وحدات TPU جديدة",
        "إن كانت وحدات معالجة الرسوميات (TPU) جديدة",
        "`وحدات معالجة الرسوميات (TPU)` is not a rendering",
        "write `TPU`",
    ),
    "one acronym too few": Damage(
        "ja",
        "TPU が初めてなら",
        "これが初めてなら",
        "section `#devices` says TPU 1 times, in English 2 times",
        at="TPU での学習",
    ),
    # Terms, each as it was once published.
    "hypothesis": Damage(
        "ar", "بحثًا عن المعلمات الفائقة", "بحثًا عن أفضل فرضية", "`أفضل فرضية` is no", "write"
    ),
    "the coach": Damage(
        "ar", "يجري `Trainer` بحثًا", "يجري كائن المدرب بحثًا", "`كائن المدرب` is not a rendering", "`Trainer`"
    ),
    "deduction": Damage(
        "ar", "ثم يأتي الاستدلال", "ثم يأتي الاستنتاج", "`الاستنتاج` is no", "write `استدلال`"
    ),
    "with a prefix": Damage(
        "ar", "ثم يأتي الاستدلال", "ثم نبدأ بالاستنتاج", "`الاستنتاج` is no", "write `استدلال`"
    ),
    "retrieval": Damage(
        "ja", "ハイパーパラメータ探索を", "ハイパーパラメータ検索を", "`ハイパーパラメータ検索` is no", "探索"
    ),
    "pipes": Damage(
        "ar", "يناسب توازي خط المعالجة", "يناسب توازي الأنابيب", "`الأنابيب` is no", "توازي خط المعالجة"
    ),
    "dedicated hardware": Damage(
        "ar",
        "عتادًا تجمعه بنفسك",
        "الأجهزة المخصصة",
        "`الأجهزة المخصصة` is not a rendering of “custom hardware”",
    ),
    "repeatable criterion": Damage(
        "ar",
        "قياس أداء (benchmark)",
        "معيار قابل للتكرار",
        "`معيار قابل للتكرار` is not a rendering of “benchmark”",
    ),
    "the same word twice": Damage(
        "zh", "然后是实用技巧", "然后是技巧、窍门和技巧", "`技巧、窍门和技巧` is no", "实用技巧"
    ),
    "advisory introduction": Damage(
        "zh", "先是带明确取舍的入门", "先是建议性介绍", "`建议性介绍` is no", "带明确取舍"
    ),
    "the flame": Damage(
        "ar", "في NumPy وtorch،", "في NumPy والشعلة،", "`الشعلة` is not a rendering of “PyTorch”"
    ),
    "nesting": Damage(
        "ar", "بذرة عشوائية (seed) في", "بذرة التعشيش (seed) في", "`التعشيش` is no", "بذرة عشوائية"
    ),
    "hardware setups": Damage(
        "ar",
        "في إعداد تدريب موزع",
        "في إعدادات الأجهزة",
        "`إعدادات الأجهزة` is not a rendering",
        "إعداد تدريب موزع",
    ),
    "woven contracts": Damage(
        "ar", "ضرب المصفوفات (", "التعاقدات المنسوجة (", "`التعاقدات المنسوجة` is no", "ضرب المصفوفات"
    ),
    "element of wisdom": Damage(
        "ar", "عنصرا بعنصر", "عنصر الحكمة", "`عنصر الحكمة` is no", "write `عنصرا بعنصر`"
    ),
    "leftovers": Damage("ar", "ووصلة متبقية (residual)", "وبقايا (residual)", "`بقايا` is no", "وصلة متبقية"),
    "blows": Damage(
        "ar", "والتفاف", "والضربات", "`الضربات` is not a rendering of “convolution”", "write `التفاف`"
    ),
    "the countries": Damage(
        "ar", "حالات المحسّن ومخازن", "الدول المحسنة ومخازن", "`الدول المحسنة` is no", "write `حالات المحسّن`"
    ),
    "temporary twice": Damage(
        "ar", "ومخازن مؤقتة", "والمخازن المؤقتة المؤقتة", "`المخازن المؤقتة المؤقتة` is not a rendering"
    ),
    "the nucleus": Damage(
        "ar", "وkernel من CUDA", "وأنوية CUDA", "`أنوية CUDA` is not a rendering of “GPU kernel”"
    ),
    "limited range": Damage(
        "ar", "مقيد بعرض نطاق الذاكرة", "محدود النطاق", "`محدود النطاق` is no", "مقيد بعرض"
    ),
    "a term left out": Damage(
        "ja",
        "残差接続、",
        "",
        "has no approved rendering of “residual connection”",
        "write `残差接続`",
        "#anatomy",
        True,
    ),
    "no English beside the first use": Damage(
        "ar",
        "ووصلة متبقية (residual)",
        "ووصلة متبقية",
        "`وصلة متبقية` stands here first",
        "(residual)",
        warning=True,
    ),
    # Links.
    "a dead link": Damage(
        "zh", "[批大小](#batch-size)\n- 多", "[批大小](#batchsize)\n- 多", "no section `#batchsize`", "use"
    ),
    "the link of the neighbour": Damage(
        "zh",
        "[随机种子](#seeds)",
        "[随机种子](#batch-size)",
        "the link `#batch-size` is not in the English",
        "link to",
    ),
    "two links that changed places": Damage(
        "zh",
        "[批大小](#batch-size)\n- 多 GPU：[随机种子](#seeds)",
        "[批大小](#seeds)\n- 多 GPU：[随机种子](#batch-size)",
        "the link `#seeds` is not in the English text",
    ),
    "a link of its own": Damage(
        "ja",
        "では、必要な GPU メモリが",
        "では、[必要な](https://example.org/) GPU メモリが",
        "the link `https://example.org/` is not in the English text",
    ),
    # Register.
    "the polite you": Damage(
        "zh", "如果你刚接触", "如果您刚接触", "`您` is of another register", "register:"
    ),
    "a plain sentence": Damage(
        "ja", "推論はその後です。", "推論はその後である。", "`その後である` is of another register", "です"
    ),
    "a plain verb": Damage(
        "ja", "ヒントとコツが続きます。", "ヒントとコツが続く。", "is of another register", "です"
    ),
    "the plural imperative": Damage(
        "ar", "جديدة عليك فتابع", "جديدة عليكم فتابع", "`عليكم` is of another register"
    ),
    # Numbers.
    "one for two": Damage(
        "ar",
        "على وحدتي GPU هي",
        "على وحدة GPU واحدة هي",
        "the number 2 of the English text is not here",
        "say it",
    ),
    "one for two, zh": Damage(
        "zh", "用两块 GPU 时，64", "用一块 GPU 时，64", "the number 2 of the English text is not here"
    ),
    "a number changed": Damage(
        "ja", "実際には 128 です", "実際には 256 です", "the number `256` is not in the English"
    ),
    "a number in other digits": Damage(
        "ar", "الواقع 128،", "الواقع ٢٥٦،", "the number `٢٥٦` is not in the English"
    ),
    "a number of full width": Damage(
        "zh", "其实是 128", "其实是 ２５６", "the number `２５６` is not in the English"
    ),
    "a number lost": Damage(
        "ar", "هي في الواقع 128،", "أكبر من ذلك،", "the number 128 of the English text is not here"
    ),
    "a measured number": Damage(
        "zh", "占用的显存更少", "只占 18 字节", "the measured number `18 字节` is typed", "#!value"
    ),
    "another unit": Damage(
        "ar", "قدر أقل من ذاكرة", "2 GB من ذاكرة", "the measured number `2 GB` is typed", "#!value"
    ),
    "the optimizer unnamed": Damage(
        "zh",
        "，用 AdamW 也一样",
        "",
        "the name AdamW of the English text is not here",
        "keep it",
        "64 的批其实是",
    ),
    # Units, of numbers that have a source.
    "a larger unit": Damage(
        "ar", "[24 GB]", "[24 TB]", "`24 TB` is not what the English text measures", "unit"
    ),
    "a smaller unit": Damage("zh", "[24 GB]", "[24 MB]", "`24 MB` is not what the English text measures"),
    "a symbol for a word": Damage(
        "ja", "[2 バイト]", "[2 GB]", "`2 GB` is not what the English text measures"
    ),
    "two hundred for two": Damage(
        "ar", "[بايتين]", "[مئتي بايت]", "`مئتي بايت` is not what the English text measures"
    ),
    "two links that exchanged places": Damage(
        "zh",
        "[30%](https://example.org/share) 的时间，即 [40 毫秒](https://example.org/time)",
        "[30%](https://example.org/time) 的时间，即 [40 毫秒](https://example.org/share)",
        "the link `https://example.org/time` stands where the English text has `https://example.org/share`",
        "put the links into the English order",
    ),
    "a unit without a number": Damage(
        "zh",
        "占用的显存更少",
        "占用的显存以 MiB 计",
        "the unit `MiB` is not in the English text",
        "name the unit",
    ),
    "times for percent": Damage("zh", "[30%]", "[30 倍]", "`30 倍` is not what the English text measures"),
    "seconds for milliseconds": Damage(
        "ar", "[40 مللي ثانية]", "[40 ثانية]", "`40 ثانية` is not what the English text measures"
    ),
    "a size for a rate": Damage(
        "ja", "300 GB/s の", "300 GB の", "`300 GB` is not what the English text measures"
    ),
    "a unit lost": Damage("ja", "[30%]", "[30 回]", "the English text measures `30 %`", "unit"),
    # Fractions, and signs beside a number.
    "a part of a number": Damage(
        "ja", "- 512 トークン", "- 1/512 トークン", "the number `1/512` is not in the English section", "same"
    ),
    "a part of a number, in words": Damage(
        "zh",
        "- 2048 个样本",
        "- 2048 分之 1 个样本",
        "the number `2048 分之 1` is not in the English section",
    ),
    "a part with a stroke of full width": Damage(
        "ar", "من 512 رمزًا", "من 1／512 رمزًا", "the number `1／512` is not in the English section"
    ),
    "another part": Damage(
        "zh", "五分之一的时间", "四分之一的时间", "the number `四分之一` is not in the English section"
    ),
    "less for more": Damage(
        "ja",
        "- 65504 を超える数",
        "- < 65504 の数",
        "`<` is of a relation that the English text does not say",
        "say of",
    ),
    "at most, for nothing": Damage("ar", "- 2048 عينة", "- ≤ 2048 عينة", "`≤` is of a relation"),
    "a power": Damage("ja", "を 2 回", "を 2 乗回", "`乗` is of a relation"),
    "a power, zh": Damage("zh", "跑 2 次", "跑 2 次方", "`次方` is of a relation"),
    "a power, ar": Damage("ar", "في 2 تشغيل", "في أس 2 تشغيل", "`أس` is of a relation"),
    # Names that the section has elsewhere.
    "cards of another row": Damage(
        "ja", "| A100、H100 |", "| V100、H100 |", "the name V100 is not in the English text", "name what"
    ),
    "a card left out of its row": Damage(
        "ja", "| T4、V100 |", "| V100 |", "the name T4 of the English text is not here", "keep it"
    ),
    "a format that is used instead": Damage(
        "zh", "这里不要用 bf16", "这里不要用 fp32", "the name fp32 is not in the English text"
    ),
    "a format too many": Damage(
        "ar", "لا تستعمل bf16 عليها", "لا تستعمل bf16 وfp32 عليها", "the name fp32 is not in the English text"
    ),
    "the item of another method": Damage(
        "ja", "- **OSF**：小", "- **AdaLoRA**：小", "the name OSF of the English text is not here"
    ),
    "one format for another that the text has, too": Damage(
        "ja",
        "fp16 はオーバーフロー",
        "bf16 はオーバーフロー",
        "bf16 stands where the English text has fp16",
        "as often",
        at="ではなく bf16",
    ),
    "one device for another that the text has, too": Damage(
        "ar",
        "، لا وحدة GPU.",
        "، لا معالج CPU.",
        "CPU stands where the English text has GPU",
        at="بدل fp16",
    ),
    "one optimizer for another": Damage(
        "zh",
        "- **Adafactor**：比 Muon 少",
        "- **Muon**：比 Muon 少",
        "Muon stands where the English text has Adafactor",
        "as often",
    ),
    # Code.
    "a letter changed in code": Damage(
        "ar",
        "`learning_rate *= accelerator",
        "`learning_Multiplier *= accelerator",
        "the code span `learning_Multiplier *= accelerator.num_processes` is not in the English text",
        "copy code from the English section",
    ),
    "an Arabic comma in code": Damage(
        "ar",
        "*= accelerator.num_processes`",
        "*= max(1، 2)`",
        "code holds U+060C (arabic comma)",
        "write the ASCII",
    ),
    "full width in code": Damage(
        "zh",
        "*= accelerator.num_processes`",
        "*= max（1, 2）`",
        "code holds U+FF08 (fullwidth left parenthesis)",
    ),
    "something unseen in code": Damage(
        "ja", "*= accelerator.num_processes`", "*= accelerator.\u200bnum_processes`", "code holds U+200B"
    ),
    "code that nothing runs": Damage(
        "ar",
        "## روابط { #links }\n",
        "## روابط { #links }\n\n```python\nprint(torch، 1)\n```\n",
        "holds code that nothing runs",
        "put it into a script",
        "```python",
    ),
    "an output that was typed": Damage(
        "zh",
        "## 代码 { #code }\n",
        "## 代码 { #code }\n\n```text\n时间：3\n```\n",
        "here is a `text` fence where English has a paragraph",
        "give the section the paragraphs",
        "```text",
    ),
    # What other tools leave behind.
    "a component": Damage(
        "ar", "يحتاج التدريب بدقة", "<Tip>\n\nيحتاج التدريب بدقة", "`<tip>` is not an element", "admonition"
    ),
    "a directive": Damage(
        "ja", "混合精度学習では", "[[autodoc]] 混合精度学習では", "`[[autodoc]]` is syntax of another"
    ),
    "a bare reference": Damage(
        "zh", "`Trainer` 负责", "[`Trainer`] 负责", "[`Trainer`] links to nothing here"
    ),
    "a tool's remark": Damage(
        "zh", "混合精度训练占用", "以下是翻译：混合精度训练占用", "“以下是翻译” speaks of", "remove it"
    ),
    "a translator's note": Damage(
        "ja",
        "必要な GPU メモリが減ります。",
        "（訳注）必要な GPU メモリが減ります。",
        "“訳注” speaks of the translation",
    ),
    # What was left out, or left in English.
    "an English heading": Damage(
        "ja", "## 精度 {", "## Precision {", "the heading `Precision` is in English", "translate it"
    ),
    "another English heading": Damage(
        "zh", "## 精度 {", "## About precision {", "the heading `About precision` is in"
    ),
    "an English sentence": Damage(
        "ar",
        "نصائح وحيل بعد مقدمة تختار لك.",
        "Tips and tricks follow an opinionated introduction.",
        "is in English",
    ),
    "two sentences for five": Damage(
        "ja",
        "GPU 1 枚向けの手法は、複数でも役に立ちます。複数でしか役に立たない手法には、このページの後ろに専用の節があります。",
        "GPU 1 枚の話は以下を参照してください。",
        "as long as the page's others are beside their English ones",
        "translate every sentence",
        warning=True,
    ),
    "five sentences for two": Damage(
        "ja",
        "GPU 1 枚向けの手法は、複数でも役に立ちます。複数でしか役に立たない手法には、このページの後ろに専用の節があります。",
        "GPU 1 枚向けの手法は、複数でも役に立ちます。複数でしか役に立たない手法には、このページの後ろに専用の節があります。"
        + "この方法はどの環境でも必ず遅くなるので使わないでください。" * 6,
        "as long as the page's others are beside their English ones",
        "say what the English text says",
        warning=True,
    ),
    "a paragraph lost": Damage(
        "zh",
        "放在本页后面。\n\n按缺什么来选。显存和时间很少两样都缺。\n",
        "放在本页后面。\n",
        "here is the end of section `#methods` where English has a paragraph",
        "give the section the paragraphs",
    ),
    "a sentence broken in two": Damage(
        "ar",
        "حالات المحسّن ومخازن",
        "حالات المحسّن\n\nومخازن",
        "here is a paragraph where English has the end of section `#anatomy`",
        at="ومخازن",
    ),
    "a list item lost": Damage(
        "ja",
        "- 複数 GPU：[乱数シード](#seeds)\n",
        "",
        "here is the end of the list where English has a list item",
        at="枚：[バッチ]",
    ),
    "a row lost": Damage(
        "zh", "| 梯度 | 清除 |\n", "", "here is the end of the table where English has a row", at="| 权重"
    ),
    "another block": Damage(
        "ar", "!!! tip", "!!! warning", "here is a `!!! warning` block where English has a `!!! tip` block"
    ),
    "a heading of another level": Damage(
        "ja",
        "## 形 { #shape }",
        "### 形 { #shape }",
        "the heading `#shape` has level 3, in English 2",
        "begin it with ##",
    ),
    "a heading of another id": Damage(
        "zh",
        "## 形状 { #shape }",
        "## 形状 { #form }",
        "the heading `#form` stands for `#shape`",
        "give it the id",
    ),
    "a section lost": Damage(
        "zh",
        "## 技巧 { #tricks }\n\n先是带明确取舍的入门，然后是实用技巧。\n",
        "",
        "lacks the section `#tricks`",
        f"translate it from docs/en/{PAGE}:",
        "#links",
    ),
    # Careless editing.
    "spaces at the end of a heading": Damage(
        "ar", "## حيل { #tricks }\n", "## حيل { #tricks } \n", "ends in white space"
    ),
    # Characters that no reader sees, and that a careless or a hostile copy leaves.
    "an override of direction": Damage(
        "ar",
        "نصائح وحيل بعد",
        "نصائح \u202eوحيل\u202c بعد",
        "holds an invisible character (U+202E)",
        "characters",
    ),
    "a zero-width space": Damage(
        "zh",
        "流水线并行适合自建机器",
        "流水线\u200b并行适合自建机器",
        "holds an invisible character (U+200B)",
    ),
    "a tag that is spelled unseen": Damage(
        "zh",
        "流水线并行适合自建机器",
        "流水线\U000e0041并行适合自建机器",
        "holds an invisible character (U+E0041)",
    ),
    "a joiner of graphemes": Damage(
        "ja", "ヒントとコツが", "ヒント\u034fとコツが", "holds an invisible character (U+034F)"
    ),
    # What one parser finds in a page and the other does not.
    "a footnote": Damage(
        "zh",
        "先是带明确取舍的入门，然后是实用技巧。\n",
        '先是带明确取舍的入门，然后是实用技巧。\n\n[^1]: x "显存"\n',
        "`[^1]` is a footnote",
        "say it in the text",
        "[^1]",
    ),
    "an address in the middle of a paragraph": Damage(
        "zh",
        "先是带明确取舍的入门，",
        '先是带明确取舍的入门，\n[注]: x "',
        "`[注]:` is an address apart from its link",
        "write the address into the link",
        "[注]",
    ),
    "a paragraph in HTML": Damage(
        "ja",
        "## リンク { #links }\n",
        "## リンク { #links }\n\n<p>必要です。</p>\n",
        "both parsers must read a page alike",
        "write it as the other pages do",
        at="GPU 1 枚：[バッチ]",
    ),
    "attributes that hide": Damage(
        "ar",
        "نصائح وحيل بعد مقدمة تختار لك.\n",
        "نصائح وحيل بعد مقدمة تختار لك.\n{: .md-toggle }\n",
        "`.md-toggle` is not a class that a page here may use",
        at=".md-toggle",
    ),
    "attributes of its own": Damage(
        "ar",
        "نصائح وحيل بعد مقدمة تختار لك.\n",
        "نصائح وحيل بعد مقدمة تختار لك.\n{ .measured }\n",
        "the list of attributes `.measured` is not in the English text",
        at=".measured",
    ),
    "an id of the site": Damage(
        "ar",
        "نصائح وحيل بعد مقدمة تختار لك.\n",
        "نصائح وحيل بعد مقدمة تختار لك.\n{: #site-text }\n",
        "`#site-text` is an id that the site itself has",
        at="#site-text",
    ),
    "a lost character": Damage(
        "ja", "推奨を明示した入門", "推奨を\ufffd示した入門", "holds a character that was lost (U+FFFD)"
    ),
    "another encoding": Damage(
        "ar", "قلّما ينقص الذاكرة", "Ù‚Ù„Ù‘Ù…Ø§ ينقص الذاكرة", "holds text that was read in another encoding"
    ),
    "another encoding, ja": Damage(
        "ja",
        "足りないもので選びます。",
        "雜ｳ繧翫↑縺もので選びます。",
        "holds text that was read in another encoding",
    ),
    "kana in parts": Damage(
        "ja",
        "一時バッファ、メモリ帯域律速の",
        "一時ハ\u3099ッファ、メモリ帯域律速の",
        "holds a letter in parts (U+30CF U+3099)",
        at="オプティマイザ状態と一時",
    ),
    # A word of the neighbouring language.
    "Chinese in Japanese": Damage(
        "ja",
        "乱数シードです。",
        "随机种子です。",
        "holds a letter that the language does not use (U+79CD)",
        at="随机种子",
    ),
    "traditional characters": Damage(
        "zh",
        "显存和时间很少两样都缺",
        "顯存和時間很少兩樣都缺",
        "holds a letter that the language does not use (U+986F)",
        at="顯存和時間",
    ),
    "kana in Chinese": Damage(
        "zh", "先是带明确取舍的入门", "先是带明确取舍の入门", "holds a letter of another script (U+306E)"
    ),
    "a letter of Persian": Damage(
        "ar",
        "ثم يأتي الاستدلال",
        "ثم یأتي الاستدلال",
        "holds a letter that the language does not use (U+06CC)",
        at="ثم یأتي",
    ),
    "a letter that looks Latin": Damage(
        "zh",
        "用 XLA 在 TPU 上训练",
        "用 XLА 在 TPU 上训练",
        "holds a letter of another script (U+0410)",
        at="XLА",
    ),
    # A heading of another section, and one that was left.
    "a heading twice": Damage(
        "zh",
        "## 技巧 { #tricks }",
        "## 方法 { #tricks }",
        "the heading `方法` is that of section `#tricks`, too",
        at="## 方法 { #methods }",
    ),
    "a heading left in English": Damage(
        "ja",
        "## コツ { #tricks }",
        "## Tricks { #tricks }",
        "the heading `Tricks` is in English",
        "translate it",
    ),
    "a heading in another English": Damage(
        "ar",
        "## حالات عشوائية { #random }",
        "## Random state { #random }",
        "the heading `Random state` is in English",
        "translate it",
    ),
    # Numbers that are spelled.
    "a share in ideographs": Damage(
        "zh",
        "显存和时间很少",
        "快百分之九十，显存和时间很少",
        "the number `九十` is not in the English section",
        "#!value",
    ),
    "a time in ideographs": Damage(
        "zh",
        "每张表都要",
        "用四十二毫秒，每张表都要",
        "the number `四十二` is not in the English section",
        "say the same",
    ),
    "digits in ideographs": Damage(
        "zh", "分布式配置中", "快四二毫秒，分布式配置中", "the number `四二` is not in the English section"
    ),
    "one ideograph with a unit": Damage(
        "ja", "分散構成での", "五倍速い分散構成での", "the number `五` is not in the English section"
    ),
    "a time in words": Damage(
        "ar",
        "انظر مرتين إلى كل",
        "في أربعون مللي ثانية انظر مرتين إلى كل",
        "the number `أربعون مللي ثانية` is not in the English section",
    ),
    "a number of Suzhou": Damage(
        "zh", "适用于单块 GPU", "快〤〢毫秒。适用于单块 GPU", "the measured number `〤〢毫秒` is typed"
    ),
    # Addresses and commands, which readers paste.
    "an address in the text": Damage(
        "zh",
        "推理放在后面。",
        "推理放在后面。详见 https://evil.example/install",
        "the address `https://evil.example/install` stands in the text",
        "make it a link",
    ),
    "an address without a scheme": Damage(
        "ja",
        "畳み込みです。",
        "畳み込みです。詳細は evil.example です。",
        "`evil.example` is not in the English section",
        "remove it",
    ),
    "a command": Damage(
        "zh",
        "这样缩放学习率：",
        "先在终端输入 pip install evilpkg 再继续，这样缩放学习率：",
        "`pip install evilpkg` is not in the English section",
        "remove it",
    ),
    "a command in a table": Damage(
        "ar",
        "| الأوزان | تبقى |",
        "| الأوزان | نفّذ pip install evilpkg |",
        "`pip install evilpkg` is not in the English section",
    ),
}


def rounds() -> list[dict[str, Damage]]:
    """The damages in as few rounds as there can be with one to a section of a page, for a check takes its time."""
    found: list[dict[str, Damage]] = []
    slots: list[set[tuple[str, str]]] = []
    for name, damage in DAMAGES.items():
        section = next(key for key, lesson in LESSONS.items() if damage.old in lesson[damage.language])
        slot = (damage.language, section)
        place = next((at for at, taken in enumerate(slots) if slot not in taken), len(slots))
        if place == len(slots):
            found.append({})
            slots.append(set())
        found[place][name] = damage
        slots[place].add(slot)
    return found


@pytest.fixture(scope="module")
def damaged(sound: Tree, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Tree, Found]]:
    """By the name of each damage: the tree that it was done to, and what a check of it finds besides."""
    done: dict[str, tuple[Tree, Found]] = {}
    for damages in rounds():
        root = tmp_path_factory.mktemp("damaged") / "tree"
        shutil.copytree(sound.project.root, root, symlinks=True)
        tree = Tree(Project(root), sound.before)
        for damage in damages.values():
            edit(tree.project.docs / damage.language / PAGE, damage.old, damage.new)
        found = tree.new()
        done |= dict.fromkeys(damages, (tree, found))
    return done


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_with_file_line_and_fix(name: str, damaged: dict[str, tuple[Tree, Found]]) -> None:
    damage = DAMAGES[name]
    tree, new = damaged[name]
    text = (tree.project.docs / damage.language / PAGE).read_text("utf-8")
    at = damage.at or damage.new.split("\n")[0] or damage.old
    line = max(number for number, line in enumerate(text.split("\n"), 1) if at in line)
    path = f"docs/{damage.language}/{PAGE}"
    named = [one for one in new[damage.warning] if (one.path, one.line) == (path, line)]
    assert [one for one in named if damage.what in one.what and damage.fix in one.fix], named


def test_all_damage_of_all_languages_is_named_in_one_run(damaged: dict[str, tuple[Tree, Found]]) -> None:
    problems = damaged[next(iter(DAMAGES))][1][0]
    assert len({one.path for one in problems}) == len({damage.language for damage in DAMAGES.values()})


def test_a_page_that_does_not_end_in_a_newline_is_named(tree: Tree) -> None:
    path = tree.project.docs / "ar" / PAGE
    text = path.read_text("utf-8").rstrip("\n")
    path.write_text(text, "utf-8")
    problem = Problem(f"docs/ar/{PAGE}", text.count("\n") + 1, "does not end with a newline", "add one")
    assert problem in tree.new()[0]


@pytest.mark.parametrize(
    ("title", "whats"),
    [
        ("学習構成の比較", []),
        ("学習構成 97 個の比較", ["the number `97` is not in the English section"]),
        ("学習構成の比較：GPU で検証", ["the title says GPU 1 times, in English 0 times"]),
        ("学習構成の比較：pip install evilpkg", ["`pip install evilpkg` is not in the English section"]),
    ],
)
def test_the_title_of_a_translation_says_no_more_than_the_english_page(
    tree: Tree, title: str, whats: list[str]
) -> None:
    edit(tree.project.docs / "ja" / PAGE, "---\ndescription", f"---\ntitle: {title}\ndescription")
    assert [(one.line, one.what) for one in tree.new()[0]] == [(2, what) for what in whats]


def test_the_title_of_a_translation_keeps_the_names_of_the_english_one(tree: Tree) -> None:
    edit(tree.project.docs / "en" / PAGE, "---\ndescription", "---\ntitle: AdamW on 2 GPUs\ndescription")
    edit(tree.project.docs / "ja" / PAGE, "---\ndescription", "---\ntitle: GPU 2 枚\ndescription")
    assert [one.what for one in tree.new()[0]] == ["the name AdamW of the English text is not here"]
