"""Drop-in for ``espnet2.bin.asr_inference``; see :mod:`espnet_lenbias.bin.drop_in`."""

import sys
from functools import partial

from espnet_lenbias.bin import drop_in
from espnet_lenbias.tools import ASR


main = partial(drop_in.main, ASR)

if __name__ == "__main__":
    sys.exit(main())
