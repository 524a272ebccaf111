"""NumPy arrays of every `ml_dtypes` type in HDF5 files, bit for bit.

NumPy knows bfloat16 and its relatives only as raw bytes, so h5py stores them as
an opaque blob and the type is lost. HDF5 itself can describe most of them as
numbers. This module does that:

- a type that HDF5 can represent exactly is stored as that HDF5 type, and every
  HDF5 tool shows the right numbers;
- a type that HDF5 cannot represent exactly (no infinities, or no sign of zero)
  is stored as an opaque blob whose `dtype` attribute names the type, so that no
  other reader shows wrong numbers;
- the types that NumPy owns are left to h5py.

| dtype | stored as | sign, exponent, mantissa, bias | infinities, NaN |
|---|---|---|---|
| bfloat16 | 16-bit float | 15, 8 at 7, 7 at 0, 127 | as IEEE 754 |
| float8_e5m2 | 8-bit float | 7, 5 at 2, 2 at 0, 15 | as IEEE 754 |
| float8_e4m3 | 8-bit float | 7, 4 at 3, 3 at 0, 7 | as IEEE 754 |
| float8_e3m4 | 8-bit float | 7, 3 at 4, 4 at 0, 3 | as IEEE 754 |
| int4, int2, uint4, uint2, uint1 | 8-bit integer of that precision | | |
| all others | opaque blob and `dtype` attribute | | |

All multi-byte values are written little-endian. Reads and writes hand HDF5 the
file's own type as the memory type: the bytes are copied and never converted,
which keeps NaN payloads and is as fast as the disk.

Reading knows three forms of bfloat16: the HDF5 type above (predefined as
`H5T_FLOAT_BFLOAT16LE` since HDF5 2.0), the two-byte blob with the attribute
`dtype="bfloat16"` that older releases of Keras 3 wrote into `.weights.h5`, and
the bare two-byte blob of all other old files (keras-team/keras#17069). A bare
one-byte blob could be any of a dozen types; it is returned as it is (`|V1`),
and `cast` gives it the dtype of the variable it goes into.

HDF5: https://support.hdfgroup.org/documentation/hdf5/latest/_h5_t__u_g.html
Formats: https://github.com/jax-ml/ml_dtypes
"""

import collections
import functools
import itertools
import operator
import sys

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

Float = collections.namedtuple("Float", ["itemsize", "fields", "bias"])
Integer = collections.namedtuple("Integer", ["precision", "signed"])
Opaque = collections.namedtuple("Opaque", ["itemsize"])

# The fields of a float are those of H5Tset_fields: position of the sign bit,
# position and size of the exponent, position and size of the mantissa.
FORMATS = {
    "bfloat16": Float(2, (15, 7, 8, 0, 7), 127),
    "float8_e5m2": Float(1, (7, 2, 5, 0, 2), 15),
    "float8_e4m3": Float(1, (7, 3, 4, 0, 3), 7),
    "float8_e3m4": Float(1, (7, 4, 3, 0, 4), 3),
    "int4": Integer(4, True),
    "int2": Integer(2, True),
    "uint4": Integer(4, False),
    "uint2": Integer(2, False),
    "uint1": Integer(1, False),
    "int1": Opaque(1),
    "float8_e4m3fn": Opaque(1),
    "float8_e4m3fnuz": Opaque(1),
    "float8_e4m3b11fnuz": Opaque(1),
    "float8_e5m2fnuz": Opaque(1),
    "float8_e8m0fnu": Opaque(1),
    "float6_e2m3fn": Opaque(1),
    "float6_e3m2fn": Opaque(1),
    "float4_e2m1fn": Opaque(1),
    "complex32": Opaque(4),
    "bcomplex32": Opaque(4),
}

# A dataset that declares more than this many bytes must have stored at least a
# thousandth of them (keras-team/keras#22975).
_DECLARED_BYTES_FLOOR = 1 << 32
_MAX_EXPANSION = 1000


