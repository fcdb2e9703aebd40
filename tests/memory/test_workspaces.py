from __future__ import annotations

import pytest

from leakcheck.memory.workspaces import cublas_bytes, cublaslt_bytes, known_sizes, uses_cublaslt


@pytest.mark.parametrize(
    ("capability", "size"),
    [((7, 5), 8_519_680), ((9, 0), 33_554_432), ((10, 0), 8_519_680), ((12, 0), 8_519_680)],
)
def test_cublas_gets_more_on_hopper_alone(capability: tuple[int, int], size: int):
    assert cublas_bytes(capability, {}) == size


@pytest.mark.parametrize(
    ("config", "size"),
    [(":0:0", 0), (":16:8", 131_072), (":4096:2:16:8", 8_519_680), ("none", 33_554_432)],
)
def test_the_environment_says_what_cublas_gets(config: str, size: int):
    assert cublas_bytes((9, 0), {"CUBLAS_WORKSPACE_CONFIG": config}) == size


@pytest.mark.parametrize(
    ("cublas", "environment", "size"),
    [
        (33_554_432, {}, 1_048_576),
        (0, {}, 0),
        (131_072, {}, 131_072),
        (33_554_432, {"CUBLASLT_WORKSPACE_SIZE": "4096"}, 4_194_304),
        (33_554_432, {"CUBLASLT_WORKSPACE_SIZE": "much"}, 1_048_576),
        (33_554_432, {"TORCH_CUBLASLT_UNIFIED_WORKSPACE": "1"}, 0),
        (33_554_432, {"DISABLE_ADDMM_CUDA_LT": "1"}, 0),
    ],
)
def test_cublaslt_gets_a_mebibyte_that_is_never_more_than_cublas_has(
    cublas: int, environment: dict[str, str], size: int
):
    assert cublaslt_bytes(cublas, environment) == size


def test_the_known_sizes_are_those_of_any_device_or_those_configured():
    assert known_sizes({}) == (frozenset({8_519_680, 33_554_432}), 1_048_576)
    assert known_sizes({"CUBLAS_WORKSPACE_CONFIG": ":16:8"}) == (frozenset({131_072}), 131_072)
    assert known_sizes({"CUBLAS_WORKSPACE_CONFIG": ":0:0"}) == (frozenset(), 0)


@pytest.mark.parametrize(
    ("bias", "weight", "more", "uses"),
    [
        ((250,), (256, 250), {}, True),
        ((1,), (256, 1), {}, False),
        ((8, 250), (256, 250), {}, False),
        ((250,), (256, 250), {"beta": 0.5}, False),
        ((250,), (256, 250), {"floating": False}, False),
    ],
)
def test_products_with_a_bias_to_add_go_through_cublaslt(bias, weight, more, uses):
    assert uses_cublaslt(bias, weight, **({"floating": True} | more)) is uses
