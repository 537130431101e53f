"""A small set of facts, one of each kind, for building a catalog from."""

from __future__ import annotations

from typing import Any

HOST = "https://download.pytorch.org/whl"
R2 = "https://download-r2.pytorch.org/whl"
FLASH_ATTN = "https://github.com/Dao-AILab/flash-attention/releases/download"
FLASH_WHEEL = "flash_attn-2.8.3+cu12torch2.7cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"
X86 = "cp311-cp311-manylinux_2_28_x86_64.whl"


def row(index: str, filename: str, sha256: str | None, **more: object) -> dict[str, Any]:
    name = filename.replace("+", "%2B")
    facts: dict[str, Any] = {
        "index": index,
        "project": filename.split("-", maxsplit=1)[0].replace("_", "-"),
        "filename": filename,
        "url": f"{HOST}/{name}" if index == "root" else f"{HOST}/{index}/{name}",
        "sha256": sha256,
        "size": None,
        "requires_python": ">=3.9",
        "kinds": ["uv.lock"],
        "source": ["owner/repo:uv.lock"],
        "requires_dist": None,
        "requires_dist_origin": None,
    }
    return facts | more


INDEX = [
    row(
        "cu128", f"torch-2.7.0+cu128-{X86}", "a" * 64, requires_dist=["filelock", "sympy (>=1.13)"]
    ),
    row("root", f"torch-2.7.0+cu128-{X86}", "a" * 64, url=f"{R2}/cu128/torch-2.7.0%2Bcu128-{X86}"),
    row("cu128", f"torch-2.7.1+cu128-{X86}", "b" * 64),
    row("root", f"torch-2.7.1+cu128-{X86}", "c" * 64, url=f"{R2}/cu128/torch-2.7.1%2Bcu128-{X86}"),
    row("cu128", f"torch-2.8.0+cu128-{X86}", "d" * 64, kinds=["index-page-copy"]),
    row("root", f"torch-2.8.0+cu128-{X86}", "e" * 64, url=f"{R2}/cu128/torch-2.8.0%2Bcu128-{X86}"),
    row("cpu", f"torch-2.7.0+cpu-{X86}", "f" * 64),
    row("root", f"triton-3.3.0-{X86}", "1" * 64),
    row("cu128", f"torch-2.9.0.dev20250101+cu128-{X86}", "2" * 64),
    row("cu128", "torch-2.7.0+cu128-cp311-cp311-win_amd64.whl", "3" * 64),
    row("cu128", "torch-2.7.0-cu128-cp311-cp311-linux_x86_64.whl", "3" * 64),
    row("rocm6.3", f"torch-2.7.0+rocm6.3-{X86}", "4" * 64),
    row("nightly/cu128", f"torch-2.7.0+cu128-{X86}", "5" * 64),
    row("pypi", f"torch-2.7.0-{X86}", "6" * 64, url="(PyPI)", size=865),
    row("cu128", "numpy-2.2.0-py3-none-any.whl", "7" * 64),
    row("cu128", f"torchaudio-2.7.0+cu128-{X86}", None, inferred=True, kinds=["inferred"]),
]

PYG = {
    "pages": [
        {
            "torch": "2.7.0",
            "accelerator": "cu128",
            "aliases": ["https://data.pyg.org/whl/torch-2.7.1+cu128.html"],
            "wheels": [
                {
                    "project": "torch-sparse",
                    "filename": f"torch_sparse-0.6.18+pt27cu128-cp311-cp311-{platform}.whl",
                    "sha256": None,
                    "observed": platform == "linux_x86_64",
                    "source": ["stored copy of https://data.pyg.org (docs corpus; cut off)"],
                }
                for platform in ("linux_x86_64", "win_amd64")
            ],
        }
    ]
}

