import pytest
from small_upstream import KERAS_2
from small_upstream import KERAS_3
from small_upstream import TF_KERAS
from small_upstream import assert_grafted
from small_upstream import dedent
from small_upstream import grafted

from graft.errors import OverlayError
from graft.imports import ImportMapper
from graft.releases import Table
from graft.transform import parse

TABLE = Table()
F = "def f():\n    return 0\n"


def mapped(text, release):
    mapper = ImportMapper(TABLE.release(release))
    return parse(text, "overlay").visit(mapper).code


@pytest.mark.parametrize(
    "release, before, after",
    [
        ("keras==2.9.0", "from keras import a", "from keras import a"),
        ("keras==2.15.0", "from keras import a", "from keras.src import a"),
        ("keras==3.5.0", "from keras import a", "from keras.src import a"),
        (
            "tf_keras==2.21.0",
            "from keras.src.layers import a as b",
            "from tf_keras.src.layers import a as b",
        ),
        ("keras==2.12.0", "import keras", "import keras"),
        ("keras==2.13.1", "import keras", "import keras.src as keras"),
        ("tf_keras==2.21.0", "import keras", "import tf_keras.src as keras"),
        ("keras==3.15.1", "import keras", "import keras"),
        (
            "tf_keras==2.21.0",
            "import keras.backend as K",
            "import tf_keras.src.backend as K",
        ),
        (
            "tf_keras==2.21.0",
            "from keras.saving import hdf5_format",
            "from tf_keras.src.saving.legacy import hdf5_format",
        ),
        (
            "tf_keras==2.21.0",
            "from keras.saving.hdf5_format import f",
            "from tf_keras.src.saving.legacy.hdf5_format import f",
        ),
        (
            "keras==2.9.0",
            "from keras.initializers import initializers",
            "from keras.initializers import initializers_v2 as initializers",
        ),
        (
            "keras==3.5.0",
            "from keras.src.initializers import Orthogonal",
            "from keras.src.initializers import "
            "OrthogonalInitializer as Orthogonal",
        ),
        ("tf_keras==2.21.0", "import keras_core", "import keras_core"),
        ("tf_keras==2.21.0", "from . import keras", "from . import keras"),
        ("tf_keras==2.21.0", "x = 'keras.src'", "x = 'keras.src'"),
    ],
)
def test_mapping(release, before, after):
    assert mapped(before, release) == after


def test_mapping_inside_a_body():
    body = "def f():\n    from keras import a\n\n    return a\n"
    assert "from tf_keras.src import a" in mapped(body, "tf_keras==2.20.1")


def test_import_of_a_submodule_needs_a_name():
    with pytest.raises(OverlayError, match="`import keras.saving`"):
        mapped("import keras.saving", "tf_keras==2.21.0")


def with_head(head, body=F):
    return dedent(head) + "\n\n" + body


@pytest.mark.parametrize(
    "name, line, head, after",
    [
        (
            "between",
            "from keras import c",
            """
            import os

            import numpy as np

            from keras import b
            from keras import d
            from keras.a import x
            """,
            """
            import os

            import numpy as np

            from keras import b
            from keras import c
            from keras import d
            from keras.a import x
            """,
        ),
        (
            "first of its block",
            "from keras import a",
            '''
            """Module."""

            import os

            # Needed.
            from keras import b
            ''',
            '''
            """Module."""

            import os

            from keras import a
            # Needed.
            from keras import b
            ''',
        ),
        (
            "first of the file",
            "import json",
            """
            # Licence.

            import os
            """,
            """
            # Licence.

            import json
            import os
            """,
        ),
        (
            "a block in the middle",
            "import numpy as np",
            """
            import os

            from keras import b
            """,
            """
            import os

            import numpy as np

            from keras import b
            """,
        ),
        (
            "a block at the top",
            "import os",
            '''
            """Module."""

            from keras import b
            ''',
            '''
            """Module."""

            import os

            from keras import b
            ''',
        ),
        (
            "plain imports first",
            "import zlib",
            """
            import os
            from abc import ABC
            """,
            """
            import os
            import zlib
            from abc import ABC
            """,
        ),
        (
            "classes before functions",
            "from abc import ABC",
            """
            from abc import abstractmethod
            """,
            """
            from abc import ABC
            from abc import abstractmethod
            """,
        ),
        (
            "not below isort: off",
            "from keras import c",
            """
            from keras import b

            # isort: off
            from keras import x
            """,
            """
            from keras import b
            from keras import c

            # isort: off
            from keras import x
            """,
        ),
    ],
)
def test_place(name, line, head, after):
    bound = line.split()[-1]
    body = f"def f():\n    return {bound}\n"
    overlay = f"{line}\n\n\n{body}"
    assert_grafted(with_head(head), overlay, with_head(after, body))


def test_module_without_imports():
    overlay = "import os\n\n\ndef f():\n    return os\n"
    code = grafted('"""Module."""\n' + F, overlay)
    assert code.startswith('"""Module."""\nimport os\n')


@pytest.mark.parametrize(
    "head",
    [
        "import h5py\n",
        "try:\n    import h5py\nexcept ImportError:\n    h5py = None\n",
    ],
)
def test_present_import_is_not_added(head):
    body = "def f():\n    return h5py\n"
    overlay = f"import h5py\n\n\n{body}"
    assert grafted(f"{head}\n\n{F}", overlay) == f"{head}\n\n{body}"


def test_unneeded_import_is_not_added():
    overlay = f"from keras import backend\n\n\n{F}"
    assert grafted(F, overlay) == F


def test_import_under_a_range():
    overlay = """
        import os

        # graft: tf_keras
        from keras import new as thing

        # graft: keras
        from keras import old as thing


        def f():
            return thing
        """
    before = "from {0} import a\n\n\n" + F
    for target, name in ((KERAS_2, "old"), (TF_KERAS, "new")):
        code = grafted(before.format(target.root), overlay, target)
        assert f"from {target.root} import {name} as thing\n" in code
        assert code.count("thing\n") == 2


def test_name_bound_to_something_else():
    before = f"from tensorflow import logging\n\n\n{F}"
    overlay = "import logging\n\n\ndef f():\n    return logging\n"
    with pytest.raises(OverlayError, match="Received: tensorflow.logging"):
        grafted(before, overlay)


def test_keras_3_imports_are_first_party():
    overlay = "from keras.src import b\n\n\ndef f():\n    return b\n"
    before = f"import numpy as np\n\nfrom keras.src import a\n\n\n{F}"
    code = grafted(before, overlay, KERAS_3, "keras/src/f.py")
    assert "from keras.src import a\nfrom keras.src import b\n" in code
