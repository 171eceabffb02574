"""The C extension that makes decoding on a CPU faster (docs/speed.md). Where it cannot be built docnmt goes without."""

from pathlib import Path

from setuptools import Extension, setup

SOURCES = Path("docnmt/engine/csrc")

setup(
    ext_modules=[
        Extension(
            "docnmt.engine._accelerator",
            sources=sorted(map(str, SOURCES.glob("*.c"))),
            depends=sorted(map(str, SOURCES.glob("*.h"))),
            extra_compile_args=["-O3", "-funroll-loops", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"],
            optional=True,
        )
    ]
)
