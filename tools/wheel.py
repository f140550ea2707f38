#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wheel around a static program: PEP 427. Usage: wheel.py PROGRAM VERSION PLATFORM FOLDER"""
import base64
import hashlib
import sys
import zipfile

program, version, platform, folder = sys.argv[1:]
tag = f"py3-none-{platform}"
info = f"nxcfg-{version}.dist-info"
files = {
    f"nxcfg-{version}.data/scripts/nxcfg": open(program, "rb").read(),
    f"{info}/METADATA": f"Metadata-Version: 2.1\nName: nxcfg\nVersion: {version}\n"
    "Summary: Checks configurations of language-model training\nRequires-Python: >=3.8\n".encode(),
    f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: nxcfg\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
}


def record(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


files[f"{info}/RECORD"] = ("".join(record(*item) for item in files.items()) + f"{info}/RECORD,,\n").encode()
with zipfile.ZipFile(f"{folder}/nxcfg-{version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, data in files.items():
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        wheel.writestr(entry, data)
