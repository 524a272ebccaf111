import pytest
from small_upstream import KERAS_2
from small_upstream import KERAS_3
from small_upstream import TF_KERAS
from small_upstream import assert_grafted
from small_upstream import dedent
from small_upstream import grafted

from graft import errors
from graft.overlay import parse_file
from graft.transform import overlay_module
from graft.transform import parse
from graft.transform import without_unused_imports


def test_function_keeps_decorators_and_comments_above():
    assert_grafted(
        """
        x = 1


        # Why.
        @export("f")
        # Which.
        def f(a):
            return a


        def g():
            pass
        """,
        """
        # Not upstream's business.
        def f(a, b=2):
            return a + b
        """,
        """
        x = 1


        # Why.
        @export("f")
        # Which.
        def f(a, b=2):
            return a + b


        def g():
            pass
        """,
    )


def test_docstring_is_kept_or_replaced():
    before = '''
        def f(a):
            """Stays."""
            return a


        def g(a):
            """Goes."""
            return a
        '''
    overlay = '''
        def f(a):
            return a + 1


        def g(a):
            """Comes."""
            return a + 1
        '''
    after = '''
        def f(a):
            """Stays."""
            return a + 1


        def g(a):
            """Comes."""
            return a + 1
        '''
    assert_grafted(before, overlay, after)


def test_method_of_a_renamed_class():
    assert_grafted(
        """
        class OrthogonalInitializer(Base):
            gain = 1

            def __call__(self, shape):
                return shape

            def other(self):
                pass
        """,
        """
        class Orthogonal:
            def __call__(self, shape, dtype=None):
                return shape, dtype
        """,
        """
        class OrthogonalInitializer(Base):
            gain = 1

            def __call__(self, shape, dtype=None):
                return shape, dtype

            def other(self):
                pass
        """,
        target=KERAS_3,
        path="keras/src/initializers/random_initializers.py",
    )


def test_nodes_take_on_two_space_indentation():
    assert_grafted(
        """
        class A:
          def f(self):
            return 0

          def g(self):
            pass
        """,
        """
        class A:
            def f(self):
                if self:
                    return (
                        1
                    )
        """,
        """
        class A:
          def f(self):
            if self:
              return (
                  1
              )

          def g(self):
            pass
        """,
    )


def test_nothing_serves_the_release_so_nothing_changes():
    before = "def f(a):\n    return  a # as it was\n"
    overlay = """
        from keras import backend


        # graft: tf_keras
        def f(a):
            return backend.f(a)
        """
    assert grafted(before, overlay) == before


@pytest.mark.parametrize(
    "target, value",
    [(KERAS_2, "1"), (TF_KERAS, "2"), (KERAS_3, "3")],
    ids=str,
)
def test_ranges_choose_between_bodies(target, value):
    overlay = """
        import os


        # graft: keras<3
        def f():
            return 1


        # graft: tf_keras>=2.16
        def f():
            return 2


        # graft: keras>=3
        def f():
            return 3
        """
    path = "keras/src/f.py" if target is KERAS_3 else "keras/f.py"
    code = grafted("def f():\n    return 0\n", overlay, target, path)
    assert code == f"def f():\n    return {value}\n"


def test_parts_choose_statements():
    overlay = """
        class A:
            # graft: keras>=2.12 | tf_keras
            # graft: with testing | reading
            def f(self):
                return 1

            # graft: with testing
            def g(self):
                return 1
        """
    before = """
        class A:
            def f(self):
                return 0

            def g(self):
                return 0
        """
    after = """
        class A:
            def f(self):
                return 1

            def g(self):
                return 0
        """
    assert_grafted(before, overlay, after)


NEW = """
    import csv
    # Both.
    import json
    import os

    # graft: with testing
    import zlib

    import h5py

    # graft: with reading
    import numpy as np

    from keras import backend

    ROUTES = {"csv": csv}
    # graft: with reading
    ROUTES.update(read=backend)
    # graft: with testing
    # graft: keras>=2
    ROUTES.update(write=os, test=zlib)


    # graft: tf_keras
    def route():
        return h5py


    # graft: keras
    NUMBER = np.int8


    class Route:
        # graft: with testing
        def go(self):
            pass

        def stay(self):
            pass
    """


def test_new_module_looks_as_if_it_had_no_marks():
    file = parse_file("keras/routes.py", dedent(NEW), ["keras/routes.py"])
    after = """
        import csv
        # Both.
        import json

        import numpy as np

        from keras import backend

        ROUTES = {"csv": csv}
        ROUTES.update(read=backend)


        NUMBER = np.int8


        class Route:
            def stay(self):
                pass
        """
    assert overlay_module(file, KERAS_2).code == dedent(after)


def test_unknown_part():
    overlay = "# graft: with all\ndef f():\n    pass\n"
    with pytest.raises(errors.UnknownPartError, match="reading or testing"):
        grafted("def f():\n    pass\n", "import os\n\n\n" + overlay)


def test_overlapping_ranges():
    overlay = """
        import os


        # graft: keras>=2.11 | tf_keras
        def f():
            return 1


        # graft: keras<=2.12
        def f():
            return 2
        """
    with pytest.raises(errors.OverlappingRangesError, match="store.py: f has"):
        grafted("def f():\n    pass\n", overlay)


@pytest.mark.parametrize(
    "overlay, message",
    [
        ("def g():\n    pass\n", "store.py: g has no upstream"),
        ("class A:\n    def h(self):\n        pass\n", "A.h has no upstream"),
        ("class B:\n    def f(self):\n        pass\n", "B.f has no upstream"),
    ],
)
def test_definition_without_target(overlay, message):
    before = "class A:\n    def f(self):\n        pass\n"
    with pytest.raises(errors.MissingTargetError, match=message):
        grafted(before, overlay)


def test_two_targets_of_one_name():
    before = "def f():\n    pass\n\n\ndef f():\n    pass\n"
    with pytest.raises(errors.MissingTargetError, match="Received: 2"):
        grafted(before, "def f():\n    return 1\n")


@pytest.mark.parametrize(
    "overlay, message",
    [
        ("x = 1\n", "x = 1"),
        ("class A:\n    x = 1\n", "x = 1"),
        ("if True:\n    pass\n", "if True:"),
        ("@export\ndef f():\n    pass\n", "f has decorators"),
    ],
)
def test_overlay_holds_definitions_only(overlay, message):
    with pytest.raises(errors.OverlayError, match=message):
        grafted("def f():\n    pass\n", overlay)


@pytest.mark.parametrize("text", ["kears>=2.12", "keras=>2", "", "keras tf"])
def test_malformed_range(text):
    overlay = f"# graft: {text}\ndef f():\n    pass\n"
    with pytest.raises(errors.OverlayError, match="cannot be read"):
        grafted("def f():\n    pass\n", "'''Doc.'''\n\n\n" + overlay)


def test_unparsable_module():
    with pytest.raises(errors.ParseError, match="keras/saving/store.py"):
        grafted("def f(:\n", "def f():\n    pass\n")


def test_unused_imports_of_upstream_can_be_dropped():
    source = dedent(
        """
        import json

        # Numbers.
        import numpy as np
        import unused


        def f():
            return np.array(json)
        """
    )
    code = grafted(source, "def f():\n    return json\n")
    after = """
        import json

        # Numbers.
        import unused


        def f():
            return json
        """
    module = without_unused_imports(parse(code, ""), parse(source, ""))
    assert module.code == dedent(after)
