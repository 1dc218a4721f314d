"""A copy of a real page with more sections, sound in every language, for tests to damage."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchbook.checking.checks import check_project
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.translations.accept import accept
from handbooks import edit

ROOT = Path(__file__).resolve().parents[1]
PAGE = "comparing_setups.md"

# By section: what stands in it in English, and as a careful translator would write it.
LESSONS: Mapping[str, Mapping[str, str]] = {
    "precision": {
        "en": "## Precision { #precision }\n\nTraining in mixed precision needs less GPU memory.\n",
        "ar": "## الدقة { #precision }\n\nيحتاج التدريب بدقة مختلطة إلى قدر أقل من ذاكرة GPU.\n",
        "zh": "## 精度 { #precision }\n\n混合精度训练占用的显存更少。\n",
        "ja": "## 精度 { #precision }\n\n混合精度学習では、必要な GPU メモリが減ります。\n",
    },
    "devices": {
        "en": "## Devices { #devices }\n\nIf TPUs are new to you, read on: training on TPU with XLA.\n",
        "ar": "## المسرّعات { #devices }\n\nإن كانت وحدات TPU جديدة عليك فتابع: التدريب على TPU مع XLA.\n",
        "zh": "## 加速器 { #devices }\n\n如果你刚接触 TPU，请往下读：用 XLA 在 TPU 上训练。\n",
        "ja": "## アクセラレータ { #devices }\n\nTPU が初めてなら続きをどうぞ。XLA を使う TPU での学習です。\n",
    },
    "search": {
        "en": "## Search { #search }\n\nThe `Trainer` runs a hyperparameter search; inference comes later.\n",
        "ar": "## بحث { #search }\n\nيجري `Trainer` بحثًا عن المعلمات الفائقة، ثم يأتي الاستدلال.\n",
        "zh": "## 搜索 { #search }\n\n`Trainer` 负责超参数搜索，推理放在后面。\n",
        "ja": "## 探索 { #search }\n\n`Trainer` がハイパーパラメータ探索を行い、推論はその後です。\n",
    },
    "parallel": {
        "en": "## Parallel { #parallel }\n\nPipeline parallelism suits custom hardware; a benchmark says so.\n",
        "ar": "## التوازي { #parallel }\n\nيناسب توازي خط المعالجة عتادًا تجمعه بنفسك؛ يبيّنه قياس أداء (benchmark).\n",
        "zh": "## 并行 { #parallel }\n\n流水线并行适合自建机器，基准测试可以证明。\n",
        "ja": "## 並列 { #parallel }\n\nパイプライン並列は自作マシンに向きます。ベンチマークで確かめられます。\n",
    },
    "links": {
        "en": "## Links { #links }\n\n- One GPU: [the batch](#batch-size)\n- Several GPUs: [the seed](#seeds)\n",
        "ar": "## روابط { #links }\n\n- وحدة GPU واحدة: [الدفعة](#batch-size)\n- عدة وحدات GPU: [البذرة](#seeds)\n",
        "zh": "## 链接 { #links }\n\n- 单 GPU：[批大小](#batch-size)\n- 多 GPU：[随机种子](#seeds)\n",
        "ja": "## リンク { #links }\n\n- GPU 1 枚：[バッチ](#batch-size)\n- 複数 GPU：[乱数シード](#seeds)\n",
    },
    "tricks": {
        "en": "## Tricks { #tricks }\n\nTips and tricks follow an opinionated introduction.\n",
        "ar": "## حيل { #tricks }\n\nنصائح وحيل بعد مقدمة تختار لك.\n",
        "zh": "## 技巧 { #tricks }\n\n先是带明确取舍的入门，然后是实用技巧。\n",
        "ja": "## コツ { #tricks }\n\n推奨を明示した入門のあとに、ヒントとコツが続きます。\n",
    },
    "counts": {
        "en": "## Counts { #counts }\n\nA batch of 64 on two GPUs is really 128, with AdamW too.\n",
        "ar": "## أعداد { #counts }\n\nدفعة من 64 على وحدتي GPU هي في الواقع 128، ومع AdamW أيضًا.\n",
        "zh": "## 计数 { #counts }\n\n用两块 GPU 时，64 的批其实是 128，用 AdamW 也一样。\n",
        "ja": "## 数え方 { #counts }\n\nGPU 2 枚でのバッチ 64 は、実際には 128 です。AdamW でも同じです。\n",
    },
    "code": {
        "en": "## Code { #code }\n\nIt scales the rate: `learning_rate *= accelerator.num_processes`.\n",
        "ar": "## شيفرة { #code }\n\nهكذا يتناسب المعدل: `learning_rate *= accelerator.num_processes`.\n",
        "zh": "## 代码 { #code }\n\n这样缩放学习率：`learning_rate *= accelerator.num_processes`。\n",
        "ja": "## コード { #code }\n\nこうして学習率を変えます：`learning_rate *= accelerator.num_processes`。\n",
    },
    "random": {
        "en": "## Random states { #random }\n\nThe random seed of NumPy and of torch, in a distributed setup.\n",
        "ar": "## حالات عشوائية { #random }\n\nبذرة عشوائية (seed) في NumPy وtorch، في إعداد تدريب موزع.\n",
        "zh": "## 随机状态 { #random }\n\n分布式配置中 NumPy 和 torch 的随机种子。\n",
        "ja": "## 乱数の状態 { #random }\n\n分散構成での NumPy と torch の乱数シードです。\n",
    },
    "anatomy": {
        "en": "## Anatomy { #anatomy }\n\nTensor contractions, element-wise operators, residual connections and "
        "convolutions.\n\nOptimizer states and temporary buffers; memory-bound CUDA kernels.\n",
        "ar": "## تشريح { #anatomy }\n\nضرب المصفوفات (tensor contraction)، وعمليات عنصرا بعنصر، ووصلة متبقية (residual)، "
        "والتفاف.\n\nحالات المحسّن ومخازن مؤقتة؛ وkernel من CUDA مقيد بعرض نطاق الذاكرة.\n",
        "zh": "## 结构 { #anatomy }\n\n张量缩并、逐元素算子、残差连接和卷积。\n\n优化器状态和临时缓冲区；访存受限的 CUDA kernel。\n",
        "ja": "## 内訳 { #anatomy }\n\nテンソル縮約、要素ごとの演算、残差接続、畳み込みです。\n\n"
        "オプティマイザ状態と一時バッファ、メモリ帯域律速の CUDA カーネルです。\n",
    },
    "methods": {
        "en": "## Methods { #methods }\n\nMethods for one GPU help on several as well. Those that only help on several have "
        "sections of their own, further down on this page.\n\nChoose by what is short. Memory and time seldom are both.\n",
        "ar": "## طرائق { #methods }\n\nالطرائق التي تفيد وحدة GPU واحدة تفيد عدة وحدات أيضًا. أما ما لا يفيد إلا مع عدة وحدات فله "
        "أقسام خاصة به في أسفل هذه الصفحة.\n\nاختر بحسب ما ينقصك. قلّما ينقص الذاكرة والوقت معًا.\n",
        "zh": "## 方法 { #methods }\n\n适用于单块 GPU 的方法，多块时同样有用。只在多块时才有用的方法另有专门的小节，放在本页后面。\n\n"
        "按缺什么来选。显存和时间很少两样都缺。\n",
        "ja": "## 手法 { #methods }\n\nGPU 1 枚向けの手法は、複数でも役に立ちます。複数でしか役に立たない手法には、"
        "このページの後ろに専用の節があります。\n\n足りないもので選びます。メモリと時間が同時に足りなくなることは、あまりありません。\n",
    },
    "cards": {
        "en": "## Cards { #cards }\n\n| Card | Write | Note |\n|---|---|---|\n"
        "| A100, H100 | `bf16=True` | The range is that of fp32 |\n| T4, V100 | `fp16=True` | Do not use bf16 there |\n\n"
        "- **OSF**: too little.\n- **AdaLoRA**: too much.\n- **Adafactor**: less than Muon.\n- **Muon**: more than Adafactor.\n\n"
        "Use bf16 rather than fp16: fp16 overflows. A CPU waits for the GPU, not the GPU.\n",
        "ar": "## البطاقات { #cards }\n\n| البطاقة | اكتب | ملاحظة |\n|---|---|---|\n"
        "| A100 وH100 | `bf16=True` | مداها مدى fp32 |\n| T4 وV100 | `fp16=True` | لا تستعمل bf16 عليها |\n\n"
        "- **OSF**: أقل من اللازم.\n- **AdaLoRA**: أكثر من اللازم.\n- **Adafactor**: أقل من Muon.\n- **Muon**: أكثر من Adafactor.\n\n"
        "استعمل bf16 بدل fp16، فصيغة fp16 تفيض. ينتظر معالج CPU وحدة GPU، لا وحدة GPU.\n",
        "zh": "## 显卡 { #cards }\n\n| 显卡 | 写法 | 说明 |\n|---|---|---|\n"
        "| A100、H100 | `bf16=True` | 范围与 fp32 相同 |\n| T4、V100 | `fp16=True` | 这里不要用 bf16 |\n\n"
        "- **OSF**：偏低。\n- **AdaLoRA**：偏高。\n- **Adafactor**：比 Muon 少。\n- **Muon**：比 Adafactor 多。\n\n"
        "用 bf16，不要用 fp16：fp16 会溢出。CPU 在等 GPU，不是 GPU 在等。\n",
        "ja": "## カード { #cards }\n\n| カード | 書き方 | 備考 |\n|---|---|---|\n"
        "| A100、H100 | `bf16=True` | 範囲は fp32 と同じ |\n| T4、V100 | `fp16=True` | bf16 は使わない |\n\n"
        "- **OSF**：小さすぎます。\n- **AdaLoRA**：大きすぎます。\n- **Adafactor**：Muon より少ないです。\n- **Muon**：Adafactor より多いです。\n\n"
        "fp16 ではなく bf16 を使います。fp16 はオーバーフローします。CPU が GPU を待ちます。GPU ではありません。\n",
    },
    "sizes": {
        "en": "## Sizes { #sizes }\n\n- A card of [24 GB](https://example.org/card), 300 GB/s\n- Weights of [2 bytes](https://example.org/two)\n"
        "- Some [30 %](https://example.org/share) of the time, for [40 ms](https://example.org/time)\n\n"
        "Four times the batch takes a fifth of the time.\n",
        "ar": "## أحجام { #sizes }\n\n- بطاقة بسعة [24 GB](https://example.org/card)، 300 GB/s\n- أوزان من [بايتين](https://example.org/two)\n"
        "- نحو [30%](https://example.org/share) من الوقت، مدة [40 مللي ثانية](https://example.org/time)\n\n"
        "أربعة أضعاف الدفعة تحتاج إلى خُمس الوقت.\n",
        "zh": "## 大小 { #sizes }\n\n- [24 GB](https://example.org/card)、300 GB/s 的显卡\n- [2 字节](https://example.org/two)的权重\n"
        "- 约 [30%](https://example.org/share) 的时间，即 [40 毫秒](https://example.org/time)\n\n"
        "四倍的批次需要五分之一的时间。\n",
        "ja": "## 大きさ { #sizes }\n\n- [24 GB](https://example.org/card)、300 GB/s のカード\n- [2 バイト](https://example.org/two)の重み\n"
        "- 時間の約 [30%](https://example.org/share)、[40 ミリ秒](https://example.org/time)\n\n"
        "4 つ分のバッチには、時間の 5 分の 1 が必要です。\n",
    },
    "bounds": {
        "en": "## Bounds { #bounds }\n\n- Numbers beyond 65504 overflow\n- A sequence of 512 tokens\n- 2048 samples in 2 runs\n",
        "ar": "## حدود { #bounds }\n\n- الأعداد التي تتجاوز 65504 تفيض\n- تسلسل من 512 رمزًا\n- 2048 عينة في 2 تشغيل\n",
        "zh": "## 界限 { #bounds }\n\n- 超过 65504 的数会溢出\n- 一条 512 个 token 的序列\n- 2048 个样本，跑 2 次\n",
        "ja": "## 限度 { #bounds }\n\n- 65504 を超える数はオーバーフローする\n- 512 トークンのシーケンス\n- 2048 サンプルを 2 回\n",
    },
    "shape": {
        "en": "## Shape { #shape }\n\n| Part | Note |\n|---|---|\n| Weights | stay |\n| Gradients | go |\n\n"
        "!!! tip\n\n    Look twice at every table that you read.\n",
        "ar": "## شكل { #shape }\n\n| الجزء | ملاحظة |\n|---|---|\n| الأوزان | تبقى |\n| التدرجات | تزول |\n\n"
        "!!! tip\n\n    انظر مرتين إلى كل جدول تقرؤه.\n",
        "zh": "## 形状 { #shape }\n\n| 部分 | 说明 |\n|---|---|\n| 权重 | 保留 |\n| 梯度 | 清除 |\n\n"
        "!!! tip\n\n    每张表都要看两遍。\n",
        "ja": "## 形 { #shape }\n\n| 部分 | 備考 |\n|---|---|\n| 重み | 残る |\n| 勾配 | 消える |\n\n"
        "!!! tip\n\n    どの表も 2 回見てください。\n",
    },
}


@dataclass(frozen=True)
class Damage:
    """What a page is damaged with, and what the check must say of it.

    Parameters:
        language: Whose page is damaged.
        old: What stands there.
        new: What stands there then.
        what: A part of the problem.
        fix: A part of its fix.
        at: What the line holds that the problem names, if not the first line of `new`.
        warning: Whether it is only a warning.
    """

    language: str
    old: str
    new: str
    what: str
    fix: str = ""
    at: str | None = None
    warning: bool = False


@dataclass(frozen=True)
class Tree:
    """A copy of one real page beside its scripts and records, and what a check of it finds as it stands."""

    project: Project
    before: tuple[frozenset[Problem], frozenset[Problem]]

    def new(self) -> tuple[set[Problem], set[Problem]]:
        """The problems and the warnings that were not there before."""
        problems, warnings = found_in(self.project)
        return set(problems - self.before[0]), set(warnings - self.before[1])


def copied_tree(folder: Path) -> Tree:
    """One real page in every language, each translation accepted as it stands; the other pages are not there."""
    return _copy(_made(taught=False), folder)


def taught_tree(folder: Path) -> Tree:
    """A copied tree with the lessons at the end of one page, in every language."""
    return _copy(_made(taught=True), folder)


def _copy(tree: Tree, folder: Path) -> Tree:
    shutil.copytree(tree.project.root, folder, dirs_exist_ok=True)
    return Tree(Project(folder), tree.before)


@cache
def _made(*, taught: bool) -> Tree:
    """What is copied: each process makes and checks it once."""
    folder = Path(tempfile.mkdtemp(prefix="lessons-"))
    atexit.register(shutil.rmtree, folder)
    project = _project(folder)
    for code in project.languages if taught else ():
        path = project.docs / code / PAGE
        lessons = "\n".join(lesson[code] for lesson in LESSONS.values())
        path.write_text(f"{path.read_text('utf-8')}\n{lessons}", "utf-8")
    return accepted(project)


def _project(folder: Path) -> Project:
    shutil.copytree(ROOT / "docs" / "assets", folder / "docs" / "assets")
    for code in Project(ROOT).languages:
        (folder / "docs" / code).mkdir()
        shutil.copy(ROOT / "docs" / code / "_language.yml", folder / "docs" / code)
        text = (ROOT / "docs" / code / PAGE).read_text("utf-8")
        # What it links to is not in the tree.
        text = re.sub(r"\]\((?=\w+\.md)", "](https://handbook.example/", text)
        (folder / "docs" / code / PAGE).write_text(text, "utf-8")
    for name in ("mkdocs.yml", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    config = folder / "pyproject.toml"
    # What a test changes in an older page is not a change by which that has to follow the pattern of guides.
    text = re.sub(r"\[tool\.benchbook\.pattern\]\n(?:\w+ = .*\n)*", "", config.read_text("utf-8"))
    config.write_text(text, "utf-8")
    guide = PAGE.removesuffix(".md")
    (folder / "snippets").mkdir()
    shutil.copytree(ROOT / "snippets" / guide, folder / "snippets" / guide)
    for machine in (ROOT / "snippets" / "records").iterdir():
        if (machine / guide).is_dir():
            target = folder / "snippets" / "records" / machine.name
            target.mkdir(parents=True)
            shutil.copy(machine / "machine.json", target)
            shutil.copytree(machine / guide, target / guide)
    return Project(folder)


def small_site(folder: Path, *languages: str) -> Project:
    """The real site with one English page of its own, built in English and `languages`, without a search."""
    project = copied_tree(folder).project
    config = project.root / "mkdocs.yml"
    edit(config, "  benchbook: {}", "  benchbook: {search: false}")
    edit(config, "watch:\n  - scripts/benchbook/rendering/theme\n", "")
    for code in project.languages:
        if code not in ("en", *languages):
            edit(config, f"BUILD_{code.upper()}, true", f"BUILD_{code.upper()}, false")
    for page in project.page_paths():
        page.unlink()
    page = "---\ndescription: A page.\n---\n\n# Start { #start }\n\n## Next { #next }\n"
    (project.docs / "en/index.md").write_text(page, "utf-8")
    text = config.read_text("utf-8")
    edit(config, text[text.index("nav:\n") : text.index("plugins:\n")], "nav:\n  - index.md\n\n")
    return project


def accepted(project: Project) -> Tree:
    """The tree of a project whose translations now follow the English pages."""
    accept(project, None, None, all_languages=True)
    return Tree(project, found_in(project))


def found_in(project: Project) -> tuple[frozenset[Problem], frozenset[Problem]]:
    """The problems and the warnings of a tree, as `benchbook check` finds them."""
    report = check_project(Project(project.root))
    return frozenset(report.problems), frozenset(report.warnings)
