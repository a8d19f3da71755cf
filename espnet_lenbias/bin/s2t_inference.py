"""Drop-in for ``espnet2.bin.s2t_inference``.

See :mod:`espnet_lenbias.decoding.drop_in`.
"""

import sys
from functools import partial

from espnet_lenbias.decoding import drop_in
from espnet_lenbias.options.espnet_tools import S2T

main = partial(drop_in.main, S2T)

if __name__ == "__main__":
    sys.exit(main())
