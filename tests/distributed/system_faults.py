"""Faults of the system under a process: the time of day is set, the disk is slow. Process and machine are not changed:
system_faults.c interposes the C library."""
import functools, mmap, os, shutil, struct, subprocess, tempfile

FIELDS = 4  # of struct faults in system_faults.c
for_ever = 1 << 60


@functools.cache
def compiled():
    """A temporary folder, which exists as long as this process, and the compiled library in it."""
    folder = tempfile.TemporaryDirectory()
    library, source = os.path.join(folder.name, 'system_faults.so'), os.path.join(os.path.dirname(os.path.abspath(__file__)), 'system_faults.c')
    compiler = next(c for c in ('cc', 'gcc', 'clang', 'g++') if shutil.which(c))
    subprocess.run([compiler, '-x', 'c', '-std=gnu11', '-O1', '-Wall', '-Wextra', '-shared', '-fPIC', source, '-o', library, '-ldl'], check=True)
    return folder, library


class SystemFaults:
    """System faults of processes that get this environment."""

    def __init__(self):
        folder, library = compiled()
        handle, name = tempfile.mkstemp(dir=folder.name)
        os.truncate(handle, 8 * FIELDS)
        self.numbers = mmap.mmap(handle, 8 * FIELDS)
        os.close(handle)
        self.environment = {'LD_PRELOAD': library, 'STRATA_SYSTEM_FAULTS': name}

    def set(self, field, number):
        struct.pack_into('q', self.numbers, 8 * field, number)

    def set_clock(self, seconds):
        """Sets the clock ahead of the machine's by `seconds`."""
        self.set(0, round(seconds * 10**9))

    def slow_disk(self, seconds, times=for_ever):
        """Makes each of the next calls of fsync take `seconds`."""
        self.set(1, round(seconds * 1000))
        self.set(2, times)

    def slowed(self):
        """The number of calls of fsync that were slow, or still are."""
        return struct.unpack_from('q', self.numbers, 8 * 3)[0]
