"""strata for Conan 2. In CMake, the generator CMakeDeps makes the target strata::strata of it."""
from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, get
from conan.tools.layout import basic_layout


class Strata(ConanFile):
    name = "strata"
    version = "@version@"
    description = "Trains neural networks inside C++ programs: header-only, with networks as types"
    license = "BSL-1.0"
    package_type = "header-library"
    implements = ["auto_header_only"]
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "processor": [None, "ANY"],  # what programs are compiled for, after -march=: native, x86-64-v3, ...
        "json": [True, False],  # files of weights, snapshots, TF_CONFIG
        "zlib": [True, False],  # strata/data.hpp
        "hana": [True, False],  # strata/network/parameter_views.hpp
    }
    default_options = {"processor": None, "json": True, "zlib": True, "hana": False}

    def requirements(self):
        if self.options.json:
            self.requires("nlohmann_json/[>=3.10 <4]")
        if self.options.zlib:
            self.requires("zlib/[>=1.2.11 <2]")
        if self.options.hana:
            self.requires("boost/[>=1.74 <2]")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        basic_layout(self)

    def source(self):
        get(self, "@url@/strata-@version@.tar.gz", sha256="@sha256@", strip_root=True)

    def package(self):
        source, to = Path(self.source_folder), Path(self.package_folder)
        copy(self, "strata/*", source / "include", to / "include")
        copy(self, "strata_emulated_cuda/*", source / "include", to / "include")
        copy(self, "LICENSE", source, to / "licenses")

    def package_info(self):
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
        if self.settings.os in ["Linux", "FreeBSD"]:
            self.cpp_info.system_libs = ["pthread"]
        if self.options.processor:
            self.cpp_info.cxxflags = [f"-march={self.options.processor}"]
