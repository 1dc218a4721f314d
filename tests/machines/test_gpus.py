"""One table says what is known of GPUs: to readers who name theirs, to the predictor, to the checks."""

from __future__ import annotations

from benchbook.machines.gpus import compute_capabilities, known_gpus, offered_gpus, sheet_of, sheets
from benchbook.predictor.gpus import gpu_named


def test_every_row_says_where_it_is_from_and_has_a_memory_that_can_be() -> None:
    for gpu in known_gpus():
        assert gpu.source.startswith("https://")
        assert gpu.memory_gb is None or 1 <= gpu.memory_gb <= 512
        assert gpu.memory_mib is None or abs(gpu.memory_mib * 2**20 / (gpu.memory_gb or 0) / 10**9 - 1) < 0.1


def test_a_reader_is_offered_each_gpu_once_with_its_memory() -> None:
    offered = offered_gpus()
    assert len(offered) >= 100
    assert len({one["id"] for one in offered}) == len(offered)
    assert len({(one["name"], one.get("memory_gb")) for one in offered}) == len(offered)
    assert all(one.get("memory_gb") or one["sizes"] for one in offered)


def test_models_of_one_name_have_one_capability() -> None:
    for gpu in known_gpus():
        if gpu.capability is not None:
            assert compute_capabilities()[gpu.model] == gpu.capability == gpu_named(gpu.name).capability


def test_a_model_is_not_taken_for_one_whose_name_begins_alike() -> None:
    found = sheet_of({"accelerator": {"name": "NVIDIA H100 NVL"}})
    assert found is not None
    assert (found.model, found.memory_gb) == ("H100 NVL", 94)
    assert sheet_of({"accelerator": {"name": "NVIDIA L40S"}}) is None
    assert {sheet.model for sheet in sheets()} >= {"H100", "H200", "A100"}
