# SPDX-License-Identifier: Apache-2.0
"""Packages that the systems import and that no judgement of a configuration needs: every name in them is there."""
import importlib.abc
import importlib.machinery
import sys
import types


def is_special(name):
    return name.startswith("__")


class AbsentType(type):
    def __getattr__(cls, name):
        if is_special(name):
            raise AttributeError(name)
        return Absent

    def __or__(cls, other):
        return cls

    def __ror__(cls, other):
        return cls

    def __getitem__(cls, item):
        return cls


class Absent(metaclass=AbsentType):
    def __init__(self, *arguments, **named):
        pass

    def __call__(self, *arguments, **named):
        decorates = len(arguments) == 1 and callable(arguments[0]) and not named
        return arguments[0] if decorates else self

    def __getattr__(self, name):
        if is_special(name):
            raise AttributeError(name)
        return Absent()

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class AbsentModule(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if is_special(name):
            raise AttributeError(name)
        return Absent


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path, target=None):
        if any(name == package or name.startswith(package + ".") for package in self.packages):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return AbsentModule(spec.name)

    def exec_module(self, module):
        pass


def leave_out(*packages):
    sys.meta_path.insert(0, Finder(packages))
