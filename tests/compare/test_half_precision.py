import torch

from espnet_lenbias.compare.half_precision import half_precision

PARAMETERS = {
    "encoder.weight": torch.tensor([0.5, 1.0]),
    "decoder.weight": torch.tensor([0.1, 1.0]),  # 0.1 has no end in binary digits
    "normalize.mean": torch.tensor([0.5]),
    "count": torch.tensor([3]),
}


def test_parameters_alone_lose_digits():
    found = half_precision(PARAMETERS)
    assert {name: value.dtype for name, value in found.items()} == {
        "encoder.weight": torch.float16,
        "decoder.weight": torch.float16,
        "normalize.mean": torch.float32,
        "count": torch.int64,
    }
    assert found["encoder.weight"].tolist() == [0.5, 1.0]
    assert found["normalize.mean"] is PARAMETERS["normalize.mean"]


def test_without_loss():
    found = half_precision(PARAMETERS, lossless=True)
    assert found["encoder.weight"].dtype == torch.float16
    assert found["decoder.weight"] is PARAMETERS["decoder.weight"]
