"""Drop-in for ``espnet2.bin.st_inference``.

See :mod:`espnet_lenbias.decoding.drop_in`.
"""

import sys
from functools import partial

from espnet_lenbias.decoding import drop_in
from espnet_lenbias.options.espnet_tools import ST

main = partial(drop_in.main, ST)

if __name__ == "__main__":
    sys.exit(main())
