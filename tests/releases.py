"""What ESPnet 202511 lacks, as marks of the tests that are skipped there."""

import pytest

from espnet_lenbias.espnet_compat import decodes_batches

# Whether ESPnet is 202611 or later.
RECENT = decodes_batches()

needs_batches = pytest.mark.skipif(
    not RECENT, reason="ESPnet 202511 decodes one utterance at a time"
)
needs_s2t_of_ctc_alone = pytest.mark.skipif(
    not RECENT, reason="ESPnet 202511's s2t_inference takes no model without a decoder"
)
needs_lightning_checkpoints = pytest.mark.skipif(
    not RECENT, reason="ESPnet 202511 does not unwrap what Lightning saves"
)
needs_espnet3 = pytest.mark.skipif(
    not RECENT, reason="ESPnet 202511 comes without ESPnet3"
)
