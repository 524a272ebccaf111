import pytest
from small_upstream import dedent

from graft import errors
from graft.bazel import build_changes
from graft.bazel import imports
from graft.bazel import sizes
from graft.bazel import with_dependency

HEAD = """\
load("rules.bzl", "tf_py_test")
load("rules.bzl", "py_library")

"""
BACKEND = """
py_library(
    name = "backend",
    srcs = ["backend.py"],
)
"""
SAVING = """\
py_library(
    name = "saving",
    srcs = [
        "__init__.py",
        "legacy/store.py",
    ],
    deps = [
        # Numbers.
        "//:tf_nightly_with_deps",  # As others say it.
        "//tf_keras:backend",
        "@pypi//numpy",
    ],
)
"""
WHOLE = """
py_library(
    name = "tf_keras",
    srcs = ["__init__.py"],
    deps = [
        ":backend",
        "//tf_keras/saving",
    ],
)
"""
TEXTS = {
    "tf_keras/BUILD": HEAD + BACKEND + WHOLE,
    "tf_keras/saving/BUILD": HEAD + SAVING,
}
SIZES = {"codec_test": {"size": '"large"', "shard_count": "4"}}


def changed(changes, texts=TEXTS, before=(), tests=SIZES):
    """The BUILD files after a change of modules."""
    files = build_changes(
        {path: dedent(text).encode() for path, text in changes.items()},
        {path: dedent(text).encode() for path, text in before}.get,
        texts,
        "tf_keras",
        tests,
    )
    return {path: data.decode() for path, data in files.items()}


def rule(deps):
    lines = "".join(f"        {line}\n" for line in deps)
    return f'py_library(\n    name = "a",\n    deps = [\n{lines}    ],\n)\n'


@pytest.mark.parametrize(
    "entry, deps, after",
    [
        (":b", ['":a",', '":c",'], ['":a",', '":b",', '":c",']),
        (":z", ['":a",', '"//:b",'], ['":a",', '":z",', '"//:b",']),
        ("@pypi//b", ['":a",'], ['":a",', '"@pypi//b",']),
        ("//k:b", ['"//k/a",'], ['"//k:b",', '"//k/a",']),
        ("//k", ['"//k:a",'], ['"//k",', '"//k:a",']),
        ("//k/b", ['"@x",', '"//k/a",'], ['"//k/b",', '"@x",', '"//k/a",']),
        ("//k/b", ['"//k/b:b",'], ['"//k/b:b",']),
        (":b", ['"//p:b",'], ['"//p:b",']),
        (":b", ['"//c",  # Why.'], ['":b",', '"//c",  # Why.']),
    ],
)
def test_entry_goes_where_buildifier_puts_it(entry, deps, after):
    text = with_dependency(rule(deps), "p", "a", entry)
    assert text == rule(after)
    assert with_dependency(text, "p", "a", entry) == text


def test_rule_without_dependencies():
    text = with_dependency(BACKEND, "tf_keras", "backend", ":b")
    assert text == BACKEND.replace(
        '.py"],\n', '.py"],\n    deps = [\n        ":b",\n    ],\n'
    )


def test_dependencies_that_are_no_plain_list():
    for value in ('[":b"]', '[":b"] + EXTRA'):
        text = f'py_library(\n    name = "a",\n    deps = {value},\n)\n'
        with pytest.raises(errors.CheckoutError, match="//p:a are not a list"):
            with_dependency(text, "p", "a", ":c")


NEW = {
    "tf_keras/saving/legacy/store.py": """
        import os

        import h5py

        from tf_keras.saving import codec
        """,
    "tf_keras/saving/codec.py": """
        try:
            import numpy as np
        except ImportError:
            np = None

        import tensorflow.compat.v2 as tf


        def f():
            from tf_keras import saving
        """,
    "tf_keras/saving/codec_test.py": """
        from absl.testing import absltest

        import tf_keras as keras
        from tf_keras import backend
        from tf_keras.saving.codec import f
        """,
}


def test_change():
    files = changed(NEW)
    assert list(files) == ["tf_keras/saving/BUILD"]
    text = SAVING.replace(
        "        # Numbers.\n", '        # Numbers.\n        ":codec",\n'
    ).replace('        "@pypi//n', '        "@pypi//h5py",\n        "@pypi//n')
    added = """
        py_library(
            name = "codec",
            srcs = ["codec.py"],
            deps = [
                "//:tf_nightly_with_deps",  # As others say it.
                "@pypi//numpy",
            ],
        )

        tf_py_test(
            name = "codec_test",
            size = "large",
            srcs = ["codec_test.py"],
            shard_count = 4,
            deps = [
                "//tf_keras",
                "@pypi//absl_py",
            ],
        )
        """
    after = f"{HEAD}{text}\n{dedent(added)}"
    assert files["tf_keras/saving/BUILD"] == after
    texts = {**TEXTS, "tf_keras/saving/BUILD": after}
    assert changed(NEW, texts) == {}
    assert changed(NEW, texts, before=NEW.items()) == {}
    assert changed(NEW, {}) == {}


def test_what_was_imported_before_needs_no_entry():
    path = "tf_keras/saving/legacy/store.py"
    before = {path: "import h5py\n"}
    assert (
        changed({path: "import h5py\nimport os\n"}, before=before.items()) == {}
    )


@pytest.mark.parametrize(
    "path, text, message",
    [
        ("backend.py", "from tf_keras import saving", "depends on it"),
        ("backend.py", "import scipy", "has a rule for scipy"),
        ("backend.py", "from tf_keras.x import y", "has a rule for tf_keras.x"),
        ("saving/x_test.py", "import os", "how large x_test is"),
    ],
)
def test_refusal(path, text, message):
    with pytest.raises(errors.GraftError, match=message):
        changed({f"tf_keras/{path}": text + "\n"})


def test_rule_that_is_not_loaded():
    texts = {"tf_keras/BUILD": BACKEND}
    with pytest.raises(errors.CheckoutError, match="`py_library` that tf_ke"):
        changed({"tf_keras/codec.py": "import os\n"}, texts)


def test_imports_of_the_module_itself():
    source = (
        "import a.b\nif x:\n    from c import d\n\n\ndef f():\n    import e\n"
    )
    assert imports(source) == {("a.b", ""), ("c", "d")}


def test_sizes_of_the_overlays_tests():
    text = 'keras_test(\n    name = "x",\n    size = "large",\n)\n' + BACKEND
    assert sizes(text) == {"x": {"size": '"large"'}}
