"""SNAP as a contender of transport sweeps that add up the scalar flux, on one rank; it stores no angular flux."""

import re
import tempfile
from pathlib import Path

from bench.from_source import Contender, output_of

#: In the order in which its modules need each other.
MODULES = (
    "global geom time plib sn data control solvar analyze mms dealloc dim1_sweep thrd_comm dim3_sweep expxs mkba_sweep "
    "octsweep sweep inner utils input outer output setup version snap_main translv"
)
SNAP = Contender("SNAP", "SNAP/src", tuple(f"{name}.[fF]90" for name in MODULES.split()), ("-cpp", "-fopenmp"))
#: Of its input what is not the default.
INPUT = """&invar
nthreads=1 npey=1 npez=1 ndimen=3 ichunk={n} nx={n} ny={n} nz={n} lx={n} ly={n} lz={n}
nmom=1 nang={angles} ng={groups} fixup=0 swp_typ=0 iitm={inners} oitm=1 epsi=1.0E-10
/
"""
INNERS = 4


def seconds(program, n, angles, groups):
    """Of a sweep of all octants and groups, in each of some runs: it sweeps over a group as often as that needs."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "input", Path(folder) / "output"
        source.write_text(INPUT.format(n=n, angles=angles, groups=groups, inners=INNERS))
        for _ in range(3):
            output_of(program, [source, out])
            text = out.read_text()
            swept_s = float(re.search(r"Transport Sweeps +(\S+)", text).group(1))
            sweeps = sum(map(int, re.findall(r"^ +\d+ +Dfmxo=.*No. Inners= *(\d+)", text, re.MULTILINE)))
            found.append(swept_s * groups / sweeps)
    return found