def write(group, name, value, opaque=False):
    """Writes an array as a new dataset.

    Args:
        group: `h5py.Group` to write into.
        name: Name of the dataset, relative to `group`.
        value: Array of any shape and of any NumPy or `ml_dtypes` dtype.
        opaque: Whether to store an `ml_dtypes` type as a labelled blob even
            where HDF5 has a number type for it. The legacy optimizers of older
            releases can read nothing else.

    Returns:
        The new `h5py.Dataset`.
    """
    value = np.asarray(value)
    stored = FORMATS.get(value.dtype.name)
    if stored is None:
        return group.create_dataset(name, data=value)
    if opaque:
        stored = Opaque(value.dtype.itemsize)
    file_type = _file_type(stored)
    dataset = group.create_dataset(
        name, value.shape, dtype=h5py.Datatype(file_type)
    )
    if isinstance(stored, Opaque):
        dataset.attrs["dtype"] = value.dtype.name
    if value.size:
        value = np.asarray(_in_native_order(value), order="C")
        raw = value.view(_bits(value.dtype.itemsize))
        if _is_foreign(file_type):
            raw = raw.byteswap()
        dataset.id.write(h5py.h5s.ALL, h5py.h5s.ALL, raw, file_type)
    return dataset


def read(group, name, numpy_type=None):
    """Reads the array stored at a path of a file, see `read_dataset`.

    Args:
        group: `h5py.Group` to look in.
        name: Path of the dataset, relative to `group`.
        numpy_type: See `read_dataset`.

    Returns:
        A new NumPy array.

    Raises:
        KeyError: if there is no such dataset.
        ValueError: if the dataset is not one that holds its own data, see
            `open_dataset`.
    """
    return read_dataset(open_dataset(group, name), numpy_type)


def read_dataset(dataset, numpy_type=None):
    """Reads a whole dataset into an array, bit for bit.

    Args:
        dataset: `h5py.Dataset` of any type, shape, byte order or filter.
        numpy_type: Optional callable that maps a dtype name to a NumPy type and
            raises `TypeError` for a name it does not know. Defaults to the type
            that `ml_dtypes` has. TensorFlow before 2.14 registers its own.

    Returns:
        A NumPy array of the dataset's shape and of the dtype that was saved. A
        one-byte blob without a label is returned as dtype `|V1`, since its
        bytes could be any of several types: pass the result to `cast`.

    Raises:
        ValueError: if the label names no known type, or one of another size.
    """
    if dataset.shape is None:
        raise _error(dataset, "a value, if only an empty one", "none at all")
    file_type = dataset.id.get_type()
    dtype = _numpy_dtype(dataset, file_type, numpy_type)
    if dtype is None:
        return np.asarray(dataset)
    raw = np.empty(dataset.shape, _bits(dtype.itemsize))
    if raw.size:
        dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw, file_type)
        if _is_foreign(file_type):
            raw.byteswap(inplace=True)
    return raw.view(dtype)


def cast(value, dtype):
    """Converts a value to the dtype of the variable that it goes into.

    Equal dtypes keep their bits. Raw bytes without a type (`|V2`, `|V1`: an
    `ml_dtypes` array that went through `np.savez`, pickle or a file of another
    writer) are taken as the variable's type where that has the same size, and
    two bytes are bfloat16 otherwise. All else is an ordinary numeric cast.

    Args:
        value: Array, `h5py.Dataset` or anything `np.asarray` takes.
        dtype: NumPy dtype or type to convert to.

    Returns:
        A NumPy array of dtype `dtype`; `value` itself where it is one already.

    Raises:
        ValueError: if nothing says which type the bytes of `value` are.
    """
    dtype = np.dtype(dtype)
    if h5py is not None and isinstance(value, h5py.Dataset):
        value = read_dataset(value)
    value = np.asarray(value)
    if _is_raw(value.dtype):
        value = _interpret(value, dtype)
    if value.dtype.name in FORMATS:
        value = _in_native_order(value)
    if value.dtype == dtype:
        return value
    if value.dtype.name in FORMATS and dtype.name in FORMATS:
        if value.dtype.name == dtype.name:
            # TensorFlow's own type and that of `ml_dtypes`.
            return value.view(dtype)
        # Few pairs of these types have a cast of their own.
        value = value.astype(_wide(value.dtype))
    return value.astype(dtype)


