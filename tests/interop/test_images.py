#!/usr/bin/env python3
# needs: libpng libjpeg
"""strata reads the pixels that Pillow reads, from the PNG and JPEG files that Pillow writes.

(Pillow writes no interlaced PNG files; the unit tests have those.)
"""
import os
import random
import subprocess
import sys
import tempfile
import warnings
from packages import PROGRAMS, check, finish_tests, need_packages

need_packages(PIL="pillow")
from PIL import Image

warnings.simplefilter("ignore")  # Pillow warns about transparent palettes
SIZES = [(1, 1), (7, 5), (64, 48), (101, 67)]
MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def picture(mode, size):
    """A picture with smooth areas, edges and noise."""
    choose = random.Random(f"{mode} {size}")
    values = bytearray()
    for y in range(size[1]):
        for x in range(size[0]):
            for c in range(len(Image.new(mode, (1, 1)).getbands())):
                values.append(min(255, (x * (3 + c) + y * (7 - c)) % 230 + choose.randrange(25)))
    return Image.frombytes(mode, size, bytes(values))


def same(path, expected):
    """Whether strata reads the expected pixels, for each number of channels."""
    for channels, (size, pixels) in expected.items():
        out = subprocess.run([PROGRAMS / "interop_images", str(channels), path], capture_output=True, text=True)
        if out.stdout != f"{size[1]} {size[0]} {channels} {pixels.hex()}\n" or out.stderr:
            return False
    return True


def as_pillow_reads(path):
    expected = {}
    for channels, mode in MODES.items():
        with Image.open(path) as image:
            if image.format == "JPEG" and channels == 1 and image.mode == "RGB":
                image.draft("L", image.size)  # the luminance of the file, instead of one computed from RGB
            expected[channels] = (image.size, image.convert(mode).tobytes())
    return expected


def of_png(path):
    for mode in "1", "L", "LA", "RGB", "RGBA":
        for size in SIZES:
            image = picture("L", size).convert("1") if mode == "1" else picture(mode, size)
            image.save(path, compress_level=random.Random(str(size)).randrange(10))
            check(same(path, as_pillow_reads(path)), f"PNG, {mode}, {size}")
    for colours in 2, 4, 16, 256:
        for transparency in None, 0, bytes([0, 100]):
            image = picture("RGB", (64, 48)).quantize(colours)
            image.save(path, **({} if transparency is None else {"transparency": transparency}))
            check(same(path, as_pillow_reads(path)), f"PNG, palette of {colours}, transparency {transparency}")
    image = picture("RGB", (64, 48))
    image.save(path, transparency=image.getpixel((5, 6)))
    check(same(path, as_pillow_reads(path)), "PNG, RGB, one colour is transparent")
    for size in SIZES:
        choose = random.Random(3)
        values = [choose.randrange(65536) for _ in range(size[0] * size[1])]
        Image.frombytes("I;16", size, b"".join(v.to_bytes(2, "little") for v in values)).save(path)
        grey = bytes(v >> 8 for v in values)
        rgb = bytes(v for v in grey for _ in range(3))
        rgba = b"".join(bytes([v, v, v, 255]) for v in grey)
        check(same(path, {1: (size, grey), 3: (size, rgb), 4: (size, rgba)}), f"PNG, 16 bits, {size}: the upper 8")


def of_jpeg(path):
    for mode in "L", "RGB", "CMYK":
        for size in SIZES:
            for quality in 30, 95:
                for progressive in False, True:
                    for subsampling in (0, 1, 2) if mode == "RGB" else (-1,):
                        picture(mode, size).save(path, quality=quality, progressive=progressive, subsampling=subsampling)
                        what = f"JPEG, {mode}, {size}, quality {quality}, subsampling {subsampling}"
                        check(same(path, as_pillow_reads(path)), what + (", progressive" if progressive else ""))
    picture("RGB", (64, 48)).save(path, restart_marker_blocks=3)
    check(same(path, as_pillow_reads(path)), "JPEG with restart markers")
    notes = {"exif": b"Exif\0\0" + bytes(5000), "icc_profile": bytes(70_000), "comment": b"words"}
    picture("RGB", (64, 48)).save(path, optimize=True, **notes)
    check(same(path, as_pillow_reads(path)), "JPEG with a comment, a profile and notes of the camera")


with tempfile.TemporaryDirectory() as name:
    of_png(os.path.join(name, "image.png"))
    of_jpeg(os.path.join(name, "image.jpg"))
sys.exit(finish_tests())
