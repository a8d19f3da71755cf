"""What models compute in: what goes together, and what does not."""

import pytest

from espnet_lenbias.options.precision import check_dtype

QUANTIZE = ["quantize_asr_model", "quantize_lm", "quantize_s2t_model"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("where", [{}, {"ngpu": 0}, {"device": "cpu"}])
def test_any_dtype_goes_with_weights_as_they_are(dtype, where):
    check_dtype({"dtype": dtype, **where} | dict.fromkeys(QUANTIZE, False))


@pytest.mark.parametrize("where", [{}, {"ngpu": 0}, {"device": "cpu"}])
@pytest.mark.parametrize("dtype", [{}, {"dtype": "float32"}])
@pytest.mark.parametrize("key", QUANTIZE)
def test_quantized_weights_on_the_cpu(key, dtype, where):
    check_dtype({key: True, **dtype, **where})


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("key", QUANTIZE)
def test_quantized_weights_take_float32(key, dtype):
    with pytest.raises(
        ValueError, match=f"{key}: .* float32 only, and dtype is {dtype}"
    ):
        check_dtype({key: True, "dtype": dtype})


@pytest.mark.parametrize(
    "where", [{"ngpu": 1}, {"device": "cuda"}, {"device": "cuda:1"}]
)
@pytest.mark.parametrize("key", QUANTIZE)
def test_quantized_weights_on_a_gpu(key, where):
    with pytest.raises(ValueError, match=f"{key}: .* on the CPU only: leave {key} out"):
        check_dtype({key: True, **where})


@pytest.mark.parametrize("dtype", ["float31", "int8", 16, None])
def test_no_such_dtype(dtype):
    with pytest.raises(ValueError, match=f"dtype must be one of float16, .*{dtype!r}"):
        check_dtype({"dtype": dtype})
