"""Simulates libraries that are installed after Meson has searched for them: a compiler and a pkg-config of the test hide them until a
file is deleted."""
import os
import shutil

HIDDEN = "protozero|png|jpeg|zip|openssl|mpi"
# Meson calls compilers with a source file among the arguments.
COMPILER = """#!/bin/bash
if [ -e "$STRATA_HIDES" ]; then
  for argument; do
    if [[ $argument == *.cpp && -e $argument ]] && grep -qE '(include|INCLUDE).*(HIDDEN)' "$argument"; then exit 1; fi
  done
fi
exec REAL "$@"
"""
PKG_CONFIG = """#!/bin/bash
if [ -e "$STRATA_HIDES" ] && [[ "$*" =~ lib(png|jpeg|zip)|openssl|mpi ]]; then exit 1; fi
exec REAL "$@"
"""
# The runtime package of MPI has this command, too, but no mpi.h.
MPICXX = """#!/bin/bash
if [ -e "$STRATA_HIDES" ] && [[ $* != --* ]]; then exit 1; fi
exec REAL "$@"
"""


class HiddenLibraries:
    """`environment` is that of a machine without the libraries, until find() is called. Programs are built in `scratch`."""

    def __init__(self, scratch, **more):
        """more: scripts in place of further commands, with REAL for the path of the command."""
        tools, self.hides = scratch / "tools", scratch / "hides"
        tools.mkdir()
        self.hide()
        gxx = os.environ.get("GXX", "g++")
        for name, text in {gxx: COMPILER, "pkg-config": PKG_CONFIG, "mpicxx": MPICXX, "mpic++": MPICXX, **more}.items():
            if real := shutil.which(name):
                (tools / name).write_text(text.replace("REAL", real).replace("HIDDEN", HIDDEN))
                (tools / name).chmod(0o755)
        self.environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "STRATA_BUILD": str(scratch / "build"),
                                         "STRATA_HIDES": str(self.hides)}

    def hide(self):
        self.hides.touch()

    def find(self):
        self.hides.unlink()