def to_python(value):
    """Returns what `value.tolist()` does, with numbers of Python throughout.

    Args:
        value: NumPy array or scalar, of any NumPy or `ml_dtypes` dtype.

    Returns:
        A number, or a list of them. Both keep the exact values.
    """
    array = np.asarray(value)
    if array.dtype.name in FORMATS:
        # TensorFlow before 2.14 has a bfloat16 whose `tolist` keeps the type.
        array = array.astype(_wide(array.dtype))
    return array.tolist()


def plain_scalars(value):
    """Replaces `ml_dtypes` scalars in a config by numbers of Python.

    Args:
        value: Item of a config.

    Returns:
        A number where `value` is an `ml_dtypes` scalar; a list or tuple with
        its items replaced; all else as it is.
    """
    if type(value) in (list, tuple):
        return type(value)(plain_scalars(item) for item in value)
    is_numpy = isinstance(value, (np.ndarray, np.generic))
    if is_numpy and not value.ndim and value.dtype.name in FORMATS:
        return to_python(value)
    return value


def open_dataset(group, name):
    """Opens a dataset that holds its own data in its own file.

    An HDF5 file can refer to bytes outside of it. A weights file has no use for
    that, and one from a stranger could pull in any file that the reader can
    open (CVE-2026-1669, keras-team/tf-keras#921), or declare a size that fills
    all memory (keras-team/keras#22975).

    Args:
        group: `h5py.Group` to look in.
        name: Path of the dataset, relative to `group`.

    Returns:
        An `h5py.Dataset`.

    Raises:
        KeyError: if there is no such dataset.
        ValueError: if it is external or virtual, reached through a link, not a
            dataset, or declares far more bytes than the file has.
    """
    parent_path, _, leaf = name.rpartition("/")
    parent = open_group(group, parent_path) if parent_path else group
    dataset = _open_child(parent, leaf, h5py.Dataset)
    if dataset.external:
        raise _refusal(parent, leaf, f"an external dataset {dataset.external}")
    if dataset.is_virtual:
        raise _refusal(parent, leaf, "a virtual dataset")
    itemsize = dataset.id.get_type().get_size()
    declared = functools.reduce(operator.mul, dataset.shape or (), itemsize)
    stored = dataset.id.get_storage_size()
    if declared > max(_DECLARED_BYTES_FLOOR, _MAX_EXPANSION * stored):
        raise _refusal(
            parent,
            leaf,
            f"a shape bomb: {declared} bytes declared, {stored} stored",
        )
    return dataset


def open_group(parent, path):
    """Opens a group without following links, see `open_dataset`.

    Args:
        parent: `h5py.Group` to look in.
        path: Path of the group, relative to `parent`.

    Returns:
        An `h5py.Group`.

    Raises:
        KeyError: if there is no such group.
        ValueError: if the path goes through a link or leads to no group.
    """
    for part in path.strip("/").split("/"):
        parent = _open_child(parent, part, h5py.Group)
    return parent


def check_members(group):
    """Refuses a group that has a link among its members, see `open_dataset`.

    Args:
        group: `h5py.Group` whose members are about to be opened by name.

    Raises:
        ValueError: if a member is a soft or an external link.
    """
    for name in group:
        _check_link(group, name)


def member_names(group, attribute):
    """Reads the names of members that a group lists in an attribute.

    Keras splits a list that is too long for one attribute into several, whose
    names are numbered from 0.

    Args:
        group: `h5py.Group` whose members are to be opened by these names.
        attribute: Name of the attribute, `layer_names` or `weight_names`.

    Returns:
        List of strings.

    Raises:
        ValueError: if a member of the group is a link, see `open_dataset`.
    """
    check_members(group)
    if attribute in group.attrs:
        chunks = [group.attrs[attribute]]
    else:
        numbered = (f"{attribute}{i}" for i in itertools.count())
        present = itertools.takewhile(group.attrs.__contains__, numbered)
        chunks = [group.attrs[key] for key in present]
    return [
        name.decode("utf8") if isinstance(name, bytes) else name
        for chunk in chunks
        for name in chunk
    ]


