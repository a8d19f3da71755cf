"""Drop-in for ``espnet2.bin.asr_inference``.

See :mod:`espnet_lenbias.decoding.drop_in`.
"""

import sys
from functools import partial

from espnet_lenbias.decoding import drop_in
from espnet_lenbias.options.espnet_tools import ASR

main = partial(drop_in.main, ASR)

if __name__ == "__main__":
    sys.exit(main())
