import pytest
from small_upstream import dedent

from graft.fingerprint import fingerprint
from graft.transform import parse

BODY = '''
    @export("f")
    def f(a, *args, b=None, **kwargs):
        """Doc."""
        # Why.
        from keras import backend

        if a["x"] != b'y' and f"{a!r:>5}":
            return [backend.load(a, b), a[1:], -args[0], not (kwargs)]
        raise ValueError("Keras can't. " "Received: " f"{a}")
    '''


def digest(text):
    return fingerprint(parse(dedent(text), "f").body[0])


def test_value_is_the_same_everywhere():
    assert digest("def f(a):\n    return a\n") == "8da60441d70197a6"


@pytest.mark.parametrize(
    "before, after",
    [
        ('    @export("f")\n', ""),
        ('        """Doc."""\n', ""),
        ("        # Why.\n", ""),
        ('"x"', "'x'"),
        ("b'y'", 'B"y"'),
        ('"Keras can\'t. "', "'Keras can\\'t. '"),
        ('f"{a}"', "f'{a}'"),
        ("not (kwargs)", "not kwargs"),
        ("load(a, b)", "load(\n            a,\n            b,\n        )"),
        ("from keras import", "from keras.src import"),
        ("from keras import", "from tf_keras.src import"),
        ("Keras can't", "TF-Keras can't"),
    ],
)
def test_form_does_not_count(before, after):
    assert before in BODY
    assert digest(BODY.replace(before, after)) == digest(BODY)


@pytest.mark.parametrize(
    "before, after",
    [
        ("!=", "=="),
        ("a[1:]", "a[:1]"),
        ("a[1:]", "a[1:,]"),
        ("-args", "+args"),
        ("*args", "args"),
        ("b=None", "b=None, c=None"),
        ("b=None", "b=0"),
        ("and", "or"),
        ("!r", "!s"),
        (":>5", ":>6"),
        ("b'y'", "'y'"),
        ("can't", "won't"),
        ("load", "read"),
        ("def f", "def g"),
        ("import backend", "import backend as b"),
        ("raise ValueError", "return ValueError"),
        ("load(a, b)", "load(*a, b)"),
        ("load(a, b)", "load((a, b))"),
    ],
)
def test_every_token_counts(before, after):
    assert before in BODY
    assert digest(BODY.replace(before, after)) != digest(BODY)
