"""What can be wrong with the system under a process: the time of day is set, the disk is slow. The process and its machine stay as they
are: system_faults.c stands between the process and the C library."""
import functools, mmap, os, shutil, struct, subprocess, tempfile

FIELDS = 4  # of struct faults in system_faults.c
for_ever = 1 << 60


@functools.cache
def compiled():
    """The folder lasts as long as this process; its last file is the library."""
    folder = tempfile.TemporaryDirectory()
    library, source = os.path.join(folder.name, 'system_faults.so'), os.path.join(os.path.dirname(os.path.abspath(__file__)), 'system_faults.c')
    compiler = next(c for c in ('cc', 'gcc', 'clang', 'g++') if shutil.which(c))
    subprocess.run([compiler, '-x', 'c', '-std=gnu11', '-O1', '-Wall', '-Wextra', '-shared', '-fPIC', source, '-o', library, '-ldl'], check=True)
    return folder, library


class SystemFaults:
    """Of the processes that get this environment."""

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
        """Ahead of the machine's."""
        self.set(0, round(seconds * 10**9))

    def slow_disk(self, seconds, times=for_ever):
        """That each of the next calls of fsync takes."""
        self.set(1, round(seconds * 1000))
        self.set(2, times)

    def slowed(self):
        """Calls of fsync that were slow, or are."""
        return struct.unpack_from('q', self.numbers, 8 * 3)[0]