def unique_names(names):
    """Makes the names of datasets in one group distinct.

    Weights of one layer may share a name, datasets of one group may not
    (tensorflow/tensorflow#46871).

    Args:
        names: Iterable of strings.

    Returns:
        List of distinct strings in the same order. A name that occurs once
        stays as it is.
    """
    names = list(names)
    given = set(names)
    distinct = {}
    for name in names:
        candidate, count = name, 0
        while candidate in distinct or (count and candidate in given):
            count += 1
            candidate = f"{name}_{count}"
        distinct[candidate] = None
    return list(distinct)


class VariableStore(collections.abc.MutableMapping):
    """The variables of one layer or optimizer in an HDF5 file.

    A mapping from name to NumPy array over an `h5py.Group`, to hand to
    `save_own_variables(store)` and `load_own_variables(store)`. All else that a
    group has (`attrs`, `create_dataset`, ...) is reachable through it.

    Args:
        group: `h5py.Group` to read from and write into.
        numpy_type: See `read_dataset`.
    """

    def __init__(self, group, numpy_type=None):
        self._group = group
        self._numpy_type = numpy_type

    @classmethod
    def create(cls, file, path, numpy_type=None):
        """Makes the store of the object at a path, "" for the root."""
        group = file.create_group(path) if path else file
        return cls(group.create_group("vars"), numpy_type)

    def __getitem__(self, key):
        return read(self._group, key, self._numpy_type)

    def __setitem__(self, key, value):
        write(self._group, key, value)

    def __delitem__(self, key):
        del self._group[key]

    def __iter__(self):
        return iter(self._group)

    def __len__(self):
        return len(self._group)

    def __contains__(self, key):
        return key in self._group

    def __getattr__(self, name):
        if name == "_group":
            # Not yet there while it is copied.
            raise AttributeError(name)
        return getattr(self._group, name)


def _bits(itemsize):
    return np.dtype(f"u{itemsize}")


def _is_raw(dtype):
    return dtype.type is np.void and dtype.names is None


def _in_native_order(value):
    if value.dtype.isnative:
        return value
    # As integers: old `ml_dtypes` don't swap their own.
    raw = value.view(_bits(value.dtype.itemsize)).byteswap()
    return raw.view(value.dtype.newbyteorder("="))


def _wide(dtype):
    """The NumPy type that holds all values of an `ml_dtypes` type."""
    for prefix in ("uint", "int"):
        if dtype.name.startswith(prefix):
            return prefix + "8"
    return "complex64" if "complex" in dtype.name else "float32"


def _is_foreign(file_type):
    """Whether multi-byte numbers are in the order of another machine."""
    if file_type.get_class() == h5py.h5t.OPAQUE:
        return False
    little = file_type.get_order() == h5py.h5t.ORDER_LE
    return file_type.get_size() > 1 and little != (sys.byteorder == "little")


@functools.lru_cache(maxsize=None)
def _file_type(stored):
    """The HDF5 type of an entry of `FORMATS`."""
    if isinstance(stored, Opaque):
        # Without a tag: h5py has no conversion for a tagged blob, so that no
        # one else could even copy the bytes.
        file_type = h5py.h5t.create(h5py.h5t.OPAQUE, stored.itemsize)
        file_type.set_tag(b"")
    elif isinstance(stored, Integer):
        base = h5py.h5t.STD_I8LE if stored.signed else h5py.h5t.STD_U8LE
        file_type = base.copy()
        file_type.set_precision(stored.precision)
    else:
        # The fields come first: HDF5 wants them to fit at every step.
        file_type = h5py.h5t.IEEE_F32LE.copy()
        file_type.set_fields(*stored.fields)
        file_type.set_size(stored.itemsize)
        file_type.set_ebias(stored.bias)
    return file_type


def _stored_as(file_type):
    """The entry of `FORMATS` that an HDF5 number type equals, if any does."""
    if file_type.get_class() == h5py.h5t.FLOAT:
        if file_type.get_norm() == h5py.h5t.NORM_IMPLIED:
            return Float(
                file_type.get_size(),
                file_type.get_fields(),
                file_type.get_ebias(),
            )
    if (
        file_type.get_class() == h5py.h5t.INTEGER
        and file_type.get_size() == 1
        and file_type.get_offset() == 0
    ):
        signed = file_type.get_sign() != h5py.h5t.SGN_NONE
        return Integer(file_type.get_precision(), signed)
    return None