OTHERS = {
    "torchvision_torch": {"source": "metadata", "table": {"0.22.0": {"torch": "==2.7.0"}}},
    "torchaudio_torch": {"source": "metadata", "table": {"2.11.1": {"torch": ">=2.11"}}},
    "xformers_torch": {"source": "metadata", "table": {}},
    "vllm_pins": {"source": "metadata", "table": {"0.9.0": {"torch": "==2.7.0"}}},
    "bitsandbytes": {"source": "metadata", "table": {}},
    "torchcodec_torch": {"source": "README", "table": {"0.5": "2.7", "0.12": ">=2.11"}},
    "torch_pypi": {
        "table": {
            "2.7.0": {
                "requires_dist": [
                    'nvidia-cuda-runtime-cu12 (==12.6.77) ; platform_machine == "x86_64"',
                ]
            }
        }
    },
    "spconv_cumm": {
        "source": "PyPI",
        "requires": {"spconv-cu126 2.3.8": ["cumm-cu126<0.8.0,>=0.7.11"]},
        "wheels": [
            {
                "project": "spconv-cu126",
                "version": "2.3.8",
                "filename": f"spconv_cu126-2.3.8-{X86}",
                "sha256": "8" * 64,
                "size": 70,
            }
        ],
    },
    "flash_attn": {
        "runtime_requires": ["torch", "einops"],
        "source": "publish.yml",
        "matrix_by_tag": {
            "v2.5.2": {
                "python": ["3.10"],
                "torch": ["1.13.1", "2.2.0"],
                "cuda": ["11.8.0", "12.2.2"],
                "cxx11abi": ["FALSE"],
                "exclude": [{"torch-version": "2.2.0", "cuda-version": "12.2.2"}],
            },
            "v2.0.0": {
                "python": ["3.10"],
                "torch": ["1.12.0"],
                "cuda": ["113"],
                "cxx11abi": None,
                "exclude": [],
            },
        },
        "generated_filenames": {"names": [FLASH_WHEEL]},
        "official_seen": [
            {
                "url": f"{FLASH_ATTN}/v2.8.3/{FLASH_WHEEL.lower()}",
                "filename": FLASH_WHEEL.lower(),
                "sha256": "9" * 64,
                "source": ["owner/repo:uv.lock"],
            }
        ],
    },
    "cuda_min_driver": {"source": "uv", "linux": {"cu128": "525.60.13"}},
}

MATRIX = {
    "sources": {"A": "a table (read_file id 123)"},
    "paths_shared_by_cu12_and_cu13_wheels": {"clobber": ["nvidia/nccl/**/x", "nvidia/nccl/a.so"]},
    "rows": [
        {
            "torch": "2.7.0",
            "cuda": cuda,
            "published": "yes",
            "python": ["3.11"],
            "torchvision": "0.22.0",
            "torchaudio": "2.7.0",
            "sm_x86_64": sm,
            "ptx_x86_64": [],
            "arch_list_aarch64": "9.0;12.0+PTX",
            "cxx11_abi": True,
            "default_on_pypi": cuda == "12.6",
            "confidence": "high",
            "source": ["A"],
            "notes": "",
        }
        for cuda, sm in (("12.6", ["sm_90"]), ("12.8", ["sm_90", "sm_120"]))
    ],
}

FACTS = {
    "indexes.json": {"wheels": INDEX},
    "pyg.json": PYG,
    "others.json": OTHERS,
    "torch_matrix.json": MATRIX,
    "archs.json": {
        "nccl": {"cu12-2.26.2": {".nv_fatbin": {"sm_90": 1}, "__nv_relfatbin": {"compute_90": 1}}},
        "nvidia": {},
        "others": {
            f"spconv_cu126-2.3.8-{X86}": {
                "spconv/core.so": {".nv_fatbin": {"sm_90": 1, "compute_90": 1}},
                "spconv.libs/libother.so": {".nv_fatbin": {"sm_120": 1}},
            }
        },
        "torch": {
            "2.7.0": {
                "libtorch_cuda.so": {".nv_fatbin": {"sm_90": 1, "sm_90a": 1}},
                "libtorch_cuda_linalg.so": {".nv_fatbin": {"sm_50": 1}},
            }
        },
    },
    "torch_needs.json": {
        "others": {},
        "torch": {"2.7.0": {"weak": ["ncclWeak"], "symbols": {"nccl": ["ncclWeak", "ncclA"]}}},
    },
    "nccl_symbols.json": {
        "_meta": {"versions": {"cu12": ["2.26.2"], "cu13": []}},
        "symbols": {"ncclA": {"first_cu12": "2.26.2"}},
    },
    "clobber.json": {
        "overlaps": [
            {
                "a": "nvidia-x-cu13==1.0",
                "b": "nvidia-x-cu12==1.0",
                "different_so": ["nvidia/x/lib.so"],
                "different_same_size": [],
            }
        ]
    },
    "wheel_torch_compat.json": {
        f"torchaudio-2.11.1-{X86}": {"metadata": ["2.11"], "compatible": "2.13.0..2.15.0"}
    },
}