_NUMBERS = {
    stored: name
    for name, stored in FORMATS.items()
    if not isinstance(stored, Opaque)
}


def _numpy_dtype(dataset, file_type, numpy_type):
    """The dtype of a dataset, or None where it is for h5py to read."""
    if file_type.get_class() != h5py.h5t.OPAQUE:
        name = _NUMBERS.get(_stored_as(file_type))
        return name and _find_dtype(name, numpy_type, dataset)
    if file_type.get_tag().startswith(b"NUMPY:"):
        return None
    itemsize = file_type.get_size()
    name = _label(dataset, file_type)
    if name is None and itemsize == 2:
        name = "bfloat16"
    if name is None:
        return np.dtype(f"V{itemsize}", metadata={"source": _place(dataset)})
    dtype = _find_dtype(name, numpy_type, dataset)
    if dtype.itemsize != itemsize:
        raise _error(
            dataset,
            f"the label says {name} of {dtype.itemsize} byte(s)",
            f"values of {itemsize} byte(s)",
        )
    return dtype


def _label(dataset, file_type):
    label = dataset.attrs.get("dtype", file_type.get_tag())
    label = label.decode("utf8") if isinstance(label, bytes) else str(label)
    return label or None


def _find_dtype(name, numpy_type, dataset):
    try:
        if name not in FORMATS:
            raise TypeError(name)
        if numpy_type is not None:
            try:
                return np.dtype(numpy_type(name))
            except TypeError:
                # Not one of the caller's own.
                pass
        try:
            import ml_dtypes
        except ImportError:
            # TensorFlow before 2.14 registers a bfloat16 of its own.
            return np.dtype(name)
        return np.dtype(getattr(ml_dtypes, name))
    except (AttributeError, TypeError):
        raise _error(
            dataset,
            f"a dtype of {', '.join(FORMATS)}, and an `ml_dtypes` that has it",
            f"dtype={name}",
        ) from None


def _interpret(value, dtype):
    """Gives raw bytes the type that the variable, or else their size, says."""
    if dtype.name in FORMATS and dtype.itemsize == value.dtype.itemsize:
        return value.view(dtype)
    if value.dtype.itemsize == 2:
        return value.view(_find_dtype("bfloat16", None, None))
    candidates = [
        name
        for name, stored in FORMATS.items()
        if getattr(stored, "itemsize", 1) == value.dtype.itemsize
    ]
    source = (value.dtype.metadata or {}).get("source", "an array")
    raise ValueError(
        f"Nothing says which type the values of {source} are. Expected a "
        "label, or a variable of one of the types that they could be: "
        f"{', '.join(candidates) or 'none known'}. Received: values of dtype "
        f"{value.dtype} for a variable of dtype {dtype.name}. If you know the "
        "type, label the dataset, `dataset.attrs['dtype'] = 'float8_e4m3fn'`, "
        "or build the variable with it."
    )


def _check_link(parent, name):
    link = parent.get(name, getclass=True, getlink=True)
    if link is not h5py.HardLink:
        raise _refusal(parent, name, f"a link: {link.__name__}")


def _open_child(parent, name, expected):
    """Opens a member of a group, if a hard link leads to it."""
    is_group = isinstance(parent, h5py.Group)
    if not is_group or name in ("", ".") or name not in parent:
        where = _place(parent) if is_group else "an empty store"
        raise KeyError(f"There is no '{name}' in {where}.")
    _check_link(parent, name)
    child = parent[name]
    if not isinstance(child, expected):
        raise _error(
            child,
            f"an HDF5 {expected.__name__} must be there",
            f"a {type(child).__name__}",
        )
    return child


def _place(item):
    return f"'{item.name}' of file '{item.file.filename}'"


def _refusal(parent, name, what):
    path = f"{parent.name.rstrip('/')}/{name}"
    return ValueError(
        f"Not allowed: an H5 file with {what}. Expected every weight to be "
        "stored whole in the file itself. "
        f"Received: '{path}' of file '{parent.file.filename}'. If you trust "
        "the file, copy its values into a new one with h5py first."
    )


def _error(item, expected, received):
    place = f" at {_place(item)}" if item else ""
    return ValueError(
        f"Invalid data{place}. Expected: {expected}. Received: {received}."
    )
